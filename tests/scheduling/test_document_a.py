"""Document A's rule to the letter [A14], where it gets stuck included (field examples D1-D5, S2, S5, S6)."""

import pytest

from refsched.model import NOTHING, Limits
from tests.scheduling.plans import Asked, Drive, make, show


def start(budget: int, cap: int, blocks: int | None, size: int = 1, seqs: int | None = None) -> Drive:
    """Make document A's engine: budget / chunk cap / pool x block size."""
    limits = Limits(budget, seqs, chunk_cap=cap, block_size=size, num_blocks=blocks)
    return Drive(make("document-a", limits, impossible="admit"))


def test_decodes_come_first_and_prefill_takes_what_is_left() -> None:
    drive = start(budget=5, cap=8, blocks=None)
    drive.submit(("a", 2, 9), ("b", 2, 9))
    assert show(drive.step()) == {"a": 2, "b": 2}
    drive.submit(("long", 9, 1))
    assert show(drive.step()) == {"a": 1, "b": 1, "long": 3}


def test_the_chunk_cap_is_not_the_budget() -> None:
    drive = start(budget=12, cap=2, blocks=None)
    drive.submit(("a", 12, 1))
    assert [show(drive.step()) for _ in range(6)] == [{"a": 2}] * 6  # S3: six iterations of two, alone or not


def test_the_walk_over_the_active_stops_when_the_budget_is_0() -> None:
    drive = start(budget=3, cap=1, blocks=None)
    drive.submit(("a", 1, 9), ("b", 1, 9), ("c", 1, 9))
    drive.step()
    drive.engine.queues.token_budget = 2
    assert [show(drive.step()) for _ in range(2)] == [{"a": 1, "b": 1}] * 2  # S7: always the first two


def test_a_request_that_gets_no_slot_is_skipped_and_the_walk_goes_on() -> None:
    """S5: the older a needs a block and there is none; the younger b runs on its own slack."""
    drive = start(budget=4, cap=4, blocks=2, size=2)
    drive.submit(("a", 1, 6))
    assert show(drive.step()) == {"a": 1}
    drive.submit(("b", 1, 5))
    assert show(drive.step()) == {"a": 1, "b": 1}
    assert show(drive.step()) == {"b": 1}
    assert drive.step() == NOTHING


def test_a_waiting_request_that_gets_nothing_is_skipped() -> None:
    drive = start(budget=8, cap=8, blocks=4)
    drive.submit(("a", 4, 1), ("b", 3, 1), ("c", 2, 1))
    drive.engine.queues.pool.grow("somebody", 1)
    assert show(drive.step()) == {"a": 3}  # what is free, and nothing for those behind


def test_crumbs_are_taken_one_by_one() -> None:
    """S6: the long prompt gets the last free slots, which the decode would have needed."""
    drive = start(budget=4, cap=4, blocks=9)
    drive.submit(("a", 3, 6))
    drive.step()
    drive.submit(("l", 6, 1))
    plans = [show(drive.step()) for _ in range(4)]
    assert plans[0] == {"a": 1, "l": 3}
    assert plans[1] == {"a": 1, "l": 1}
    assert plans[2:] == [{}, {}]


def test_active_order_is_the_order_in_which_prefills_completed() -> None:
    drive = start(budget=4, cap=2, blocks=None)
    drive.submit(("long", 6, 9), ("short", 2, 9))
    for _ in range(3):
        drive.step()
    assert [entry.id for entry in drive.step().entries] == ["short", "long"]


def test_a_sequence_takes_its_place_with_its_first_planned_token() -> None:
    drive = start(budget=4, cap=2, blocks=None, seqs=2)
    drive.submit(("a", 4, 9), ("b", 4, 9), ("c", 1, 1))
    assert show(drive.step()) == {"a": 2, "b": 2}
    assert show(drive.step()) == {"a": 2, "b": 2}
    assert show(drive.step()) == {"a": 1, "b": 1}  # budget is left, a place is not


@pytest.mark.parametrize(
    ("name", "budget", "cap", "blocks", "asked", "then"),
    [
        ("D1", 8, 8, 4, [("a", 1, 4), ("b", 1, 4)], []),
        ("D2", 4, 2, 6, [("a", 4, 2), ("b", 4, 2)], []),
        ("D3", 4, 4, 8, [("a", 10, 1)], [("b", 1, 2)]),
        ("D4", 8, 8, 4, [("a", 4, 2)], []),
        ("D5", 4, 4, 8, [("a", 2, 4)], [("b", 6, 2)]),
    ],
)
def test_where_the_rule_gets_stuck(
    name: str, budget: int, cap: int, blocks: int, asked: list[Asked], then: list[Asked]
) -> None:
    drive = start(budget, cap, blocks)
    drive.submit(*asked)
    drive.step()
    drive.submit(*then)
    for _ in range(8):
        last = drive.step()
    assert last == NOTHING and drive.progress.live


def test_a_prompt_with_nothing_left_to_prefill_is_never_planned() -> None:
    """S2: min(prefill left, cap, budget, slots) is 0 for a fully cached prompt, whatever else is free."""
    drive = start(budget=8, cap=8, blocks=9)
    drive.submit(("a", 4, 1))
    drive.engine.live["a"].computed = 4
    drive.engine.queues.pool.grow("a", 4)
    drive.submit(("b", 2, 1))
    assert show(drive.step()) == {"b": 2}
    assert drive.step() == NOTHING and list(drive.progress.live) == ["a"]
