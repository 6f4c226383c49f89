"""The leap equals the definition: Timeline, Records, totals, bit for bit."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refsched.dialect import get_dialect, list_dialects
from refsched.metrics.measure import measure
from refsched.model import Limits
from refsched.scheduling.engine import ReferenceEngine
from refsched.simulation.cost import ChunkCost, CostModel, LinearCost, UnitCost, get_cost_model
from refsched.simulation.leap import leap
from refsched.simulation.observe import TimelineRecorder
from refsched.simulation.step import Simulated, count_to_reach, simulate
from refsched.workload.offer import Offer
from tests.simulation.test_observe import Keeper
from tests.simulation.test_properties import asks, limits_strategy, make_offers

costs = st.sampled_from([UnitCost(), get_cost_model("a100-8b"), ChunkCost()]) | st.builds(
    LinearCost,
    name=st.just("drawn"),
    label=st.just(""),
    overhead=st.integers(1, 10**12),
    per_prefill_token=st.integers(0, 10**12),
    per_decode=st.integers(0, 10**11),
    per_kv_token=st.integers(0, 10**11),
    per_chunk_history=st.integers(0, 10**10),
)
long_asks = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 40), st.integers(1, 60), st.none() | st.integers(0, 90)), max_size=8
)


def written_out(run: Simulated) -> list[tuple[object, ...]]:
    """Write out everything that a run says of its requests."""
    return [
        (each.id, each.outcome, each.sent, each.ended, each.server, each.reason, list(each.deliveries))
        for each in run.records
    ]


def check_equal(rule: str, limits: Limits, cost: CostModel, offers: list[Offer], **options: object) -> Simulated:
    """Run both ways, observed and unobserved, and compare all they give."""
    stepped, leapt, kept = TimelineRecorder(), TimelineRecorder(), (Keeper(), Keeper())
    engines = [ReferenceEngine(get_dialect(rule, options), limits) for _ in range(3)]
    step = simulate(engines[0], limits, cost, offers, [stepped, kept[0]])
    watched = leap(engines[1], limits, cost, offers, [leapt, kept[1]])
    alone = leap(engines[2], limits, cost, offers)
    assert stepped.timeline() == leapt.timeline()
    assert kept[0].iterations == kept[1].iterations
    for run, engine in ((watched, engines[1]), (alone, engines[2])):
        assert run.ending == step.ending
        assert written_out(run) == written_out(step)
        assert totals(run) == totals(step)
        assert engine.state() == engines[0].state()
        assert engine.queues.pool.peak() == engines[0].queues.pool.peak()
        assert measure(run.records) == measure(step.records)
    return step


def totals(run: Simulated) -> tuple[int, ...]:
    """Give the totals of a run."""
    return run.iterations, run.events, run.entries, run.preemptions, run.makespan


@pytest.mark.parametrize("rule", list_dialects())
@given(limits=limits_strategy, cost=costs, asked=asks)
def test_crowded_runs_are_equal(
    rule: str, limits: Limits, cost: CostModel, asked: list[tuple[int, int, int, int | None]]
) -> None:
    check_equal(rule, limits, cost, make_offers(asked))


@pytest.mark.parametrize("rule", list_dialects())
@given(
    limits=st.builds(
        Limits,
        token_budget=st.integers(1, 64),
        max_seqs=st.integers(1, 6),
        chunk_cap=st.none() | st.integers(1, 32),
        block_size=st.sampled_from([1, 2, 3, 16]),
        num_blocks=st.none() | st.integers(2, 120),
        max_len=st.none() | st.integers(4, 90),
    ),
    cost=costs,
    asked=long_asks,
)
def test_long_runs_are_equal(
    rule: str, limits: Limits, cost: CostModel, asked: list[tuple[int, int, int, int | None]]
) -> None:
    check_equal(rule, limits, cost, make_offers(asked))


OPTIONS: list[tuple[str, dict[str, object]]] = [
    ("vllm-v1", {"policy": "priority"}),
    ("vllm-v1", {"admission_gate": "chunk", "watermark_blocks": 2}),
    ("vllm-v1", {"order": "arrival"}),
    ("vllm-v1", {"order": "priority", "policy": "priority"}),
    ("vllm-v1", {"order": "waiting-time"}),
    ("vllm-v1", {"decode_limit": 2}),
    ("vllm-v1", {"prefix_cache": True}),
    ("vllm-v1", {"impossible": "admit"}),
    ("document-a", {"order": "arrival"}),
    ("document-a", {"order": "waiting-time", "decode_limit": 2}),
    ("document-a", {"impossible": "admit"}),
]


@pytest.mark.parametrize(("rule", "options"), OPTIONS)
@given(
    limits=limits_strategy, cost=costs, asked=long_asks, priorities=st.lists(st.integers(0, 2), min_size=8, max_size=8)
)
def test_every_option_is_equal(
    rule: str,
    options: dict[str, object],
    limits: Limits,
    cost: CostModel,
    asked: list[tuple[int, int, int, int | None]],
    priorities: list[int],
) -> None:
    """Half the prompts begin alike, where a prefix cache can tell."""
    offers = [
        replace(offer, request=replace(offer.request, priority=priority, prefix=make_prefix(offer, place, limits)))
        for place, (offer, priority) in enumerate(zip(make_offers(asked), priorities, strict=False))
    ]
    check_equal(rule, limits, cost, offers, **options)


def make_prefix(offer: Offer, place: int, limits: Limits) -> tuple[int, ...]:
    """Number a prompt's full blocks; those of every second request are the same."""
    blocks = offer.request.prompt // limits.block_size
    return tuple(range(blocks)) if place % 2 else tuple(range(1000 * place, 1000 * place + blocks))


@given(st.integers(1, 10**15), st.integers(1, 10**12), st.integers(0, 10**9))
def test_the_arrival_inside_a_run_is_found_exactly(gap: int, duration: int, growth: int) -> None:
    def passed(count: int) -> int:
        return count * duration + growth * count * (count - 1) // 2

    count = count_to_reach(gap, duration, growth)
    assert passed(count) >= gap > passed(count - 1)
