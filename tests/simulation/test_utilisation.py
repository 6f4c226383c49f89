"""How busy a workload at least keeps a device."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from refsched.dialect import get_dialect
from refsched.model import Limits, Request
from refsched.scheduling.engine import ReferenceEngine
from refsched.simulation.cost import LinearCost, UnitCost, get_cost_model
from refsched.simulation.step import simulate
from refsched.simulation.utilisation import compute_utilisation
from refsched.workload.offer import Offer

LIMITS = Limits(8, 2)


def test_by_hand() -> None:
    """Two requests of 6 prompt tokens and 3 outputs: 16 tokens in 8s are 2 iterations, 6 outputs in 2 places are 3."""
    cost = LinearCost("c", "", overhead=100, per_prefill_token=10, per_decode=5, per_kv_token=1, per_chunk_history=0)
    requests = [Request("a", 6, 3), Request("b", 6, 3)]
    decodes = (5 + 6) + (5 + 7)
    assert compute_utilisation(requests, 1000, LIMITS, cost) == Fraction(2 * (60 + decodes) + 3 * 100, 1000)
    assert compute_utilisation(requests, 0, LIMITS, cost) is None


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 6)), min_size=1, max_size=6))
def test_no_run_is_busy_for_less(asked: list[tuple[int, int]]) -> None:
    requests = [Request(f"r{place}", *each) for place, each in enumerate(asked)]
    for cost in (UnitCost(), get_cost_model("a100-8b")):
        engine = ReferenceEngine(get_dialect("vllm-v1"), LIMITS)
        run = simulate(engine, LIMITS, cost, [Offer(0, request) for request in requests])
        assert (compute_utilisation(requests, run.makespan, LIMITS, cost) or 0) <= 1
