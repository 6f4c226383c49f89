"""The definition of a run: what is seen when, what each client gets, who is accounted for."""

import pytest

from refsched.dialect import get_dialect
from refsched.errors import EngineError, InputError
from refsched.model import Entry, Limits, Plan, Request
from refsched.record import Outcome
from refsched.scheduling.engine import ReferenceEngine
from refsched.simulation.cost import UnitCost, get_cost_model
from refsched.simulation.step import Simulated, simulate
from refsched.units import TICKS_PER_SECOND as UNIT
from refsched.workload.offer import Offer

LIMITS = Limits(8, 4, num_blocks=64)


def offer(id: str, at: float, prompt: int, output: int, cancel_at: float | None = None) -> Offer:
    """Make an offer in unit times."""
    return Offer(
        int(at * UNIT), Request(id, prompt, output), cancel_at=None if cancel_at is None else int(cancel_at * UNIT)
    )


def run(offers: list[Offer], limits: Limits = LIMITS, rule: str = "vllm-v1", **options: object) -> Simulated:
    """Run offers in unit iterations."""
    return simulate(ReferenceEngine(get_dialect(rule, options), limits), limits, UnitCost(), offers)


def times(simulated: Simulated, place: int) -> list[float]:
    """Give the delivery times of one record, in units."""
    return [delivery.at / UNIT for delivery in simulated.records[place].deliveries]


def test_the_iteration_that_computes_the_last_prompt_token_yields_the_first_output() -> None:
    assert times(run([offer("a", 0, 16, 2)]), 0) == [2, 3]  # decision 1: two chunks of 8


def test_an_arrival_during_an_iteration_is_seen_at_its_end() -> None:
    done = run([offer("a", 0, 1, 5), offer("b", 0.5, 1, 1), offer("c", 1, 1, 1)])
    assert times(done, 1) == [2] and times(done, 2) == [2]  # decision 8: c arrives at the boundary itself


def test_equal_arrival_times_keep_their_order() -> None:
    done = run([offer("z", 0, 1, 1), offer("a", 0, 1, 1)], Limits(1, 1))
    assert (times(done, 0), times(done, 1)) == ([1], [2])


def test_time_passes_idle_until_the_next_arrival() -> None:
    done = run([offer("a", 0, 1, 1), offer("b", 7.25, 1, 1)])
    assert times(done, 1) == [8.25] and done.iterations == 2 and done.makespan == int(8.25 * UNIT)


def test_offers_may_come_in_any_order_and_are_recorded_in_order_of_time() -> None:
    done = run([offer("late", 5, 1, 1), offer("early", 0, 1, 1)])
    assert [record.id for record in done.records] == ["early", "late"]


def test_a_preempted_request_keeps_its_outputs_and_goes_on_where_it_was() -> None:
    """D1: b loses its KV at t2, computes its 3 known tokens at t4, and has all four outputs at t6."""
    done = run([offer("a", 0, 1, 4), offer("b", 0, 1, 4)], Limits(8, 8, num_blocks=4))
    assert times(done, 0) == [1, 2, 3, 4] and times(done, 1) == [1, 2, 5, 6]
    assert done.preemptions == 1 and done.records[1].deliveries.__len__() == 4


def test_a_cancellation_is_seen_at_the_boundary_and_frees_the_place() -> None:
    done = run([offer("a", 0, 1, 9, cancel_at=2.5), offer("b", 0, 1, 1)], Limits(8, 1))
    assert done.records[0].outcome is Outcome.CANCELLED and times(done, 0) == [1, 2, 3]
    assert done.records[0].ended == int(2.5 * UNIT)
    assert times(done, 1) == [4]


def test_a_result_comes_before_a_cancellation_at_the_same_time() -> None:
    done = run([offer("a", 0, 1, 2, cancel_at=2)])
    assert done.records[0].outcome is Outcome.COMPLETED


def test_a_request_that_gives_up_before_it_is_seen_is_cancelled() -> None:
    done = run([offer("a", 0, 16, 1), offer("b", 0.25, 1, 1, cancel_at=0.75)])
    assert done.records[1].outcome is Outcome.CANCELLED and times(done, 1) == []


def test_every_request_is_accounted_for() -> None:
    offers = [offer("ok", 0, 1, 1), offer("big", 0, 65, 1), offer("gone", 0, 1, 9, cancel_at=1)]
    outcomes = [record.outcome for record in run(offers).records]
    assert outcomes == [Outcome.COMPLETED, Outcome.REJECTED, Outcome.CANCELLED]


def test_the_servers_own_times_stand_apart() -> None:
    done = run([offer("a", 0, 1, 3), offer("b", 0.5, 1, 1)], Limits(8, 1))
    server = done.records[1].server
    assert (server.queued, server.scheduled, server.first_token) == (UNIT // 2, 3 * UNIT, 4 * UNIT)


def test_the_first_scheduling_of_a_chunked_prefill_counts() -> None:
    done = run([offer("a", 0, 1, 1), offer("b", 0.5, 20, 1)])
    assert done.records[1].server.scheduled == UNIT


def test_max_len_ends_a_request() -> None:
    done = run([offer("a", 0, 3, 100)], Limits(8, 1, max_len=5))
    assert done.records[0].outcome is Outcome.COMPLETED and len(done.records[0].deliveries) == 2


def test_a_run_of_nothing_is_done_at_once() -> None:
    done = run([])
    assert (done.ending.kind, done.iterations, done.makespan) == ("done", 0, 0)


def test_two_offers_of_one_name_are_refused() -> None:
    with pytest.raises(InputError, match="same request id"):
        run([offer("a", 0, 1, 1), offer("a", 1, 1, 1)])


def test_linear_time_adds_up_by_hand() -> None:
    """Two iterations: 8 then 2 prompt tokens with the first output, then one decode that reads 10 cached tokens."""
    cost = get_cost_model("a100-8b")
    engine = ReferenceEngine(get_dialect("vllm-v1"), LIMITS)
    done = simulate(engine, LIMITS, cost, [offer("a", 0, 10, 2)])
    assert done.makespan == 3 * 11_537_500_000 + 10 * 93_580_000 + 80_000 + 10 * 81_920


class Junk:
    """Plan tokens that do not exist."""

    def __init__(self, plan: Plan):
        self.decided = plan
        self.engine = ReferenceEngine(get_dialect("vllm-v1"), LIMITS)
        self.submit, self.complete, self.cancel, self.state = (
            self.engine.submit,
            self.engine.complete,
            self.engine.cancel,
            self.engine.state,
        )

    def plan(self) -> Plan:
        """Give the same plan every time."""
        return self.decided


@pytest.mark.parametrize("entry", [Entry("x", 0, 1), Entry("a", 0, 99), Entry("a", 0, 0)])
def test_an_engine_that_plans_junk_breaks_the_run(entry: Entry) -> None:
    with pytest.raises(EngineError):
        simulate(Junk(Plan((entry,))), LIMITS, UnitCost(), [offer("a", 0, 2, 2)])
