"""Runs that cannot go on end at once, and say who holds what and who waits for what [decision 5]."""

import pytest

from refsched.model import Limits
from refsched.record import Outcome
from refsched.simulation.step import Simulated
from tests.simulation.test_step import offer, run

ADMIT = {"impossible": "admit"}


def limits(budget: int, cap: int, blocks: int, size: int = 1) -> Limits:
    """Write limits as the field notes do: budget / chunk cap / pool x block size."""
    return Limits(budget, 8, chunk_cap=cap, block_size=size, num_blocks=blocks)


STUCK = {
    "D1": (limits(8, 8, 4), [("a", 0, 1, 4), ("b", 0, 1, 4)], {"a": (2, 1), "b": (2, 1)}),
    "D2": (limits(4, 2, 6), [("a", 0, 4, 2), ("b", 0, 4, 2)], {"a": (4, 1), "b": (2, 2)}),
    "D3": (limits(4, 4, 8), [("a", 0, 10, 1), ("b", 3, 1, 2)], {"a": (8, 2), "b": (0, 1)}),
    "D4": (limits(8, 8, 4), [("a", 0, 4, 2)], {"a": (4, 1)}),
    "D5": (limits(4, 4, 8), [("a", 0, 2, 4), ("b", 1, 6, 2)], {"a": (4, 1), "b": (4, 2)}),
    "S5": (limits(4, 4, 2, 2), [("a", 0, 1, 6), ("b", 1, 1, 5)], {"a": (1, 1), "b": (1, 1)}),
    "S6": (limits(4, 4, 9), [("a", 0, 3, 6), ("l", 1, 6, 1)], {"a": (5, 1), "l": (4, 2)}),
}


@pytest.mark.parametrize("name", STUCK)
def test_document_a_gets_stuck_and_says_who_holds_and_lacks_what(name: str) -> None:
    bounds, asked, expected = STUCK[name]
    ended = run([offer(*each) for each in asked], bounds, "document-a", **ADMIT)
    assert ended.ending.kind == "stuck"
    assert {each.id: (each.holds, each.lacks) for each in ended.ending.blocked} == expected
    assert all(record.outcome is Outcome.UNFINISHED and record.reason for record in ended.records)


@pytest.mark.parametrize(("name", "preemptions"), [("D1", 1), ("D2", 1), ("D5", 0), ("S6", 0)])
def test_vllm_finishes_where_each_request_alone_fits(name: str, preemptions: int) -> None:
    """It preempts, or its gate keeps the second request out."""
    bounds, asked, _ = STUCK[name]
    ended = run([offer(*each) for each in asked], bounds)
    assert (ended.ending.kind, ended.preemptions) == ("done", preemptions)


def livelock(*more: tuple[str, float, int, int]) -> Simulated:
    """Run D3b: with the gate on the first chunk only, a prompt larger than the pool preempts itself for ever."""
    asked = [offer("a", 0, 10, 1), *(offer(*each) for each in more)]
    return run(asked, limits(6, 4, 8), "vllm-v1", admission_gate="chunk", **ADMIT)


def test_a_state_that_repeats_after_a_preemption_is_a_livelock() -> None:
    ended = livelock()
    assert ended.ending.kind == "livelock" and ended.ending.period == 2  # 6 tokens, as it is alone; then preempt
    assert "it can never finish" in ended.ending.sentences()[1]


def test_a_circle_goes_on_while_somebody_is_still_to_come() -> None:
    ended = livelock(("b", 20, 1, 1))
    assert ended.ending.kind == "livelock"
    assert [record.outcome for record in ended.records] == [Outcome.UNFINISHED, Outcome.COMPLETED]


def test_an_impossible_head_blocks_the_queue_for_ever_and_is_named() -> None:
    ended = run([offer("big", 0, 10, 1), offer("small", 0, 1, 1)], limits(4, 4, 8), "vllm-v1", **ADMIT)
    assert ended.ending.kind == "stuck" and ended.iterations == 0
    blocked = ended.ending.blocked[0]
    assert blocked.id == "big" and blocked.impossible and "the pool has 8" in blocked.sentence()


def test_a_stuck_run_waits_for_arrivals_before_it_ends() -> None:
    ended = run([offer("a", 0, 4, 2), offer("b", 9, 1, 1)], limits(8, 8, 4), "document-a", **ADMIT)
    assert ended.ending.kind == "stuck" and len(ended.ending.blocked) == 2


def test_a_cancellation_can_free_a_stuck_run() -> None:
    asked = [offer("a", 0, 1, 4), offer("b", 0, 1, 4, cancel_at=30)]
    ended = run(asked, limits(8, 8, 4), "document-a")
    assert ended.ending.kind == "done"
    assert [record.outcome for record in ended.records] == [Outcome.COMPLETED, Outcome.CANCELLED]
