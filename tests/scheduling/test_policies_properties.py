"""What holds for every rule and every small workload, with every option a dialect offers; broken copies are noticed."""

import random
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refsched.dialect import get_dialect, list_dialects, read_option_values
from refsched.errors import EngineError
from refsched.model import Entry, Limits, Plan, Request
from refsched.record import Outcome
from refsched.scheduling.policies import POLICIES, Policy
from refsched.scheduling.queues import Queues
from refsched.units import TICKS_PER_SECOND
from refsched.workload.offer import Offer
from tests.scheduling.watched import CLEAN, RECORDED, run_watched

FINISHING = [name for name in CLEAN if name != "document-a"]  # document A's rule can get stuck, and is kept so
OPTIONAL = st.none() | st.integers(1, 12)

limits_strategy = st.builds(
    Limits,
    token_budget=OPTIONAL,
    max_seqs=st.none() | st.integers(1, 5),
    chunk_cap=st.none() | st.integers(1, 6),
    block_size=st.integers(1, 4),
    num_blocks=st.none() | st.integers(2, 12),
    max_len=st.none() | st.integers(4, 20),
)
asks_strategy = st.lists(
    st.tuples(*(st.integers(*span) for span in ((0, 8), (1, 10), (1, 8), (0, 2))), st.none() | st.integers(0, 9)),
    max_size=6,
)
Ask = tuple[int, int, int, int, int | None]


