"""What holds for every policy and every workload, and what only for continuous batching.

Broken copies of every rule are noticed in tests/scheduling/test_policies_properties.py.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refsched.dialect import get_dialect, list_dialects
from refsched.model import Entry, Limits, Plan, Request
from refsched.record import Outcome, Record
from refsched.scheduling.engine import ReferenceEngine
from refsched.scheduling.policies import POLICIES
from refsched.scheduling.queues import Queues
from refsched.units import TICKS_PER_SECOND
from refsched.workload.offer import Offer
from tests.simulation.checked import Checked, run_checked

# Recorded engines with defects of their own take what cannot finish; tests/scheduling/test_policies_properties.py has them.
SOUND = [name for name in list_dialects() if get_dialect(name).impossible == "reject"]
NEVER_STUCK = [name for name in SOUND if name != "document-a"]

limits_strategy = st.builds(
    Limits,
    token_budget=st.integers(1, 12),
    max_seqs=st.integers(1, 5),
    chunk_cap=st.none() | st.integers(1, 6),
    block_size=st.integers(1, 4),
    num_blocks=st.none() | st.integers(2, 12),
    max_len=st.none() | st.integers(4, 20),
)
asks = st.lists(
    st.tuples(st.integers(0, 8), st.integers(1, 10), st.integers(1, 8), st.none() | st.integers(0, 9)), max_size=7
)


def make_offers(asked: list[tuple[int, int, int, int | None]]) -> list[Offer]:
    """Make offers of (arrival, prompt, output, cancelled after), in unit times."""
    return [
        Offer(
            at * TICKS_PER_SECOND,
            Request(f"r{place}", prompt, output),
            cancel_at=None if patience is None else (at + patience) * TICKS_PER_SECOND,
        )
        for place, (at, prompt, output, patience) in enumerate(asked)
    ]


@pytest.mark.parametrize("rule", SOUND)
@given(limits=limits_strategy, asked=asks)
def test_kv_budget_sequences_tokens_and_requests_are_accounted_for(
    rule: str, limits: Limits, asked: list[tuple[int, int, int, int | None]]
) -> None:
    run_checked(rule, limits, make_offers(asked))


@pytest.mark.parametrize("rule", NEVER_STUCK)
@given(limits=limits_strategy, asked=asks)
def test_rules_that_preempt_or_reserve_finish_everything_that_fits(
    rule: str, limits: Limits, asked: list[tuple[int, int, int, int | None]]
) -> None:
    run = run_checked(rule, limits, make_offers(asked))
    assert run.ending.kind == "done"
    assert all(record.outcome is not Outcome.UNFINISHED for record in run.records)


# CONTINUOUS AGAINST STATIC

continuous_limits = st.builds(
    lambda seqs, more, cap: Limits(seqs + more, seqs, chunk_cap=cap),
    st.integers(1, 4),
    st.integers(0, 6),
    st.none() | st.integers(1, 6),
)
uncancelled = st.lists(st.tuples(st.integers(0, 8), st.integers(1, 8), st.integers(1, 8), st.none()), max_size=7)


def last_delivery(record: Record) -> int:
    """Give the time of the last token; a request that never got there is later than all."""
    return max((delivery.at for delivery in record.deliveries), default=10**30) if record.ended is not None else 10**30


def is_never_later(rule: str, limits: Limits, offers: list[Offer]) -> bool:
    """Tell whether every request ends under `rule` no later than under static batching."""
    runs = [run_checked(name, limits, offers).records for name in (rule, "static")]
    return all(last_delivery(mine) <= last_delivery(static) for mine, static in zip(*runs, strict=True))


@pytest.mark.parametrize("rule", ["document-a", "vllm-v1"])
@given(limits=continuous_limits, asked=uncancelled)
def test_continuous_is_never_later_than_static(
    rule: str, limits: Limits, asked: list[tuple[int, int, int, int | None]]
) -> None:
    """It holds with unlimited KV, first come first served, unit iterations, and a budget of at least the sequences."""
    assert is_never_later(rule, limits, make_offers(asked))


def test_outside_those_conditions_it_can_be_later() -> None:
    limits = Limits(5, 2, chunk_cap=2, num_blocks=6)
    assert not is_never_later("document-a", limits, make_offers([(0, 3, 2, None), (0, 1, 3, None)]))


def serving_the_last_first(queues: Queues) -> Plan:
    """Admit the newest first: continuous, but not first come first served."""
    queues.waiting.reverse()
    plan = POLICIES["vllm-v1"](queues)
    queues.waiting.reverse()
    return plan


def test_a_rule_that_serves_the_last_first_can_be_later_than_static() -> None:
    limits = Limits(2, 1)
    offers = make_offers([(0, 1, 1, None), (0, 1, 8, None)])
    mine, static = (
        run_checked("vllm-v1", limits, offers, select=serving_the_last_first),
        run_checked("static", limits, offers),
    )
    assert last_delivery(mine.records[0]) > last_delivery(static.records[0])


def test_the_watch_itself_notices_a_request_planned_while_preempted() -> None:
    limits = Limits(8, 4)
    engine = ReferenceEngine(get_dialect("vllm-v1"), limits)
    checked = Checked(engine, limits)
    checked.submit(Request("a", 4, 1))
    engine.select_iteration = lambda queues: Plan((Entry("a", 0, 4),), preempted=("a",))
    with pytest.raises(AssertionError, match="preempted and planned"):
        checked.plan()
