"""Several engines: classes with limits of their own, and replicas behind the simplest router [A23]."""

import pytest

from refsched.dialect import get_dialect
from refsched.errors import InputError
from refsched.model import Limits, Request
from refsched.scheduling.engine import ReferenceEngine
from refsched.simulation.cost import UnitCost
from refsched.simulation.fleet import Fleet, Member, deal_out, run_fleet, run_least_outstanding, split_by_group
from refsched.simulation.leap import leap
from refsched.simulation.step import simulate
from refsched.units import TICKS_PER_SECOND as UNIT
from refsched.workload.offer import Offer

LIMITS = Limits(8, 1, block_size=4, num_blocks=32)


def offer(id: str, at: float, output: int, group: str = "") -> Offer:
    """Make an offer of a one-token prompt, in unit times."""
    return Offer(int(at * UNIT), Request(id, 1, output), group)


def members(count: int, *limits: Limits) -> list[Member]:
    """Make engines with the given limits, or equal ones."""
    own = limits or (LIMITS,) * count
    return [Member(str(place), ReferenceEngine(get_dialect("vllm-v1"), each), each) for place, each in enumerate(own)]


def ends(fleet: Fleet) -> dict[str, int]:
    """Give when each request ended, in units."""
    return {record.id: (record.ended or 0) // UNIT for record in fleet.records}


OFFERS = [offer("a", 0, 9), offer("b", 0, 1), offer("c", 0.5, 1), offer("d", 2, 1)]


def test_round_robin_deals_out_in_order_of_arrival() -> None:
    fleet = run_fleet(members(2), deal_out(OFFERS, 2), UnitCost(), simulate)
    assert ends(fleet) == {"a": 9, "b": 1, "c": 10, "d": 3}  # c goes to the engine that a keeps busy


def test_least_outstanding_looks_at_what_has_not_ended() -> None:
    fleet = run_least_outstanding(members(2), OFFERS, UnitCost())
    assert ends(fleet) == {"a": 9, "b": 1, "c": 10, "d": 3}  # at 0.5 b's iteration is still running: a tie, the first
    later = [offer("a", 0, 9), offer("b", 0, 1), offer("c", 1, 1), offer("d", 1.5, 1)]
    assert ends(run_least_outstanding(members(2), later, UnitCost())) == {"a": 9, "b": 1, "c": 2, "d": 10}


def test_records_come_back_in_order_of_offer_and_nobody_is_lost() -> None:
    many = [offer(f"r{place}", place * 0.3, place % 5 + 1) for place in range(40)]
    for fleet in (
        run_fleet(members(3), deal_out(many, 3), UnitCost(), leap),
        run_least_outstanding(members(3), many, UnitCost()),
    ):
        assert [record.id for record in fleet.records] == [each.request.id for each in many]
        assert all(record.ended is not None for record in fleet.records)


def test_a_class_runs_on_an_engine_with_its_own_limits() -> None:
    offers = [
        offer("x", 0, 2, "chat"),
        offer("y", 0, 2, "chat"),
        offer("z", 0, 2, "report"),
        offer("w", 0, 2, "report"),
    ]
    fleet = run_fleet(
        members(2, Limits(8, 2), Limits(8, 1)), split_by_group(offers, ["chat", "report"]), UnitCost(), simulate
    )
    assert ends(fleet) == {"x": 2, "y": 2, "z": 2, "w": 4}


def test_a_group_without_a_class_is_refused() -> None:
    with pytest.raises(InputError, match="'chat'.*report"):
        split_by_group([offer("x", 0, 1, "chat")], ["report"])


def test_one_replica_is_the_engine_itself() -> None:
    alone = simulate(members(1)[0].engine, LIMITS, UnitCost(), OFFERS)
    for fleet in (
        run_fleet(members(1), deal_out(OFFERS, 1), UnitCost(), leap),
        run_least_outstanding(members(1), OFFERS, UnitCost()),
    ):
        assert [list(record.deliveries) for record in fleet.records] == [
            list(record.deliveries) for record in alone.records
        ]


def test_two_requests_of_one_name_are_refused() -> None:
    with pytest.raises(InputError, match="same request id"):
        run_least_outstanding(members(2), [offer("a", 0, 1), offer("a", 9, 1), offer("a", 9, 1)], UnitCost())