def make_offers(asks: list[Ask], block_size: int) -> list[Offer]:
    """Make offers of (arrival, prompt, output, priority and kind of prompt, cancelled after), in unit times."""
    return [
        Offer(
            at * TICKS_PER_SECOND,
            Request(f"r{place}", prompt, output, kind, tuple(range(100 * kind, 100 * kind + prompt // block_size))),
            cancel_at=None if patience is None else (at + patience) * TICKS_PER_SECOND,
        )
        for place, (at, prompt, output, kind, patience) in enumerate(asks)
    ]


@st.composite
def draw_options(draw: st.DrawFn, name: str) -> dict[str, object]:
    """Choose a value for each option that a clean dialect offers."""
    drawn: dict[str, object] = {}
    for option in sorted(get_dialect(name).offered - {"impossible"}):
        values = read_option_values()[option]["values"]
        drawn[option] = draw(st.sampled_from(values) if isinstance(values, list) else st.integers(0, 3))
    return drawn


@pytest.mark.parametrize("name", list_dialects())
@given(limits=limits_strategy, asks=asks_strategy)
def test_every_dialect_keeps_the_rules_of_all_rules(name: str, limits: Limits, asks: list[Ask]) -> None:
    run_watched(get_dialect(name), limits, make_offers(asks, limits.block_size))


@pytest.mark.parametrize("name", CLEAN)
@given(data=st.data(), limits=limits_strategy, asks=asks_strategy)
def test_so_it_does_with_every_option(name: str, data: st.DataObject, limits: Limits, asks: list[Ask]) -> None:
    run = run_watched(get_dialect(name, data.draw(draw_options(name))), limits, make_offers(asks, limits.block_size))
    assert name == "document-a" or run.ending.kind == "done"


@pytest.mark.parametrize("name", FINISHING)
@given(limits=limits_strategy, asks=asks_strategy)
def test_rules_that_preempt_or_reserve_finish_what_they_accept(name: str, limits: Limits, asks: list[Ask]) -> None:
    run = run_watched(get_dialect(name), limits, make_offers(asks, limits.block_size))
    assert run.ending.kind == "done"
    assert all(record.outcome is not Outcome.UNFINISHED for record in run.records)


@pytest.mark.parametrize("name", ["static", "orca", "no-evict", "document-a", "sarathi-serve-orca", "vidur-orca"])
@given(limits=limits_strategy, asks=asks_strategy)
def test_rules_without_preemption_never_preempt(name: str, limits: Limits, asks: list[Ask]) -> None:
    assert run_watched(get_dialect(name), limits, make_offers(asks, limits.block_size)).preemptions == 0


def refusing_to_mix(policy: Policy) -> Policy:
    """Check that a plan is all prefill or all decode."""

    def select(queues: Queues) -> Plan:
        goals = {live.id: live.goal for live in (*queues.running, *queues.waiting)}
        plan = policy(queues)
        assert len({entry.start < goals[entry.id] for entry in plan.entries}) <= 1, "mixed"
        return plan

    return select


@given(limits=limits_strategy, asks=asks_strategy)
def test_prefill_first_never_mixes(limits: Limits, asks: list[Ask]) -> None:
    select = refusing_to_mix(POLICIES["prefill-first"])
    run_watched(get_dialect("prefill-first"), limits, make_offers(asks, limits.block_size), select)


def test_a_rule_that_mixes_is_noticed() -> None:
    assert is_noticed("sarathi", refusing_to_mix(POLICIES["sarathi"]))


# BROKEN ON PURPOSE


def over_budget(policy: Policy) -> Policy:
    """Count one token too few of the budget."""

    def select(queues: Queues) -> Plan:
        queues.token_budget += 1
        plan = policy(queues)
        queues.token_budget -= 1
        return plan

    return select


def over_sequences(policy: Policy) -> Policy:
    """Let one sequence too many run."""

    def select(queues: Queues) -> Plan:
        queues.max_seqs += 1
        plan = policy(queues)
        queues.max_seqs -= 1
        return plan

    return select


def losing_a_block(policy: Policy) -> Policy:
    """Lose a block of somebody who holds one."""

    def select(queues: Queues) -> Plan:
        plan = policy(queues)
        held = queues.pool.held
        held |= {id: blocks - 1 for id, blocks in list(held.items())[:1]}
        return plan

    return select


def planning_twice(policy: Policy) -> Policy:
    """Plan the first entry twice."""

    def select(queues: Queues) -> Plan:
        plan = policy(queues)
        return Plan(plan.entries[:1] + plan.entries, plan.preempted, plan.rejected)

    return select


def skipping_a_token(policy: Policy) -> Policy:
    """Start every entry one token late."""

    def select(queues: Queues) -> Plan:
        plan = policy(queues)
        late = tuple(Entry(id, start + 1, count) for id, start, count in plan.entries)
        return Plan(late, plan.preempted, plan.rejected)

    return select


def planning_nothing(policy: Policy) -> Policy:
    """Plan an entry of no tokens for everybody who waits."""

    def select(queues: Queues) -> Plan:
        plan = policy(queues)
        planned = {entry.id for entry in plan.entries}
        empty = tuple(Entry(live.id, live.computed, 0) for live in queues.waiting if live.id not in planned)
        return Plan(plan.entries + empty, plan.preempted, plan.rejected)

    return select


def losing_somebody(policy: Policy) -> Policy:
    """Forget the last in line."""

    def select(queues: Queues) -> Plan:
        plan = policy(queues)
        if len(queues.waiting) > 1:
            queues.waiting.pop()
        return plan

    return select


def planning_without_blocks(policy: Policy) -> Policy:
    """Let a request do its whole prompt in the blocks of its first token."""

    def select(queues: Queues) -> Plan:
        plan = policy(queues)
        lives = {live.id: live for live in (*queues.running, *queues.waiting)}
        for id, _, _ in plan.entries:
            queues.pool.release(id)
            queues.pool.adopt(lives[id], queues.pool.find(lives[id]))
        return plan

    return select


Breakage = Callable[[Policy], Policy]
BREAKAGES: dict[Breakage, tuple[str, ...]] = {  # and the dialects that do not promise what it breaks
    over_budget: ("sarathi-serve-vllm",),
    over_sequences: (),
    losing_a_block: (),
    planning_twice: (),
    skipping_a_token: (),
    planning_nothing: (),
    losing_somebody: (),
    planning_without_blocks: ("sarathi-serve-orca", "vidur-orca"),
}


def random_cases(count: int) -> Iterator[tuple[Limits, list[Offer]]]:
    """Draw small cases from a fixed seed, in which requests wait and pools are tight."""
    for seed in range(count):
        draw = random.Random(seed).randint
        size = draw(1, 3)
        limits = Limits(draw(3, 8), draw(1, 3), block_size=size, num_blocks=draw(5, 10), max_len=draw(9, 15))
        asks: list[Ask] = [(draw(0, 3), draw(1, 6), draw(1, 6), draw(0, 1), None) for _ in range(draw(3, 6))]
        yield limits, make_offers(asks, size)


def is_noticed(name: str, broken: Policy) -> bool:
    """Tell whether any of 80 small cases fails."""
    for limits, offers in random_cases(80):
        try:
            run_watched(get_dialect(name), limits, offers, broken)
        except (AssertionError, EngineError, KeyError, ValueError):
            return True
    return False


@pytest.mark.parametrize("name", list_dialects())
def test_the_rule_itself_passes_the_cases_that_broken_copies_fail(name: str) -> None:
    assert not is_noticed(name, POLICIES[get_dialect(name).rule])


@pytest.mark.parametrize("name", list_dialects())
@pytest.mark.parametrize("breakage", BREAKAGES)
def test_a_broken_copy_of_the_rule_is_noticed(name: str, breakage: Breakage) -> None:
    broken = breakage(POLICIES[get_dialect(name).rule])
    assert is_noticed(name, broken) or name in BREAKAGES[breakage]


def test_recorded_dialects_are_told_apart() -> None:
    assert set(RECORDED) == {
        "vllm-v0",
        "vllm-v0-chunked",
        "sarathi-serve-orca",
        "sarathi-serve-sarathi",
        "sarathi-serve-vllm",
        "vidur-orca",
    }
