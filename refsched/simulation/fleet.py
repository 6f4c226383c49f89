"""Several engines at once: one per class of work with limits of its own [A23], or equal replicas behind a router.

Each engine has its own pool, queues and clock. The router is the simplest there is: `round-robin` deals requests out
in order of arrival; `least-outstanding` sends each to the engine with the fewest requests sent to it and not ended, the first of
equals. It knows nothing of lengths, prefixes or load, and never moves a request that it has sent.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from refsched.errors import InputError
from refsched.model import Limits
from refsched.record import Record
from refsched.scheduling.engine import ReferenceEngine
from refsched.simulation.cost import CostModel
from refsched.simulation.intake import sort_offers
from refsched.simulation.observe import Observer
from refsched.simulation.step import OnEnd, Simulated, Stepper, Totals, run_to_end
from refsched.units import Ticks
from refsched.workload.offer import Offer

ROUTERS = ("round-robin", "least-outstanding")
Method = Callable[..., Simulated]  # simulate or leap


@dataclass(frozen=True, slots=True)
class Member:
    """Name one engine of a fleet, with its limits."""

    name: str
    engine: ReferenceEngine
    limits: Limits


@dataclass(frozen=True, slots=True)
class Fleet:
    """Hold what a fleet gave: each member's run, and all records in order of offer."""

    members: tuple[Member, ...]
    runs: tuple[Simulated | Totals, ...]
    records: tuple[Record, ...]
    offered: tuple[int, ...] = ()  # requests sent to each member


def run_fleet(
    members: Sequence[Member],
    parts: Sequence[Sequence[Offer]],
    cost: CostModel,
    method: Method,
    observers: Sequence[Observer] = (),
    on_end: OnEnd | None = None,
) -> Fleet:
    """Run each member on its part of the offers; the parts are fixed beforehand."""
    runs = tuple(
        method(member.engine, member.limits, cost, part, observers, None, on_end)
        for member, part in zip(members, parts, strict=True)
    )
    return collect(members, runs, [offer for part in parts for offer in part])


def collect(members: Sequence[Member], runs: Sequence[Simulated], offers: Sequence[Offer]) -> Fleet:
    """Bring the records of all runs into order of offer."""
    records = {record.id: record for run in runs for record in run.records}
    ordered = sorted(offers, key=lambda offer: offer.at)
    offered = tuple(len(run.records) for run in runs)
    return Fleet(tuple(members), tuple(runs), tuple(records[offer.request.id] for offer in ordered), offered)


def split_by_group(offers: Sequence[Offer], groups: Sequence[str]) -> list[list[Offer]]:
    """Split offers by group; raise InputError for a group that no class takes."""
    parts: Mapping[str, list[Offer]] = {group: [] for group in groups}
    for offer in offers:
        if offer.group not in parts:
            known = ", ".join(groups)
            raise InputError(
                f"group {offer.group!r} of request {offer.request.id} has no class; there are {known}", field="--split"
            )
        parts[offer.group].append(offer)
    return list(parts.values())


def deal_out(offers: Sequence[Offer], count: int) -> list[list[Offer]]:
    """Deal offers out in order of arrival: round robin."""
    ordered = sorted(offers, key=lambda offer: offer.at)
    return [ordered[place::count] for place in range(count)]


def run_least_outstanding(
    members: Sequence[Member], offers: Sequence[Offer], cost: CostModel, on_end: OnEnd | None = None
) -> Fleet:
    """Run replicas step by step, sending each offer to the one with the fewest outstanding requests at its arrival."""
    steppers = [Stepper(member.engine, member.limits, cost, (), on_end=on_end) for member in members]
    for offer in sort_offers(offers):
        for stepper in steppers:
            run_until(stepper, offer.at)
        min(steppers, key=lambda stepper: count_outstanding(stepper, offer.at)).intake.add(offer)
    return collect(members, [run_to_end(stepper) for stepper in steppers], offers)


def run_until(stepper: Stepper, at: Ticks) -> None:
    """Run every iteration that starts before `at`: nothing that arrives then can change it."""
    while stepper.now < at and (stepper.progress.live or stepper.intake.queue):
        if stepper.go_on() is not None:
            break


def count_outstanding(stepper: Stepper, at: Ticks) -> int:
    """Count the requests sent to an engine that have not ended by `at`; those of an iteration still running count."""
    ending = len(stepper.last.finished) if stepper.last is not None and stepper.last.end > at else 0
    return len(stepper.progress.live) + len(stepper.intake.queue) + ending
