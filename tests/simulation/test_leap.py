"""The leap equals the definition: Timeline, Records, totals, bit for bit."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refsched.conformance.corpus import get_vector, list_vectors
from refsched.dialect import get_dialect, list_dialects
from refsched.errors import EngineError
from refsched.metrics.measure import measure
from refsched.model import Limits, Planned, Submitted, Work
from refsched.scheduling import repeats
from refsched.scheduling.engine import ReferenceEngine
from refsched.scheduling.progress import Progress
from refsched.simulation import cohort, step
from refsched.simulation.cost import (
    ChunkCost,
    CostModel,
    LinearCost,
    UnitCost,
    get_cost_model,
)
from refsched.simulation.leap import leap
from refsched.simulation.members import Members
from refsched.simulation.observe import TimelineRecorder
from refsched.simulation.progression import count_to_reach
from refsched.simulation.step import Simulated, simulate
from refsched.units import TICKS_PER_SECOND
from refsched.workload.load import load_workload
from refsched.workload.offer import Offer
from refsched.workload.scenarios import SCENARIOS, get_scenario
from tests.shared import SHARED
from tests.simulation.test_observe import Keeper
from tests.simulation.test_properties import asks, limits_strategy, make_offers

A100 = get_cost_model("a100-8b")
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


# PLANTED MISTAKES: one too many in each closed form, and one too few where that is no mere caution, must be noticed.


def add_one(target: object, name: str, by: int) -> Callable[[pytest.MonkeyPatch], None]:
    """Plant a closed form that is off by `by`."""
    original = getattr(target, name)

    def plant(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(target, name, lambda *given: original(*given) + by)

    return plant


MISTAKES = {
    "arrival one iteration late": add_one(step, "count_to_reach", 1),
    "cohort: arrival late": add_one(cohort, "count_to_reach", 1),
    "cohort: end one tick late": add_one(Members, "count_ticks_to_end", 1),
    "cohort: one tick too many fits": add_one(Members, "count_fitting", 1),
    "cohort: a block too many": add_one(Members, "count_growth", 1),
    "cohort: a block too few": add_one(Members, "count_growth", -1),
    "cohort: a known token too many": add_one(Members, "get_known", 1),
    "repeats: one too many by the driver's books": add_one(Progress, "count_repeats", 1),
    "repeats: one too many by the pool": add_one(repeats, "count_fitting", 1),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_planted_off_by_one_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MISTAKES[name](monkeypatch)
    assert any(is_noticed(rule, seed) for seed in range(150) for rule in ("vllm-v1", "prefill-first"))


class Patient:
    """Price like a100-8b, but not for ever: a mistake may keep a run from ending."""

    name, label, affine = "patient", "", True

    def __init__(self) -> None:
        self.left = 3000

    def duration(self, work: Work) -> int:
        """Give the price, or lose patience."""
        self.left -= 1
        assert self.left > 0, "the run does not end"
        return A100.duration(work)

    def describe(self) -> dict[str, str]:
        """Give no parameters."""
        return {}


def is_noticed(rule: str, seed: int) -> bool:
    """Tell whether step and leap differ, or the leap breaks, on one small random case."""
    draw = random.Random(seed).randint
    limits = Limits(draw(2, 12), draw(1, 4), block_size=draw(1, 4), num_blocks=draw(8, 24))
    asked = [
        (draw(0, 20), draw(1, 9), draw(1, 20), draw(0, 30) if draw(0, 3) == 0 else None) for _ in range(draw(2, 6))
    ]
    offers = [  # an iteration lasts 12 ms: a few of them between two arrivals
        replace(each, at=each.at // 30, cancel_at=None if each.cancel_at is None else each.cancel_at // 30)
        for each in make_offers(asked)
    ]
    try:
        check_equal(rule, limits, Patient(), offers)
    except (AssertionError, LookupError, ArithmeticError, EngineError):
        return True
    return False


# REAL WORKLOADS

WORKLOADS = (
    "azure2023/AzureLLMInferenceTrace_code.csv",
    "azure2023/AzureLLMInferenceTrace_conv.csv",
    "burstgpt_head5/burstgpt_1_head5.csv",
    "burstgpt_head5/burstgpt_1_head5_normalized.jsonl",
    "dynamo_mooncake/mooncake_tiny.jsonl",
    "dynamo_mooncake/mooncake_trace_1000.jsonl",
    "llmservingsim_workloads/workload_me2_01_mixed.jsonl",
    "mooncake_fast25/conversation_trace.jsonl",
    "mooncake_fast25/synthetic_trace.jsonl",
    "servegen/reason_deepseek-r1_chunk-35-trace.csv",
    "splitwise_sim/test_trace.csv",
    "vidur_processed/splitwise_code.csv",
    "vidur_processed/splitwise_conv.csv",
)


@pytest.mark.parametrize("file", WORKLOADS)
@pytest.mark.parametrize(
    ("rule", "num_blocks"), [("vllm-v1", 26_000), ("vllm-v1", 9_000), ("sarathi", 9_000), ("prefill-first", 1_500)]
)
def test_real_workloads_are_equal(file: str, rule: str, num_blocks: int) -> None:
    path = SHARED / "data" / "traces" / file
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    offers = load_workload(str(path), first=300).offers
    limits = Limits(2048, 64, block_size=16, num_blocks=num_blocks)
    engines = [ReferenceEngine(get_dialect(rule), limits) for _ in range(2)]
    stepped, leapt = simulate(engines[0], limits, A100, offers), leap(engines[1], limits, A100, offers)
    assert (totals(leapt), leapt.ending) == (totals(stepped), stepped.ending)
    assert written_out(leapt) == written_out(stepped)
    assert measure(leapt.records) == measure(stepped.records)


@pytest.mark.parametrize("name", SCENARIOS)
def test_built_in_scenarios_are_equal(name: str) -> None:
    for rule in ("vllm-v1", "document-a", "static"):
        limits = Limits(2048, 8, block_size=16, num_blocks=2000)
        check_equal(rule, limits, A100, list(get_scenario(name).offers)[:60])


def test_a_recomputed_prompt_whose_last_chunk_is_one_token_ends_a_run() -> None:
    """To the driver that chunk is a decode; to a rule that serves decodes first it was none, and is one from then on."""
    limits = Limits(6, 4, chunk_cap=4, block_size=2, num_blocks=17)
    run = check_equal("sarathi", limits, UnitCost(), make_offers([(7, 11, 9, None), (9, 2, 6, None), (1, 6, 14, None)]))
    assert run.preemptions == 2


@pytest.mark.parametrize("rule", list_dialects())
def test_many_small_draws_are_equal(rule: str) -> None:
    """Hypothesis draws few cases in a test run; a bug that needs several events in a row hides from those."""
    for seed in range(300):
        rng = random.Random(f"{rule} {seed}")
        draw = rng.randint
        limits = Limits(
            token_budget=draw(1, 12),
            max_seqs=draw(1, 5),
            chunk_cap=rng.choice([None, draw(1, 6)]),
            block_size=rng.choice([1, 2, 3, 16]),
            num_blocks=rng.choice([None, draw(2, 30)]),
            max_len=rng.choice([None, draw(4, 40)]),
        )
        asked = [
            (draw(0, 10), draw(1, 12), draw(1, 14), rng.choice([None, None, draw(0, 20)])) for _ in range(draw(1, 5))
        ]
        check_equal(rule, limits, rng.choice([UnitCost(), A100]), make_offers(asked))


def make_corpus_offers(id: str) -> list[Offer]:
    """Offer what a vector submits, each at the iteration before which it is submitted."""
    offers, iterations = [], 0
    for event in get_vector(id).events:
        if isinstance(event, Submitted):
            offers.append(Offer(iterations * TICKS_PER_SECOND, event.request))
        iterations += isinstance(event, Planned)
    return offers


@pytest.mark.parametrize("id", [id for id in list_vectors() if id.startswith("plans/")])
def test_every_scenario_of_the_corpus_is_equal(id: str) -> None:
    trace = get_vector(id)
    options = {name: value for name, value in trace.dialect.items() if name not in ("name", "note")}
    for cost in (UnitCost(), A100):
        check_equal(str(trace.dialect["name"]), trace.limits, cost, make_corpus_offers(id), **options)
