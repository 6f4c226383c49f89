"""A run whose records pass by gives the same numbers as one that is kept and written out delivery by delivery."""

import random
from dataclasses import replace
from fractions import Fraction

import pytest

from refsched.dialect import get_dialect
from refsched.metrics.block import Measured, Settings
from refsched.metrics.goodput import Policy, parse_slos
from refsched.metrics.measure import measure
from refsched.metrics.window import parse_choice
from refsched.model import Limits
from refsched.scheduling.engine import ReferenceEngine
from refsched.simulation.cost import get_cost_model
from refsched.simulation.leap import leap_through
from refsched.simulation.step import simulate
from refsched.workload.load import load_workload
from refsched.workload.offer import Offer
from tests.shared import SHARED
from tests.simulation.test_properties import make_offers

A100 = get_cost_model("a100-8b")
MS = 10**9
EVERYTHING = Settings(
    slos=parse_slos("ttft=30ms,tpot=13ms,longest-gap=14ms"),
    policy=Policy("exclude", "count", "sent"),
    stall=13 * MS,
    playback=Fraction(70),
    deadlines=(30 * MS, 13 * MS),
)


def measure_both_ways(rule: str, limits: Limits, offers: list[Offer], settings: Settings) -> tuple[Measured, Measured]:
    """Measure a run that passes by, and the same run stepped, kept, and written out."""
    engines = [ReferenceEngine(get_dialect(rule), limits) for _ in range(2)]
    passing = leap_through(engines[0], limits, A100, iter(offers))
    kept = simulate(engines[1], limits, A100, offers).records
    written = [replace(record, deliveries=tuple(record.deliveries)) for record in kept]
    return measure(passing, settings=settings), measure(written, settings=settings)


def draw_offers(draw: random.Random) -> list[Offer]:
    """Draw a few requests of two groups, of which some are cancelled."""
    asked = [
        (draw.randint(0, 20), draw.randint(1, 9), draw.randint(1, 20), draw.choice((None, None, draw.randint(0, 30))))
        for _ in range(draw.randint(1, 7))
    ]
    offers = sorted(make_offers(asked), key=lambda offer: offer.at)
    return [
        replace(
            each,
            at=each.at // 30,
            cancel_at=None if each.cancel_at is None else each.cancel_at // 30,
            group=draw.choice(("", "a")),
        )
        for each in offers
    ]


@pytest.mark.parametrize("rule", ["vllm-v1", "sarathi"])
def test_small_draws_with_every_setting(rule: str) -> None:
    """Pools so small that requests are preempted and refused; a drawn window where there is one."""
    for seed in range(150):
        draw = random.Random(seed)
        limits = Limits(
            draw.randint(2, 12), draw.randint(1, 4), block_size=draw.randint(1, 4), num_blocks=draw.randint(4, 24)
        )
        window = parse_choice(f"0ms..{draw.randint(20, 200)}ms", draw.choice(("start-in", "end-in", "overlap")))
        settings = replace(EVERYTHING, window=draw.choice((None, window)))
        one, other = measure_both_ways(rule, limits, draw_offers(draw), settings)
        assert one == other, seed


@pytest.mark.parametrize(("file", "num_blocks"), [("conv", 26_000), ("conv", 1_200), ("code", 2_000)])
def test_a_real_trace(file: str, num_blocks: int) -> None:
    path = SHARED / "data" / "traces" / "azure2023" / f"AzureLLMInferenceTrace_{file}.csv"
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    offers = list(load_workload(str(path), first=500).offers)
    one, other = measure_both_ways(
        "vllm-v1", Limits(2048, 256, block_size=16, num_blocks=num_blocks), offers, EVERYTHING
    )
    assert one == other and one.counts["completed"] == 500
