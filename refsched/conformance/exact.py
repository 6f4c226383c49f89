"""Exactness: does a reference engine, driven by a recorded trace, decide the same in every iteration?

Equal means: the same map id -> (start, count), the same preempted ids in the same order, the same refusals, and,
where the trace tells them, the same queues and the same blocks.
"""

from refsched.dialect import get_dialect
from refsched.model import Cancelled, Completed, Event, Limits, Plan, Planned, State, Submitted, Trace
from refsched.scheduling.engine import Engine, ReferenceEngine

NOT_OPTIONS = ("name", "note")


def make_reference(trace: Trace) -> ReferenceEngine:
    """Make the reference engine that a trace's own hello and limits describe; raise InputError if it cannot be."""
    options = {name: value for name, value in trace.dialect.items() if name not in NOT_OPTIONS}
    return ReferenceEngine(get_dialect(str(trace.dialect.get("name")), options), trace.limits)


class Comparison:
    """Drive an engine in lockstep with what was recorded; `iteration` counts plans from 0."""

    def __init__(self, engine: Engine, limits: Limits):
        self.engine, self.limits = engine, limits
        self.iteration = -1

    def follow(self, event: Event, cached_told: bool = True) -> str | None:
        """Let the engine take the next event; describe the difference, or return None [CNF-EXA-1]."""
        if isinstance(event, Planned):
            self.iteration += 1
            return compare_plans(event.plan, self.engine.plan(), cached_told) or compare_states(
                event.state, self.engine.state(), self.limits
            )
        if isinstance(event, Completed):
            self.engine.complete(event.emitted, event.finished)
            return None if event.free is None else compare("free blocks after it", event.free, self.engine.state().free)
        if isinstance(event, Submitted):
            return compare("the request is taken", event.rejected is None, self.engine.submit(event.request) is None)
        if isinstance(event, Cancelled):
            self.engine.cancel(event.id)
        return None


def find_difference(trace: Trace, engine: Engine, limits: Limits) -> str | None:
    """Drive `engine` through `trace`; describe the first decision in which they differ, or return None."""
    comparison = Comparison(engine, limits)
    for event in trace.events:
        difference = comparison.follow(event)
        if difference is not None:
            return f"iteration {comparison.iteration}: {difference}"
    return None


def compare(what: str, recorded: object, reference: object) -> str | None:
    """Say that two values differ, or return None."""
    return None if recorded == reference else f"{what}: recorded {recorded}, reference {reference}"


def compare_plans(recorded: Plan, reference: Plan, cached_told: bool = True) -> str | None:
    """Compare two plans; the order of entries does not matter, the order of preempted requests does."""
    maps = [{entry.id: (entry.start, entry.count) for entry in plan.entries} for plan in (recorded, reference)]
    return (
        compare("entries", *maps)
        or compare("number of entries", len(recorded.entries), len(reference.entries))
        or compare("preempted", recorded.preempted, reference.preempted)
        or compare("rejected", recorded.rejected, reference.rejected)
        or (compare("cached", dict(recorded.cached), dict(reference.cached)) if cached_told else None)
    )


def compare_states(recorded: State, reference: State, limits: Limits) -> str | None:
    """Compare what the trace tells of the state after planning; it may list the blocks of planned requests only."""
    held = recorded.held or {}
    mine = {id: (reference.held or {}).get(id, 0) for id in held}
    return (
        (
            None
            if recorded.free is None or limits.num_blocks is None
            else compare("free blocks", recorded.free, reference.free)
        )
        or compare("blocks held", dict(held), mine)
        or (None if recorded.running is None else compare("running", recorded.running, reference.running))
        or (None if recorded.waiting is None else compare("waiting", recorded.waiting, reference.waiting))
    )
