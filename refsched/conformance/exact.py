"""Exactness: does a reference engine, driven by a recorded trace, decide the same in every iteration?

Equal means: the same map id -> (start, count), the same preempted ids in the same order, the same refusals, and,
where the trace tells them, the same queues and the same blocks.
"""

from refsched.dialect import get_dialect
from refsched.model import Cancelled, Completed, Limits, Plan, Planned, State, Submitted, Trace
from refsched.scheduling.engine import Engine, ReferenceEngine

NOT_OPTIONS = ("name", "note")


def make_reference(trace: Trace) -> ReferenceEngine:
    """Make the reference engine that a trace's own hello and limits describe; raise InputError if it cannot be."""
    options = {name: value for name, value in trace.dialect.items() if name not in NOT_OPTIONS}
    return ReferenceEngine(get_dialect(str(trace.dialect.get("name")), options), trace.limits)


def find_difference(trace: Trace, engine: Engine, limits: Limits) -> str | None:
    """Drive `engine` through `trace`; describe the first decision in which they differ, or return None."""
    iteration = -1
    for event in trace.events:
        difference = None
        if isinstance(event, Submitted):
            difference = compare("the answer to submit", event.rejected is None, engine.submit(event.request) is None)
        elif isinstance(event, Planned):
            iteration += 1
            difference = compare_plans(event.plan, engine.plan()) or compare_states(event.state, engine.state(), limits)
        elif isinstance(event, Completed):
            engine.complete(event.emitted, event.finished)
            difference = None if event.free is None else compare("free blocks after it", event.free, engine.state().free)
        elif isinstance(event, Cancelled):
            engine.cancel(event.id)
        if difference is not None:
            return f"iteration {iteration}: {difference}"
    return None


def compare(what: str, recorded: object, reference: object) -> str | None:
    """Say that two values differ, or return None."""
    return None if recorded == reference else f"{what}: recorded {recorded}, reference {reference}"


def compare_plans(recorded: Plan, reference: Plan) -> str | None:
    """Compare two plans; the order of entries does not matter, the order of preempted requests does."""
    maps = [{entry.id: (entry.start, entry.count) for entry in plan.entries} for plan in (recorded, reference)]
    return (
        compare("entries", *maps)
        or compare("number of entries", len(recorded.entries), len(reference.entries))
        or compare("preempted", recorded.preempted, reference.preempted)
        or compare("rejected", recorded.rejected, reference.rejected)
        or compare("cached", dict(recorded.cached), dict(reference.cached))
    )


def compare_states(recorded: State, reference: State, limits: Limits) -> str | None:
    """Compare what the trace tells of the state after planning; it may list the blocks of planned requests only."""
    held = recorded.held or {}
    mine = {id: (reference.held or {}).get(id, 0) for id in held}
    return (
        (None if recorded.free is None or limits.num_blocks is None else compare("free blocks", recorded.free, reference.free))
        or compare("blocks held", dict(held), mine)
        or (None if recorded.running is None else compare("running", recorded.running, reference.running))
        or (None if recorded.waiting is None else compare("waiting", recorded.waiting, reference.waiting))
    )
