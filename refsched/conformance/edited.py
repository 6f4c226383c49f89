"""An engine whose answers are edited: right inside, wrong in what it says or does at one point."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from refsched.model import Entry, Plan, Request, State
from refsched.scheduling.engine import ReferenceEngine

EditPlan = Callable[["Edited", Plan], Plan]
EditState = Callable[[object, State], State]


def leave_plan(engine: "Edited", plan: Plan) -> Plan:
    """Edit nothing."""
    return plan


def leave_state(engine: object, state: State) -> State:
    """Edit nothing."""
    return state


class Edited:
    """Pass everything on to a reference engine, and edit its plans and what it tells of its state."""

    def __init__(self, engine: ReferenceEngine, plan: EditPlan = leave_plan, tell: EditState = leave_state):
        self.engine, self.edit_plan, self.tell = engine, plan, tell

    def submit(self, request: Request) -> str | None:
        """Pass a request on."""
        return self.engine.submit(request)

    def plan(self) -> Plan:
        """Edit a plan."""
        return self.edit_plan(self, self.engine.plan())

    def complete(self, emitted: Sequence[str], finished: Sequence[str]) -> None:
        """Pass a result on."""
        self.engine.complete(emitted, finished)

    def cancel(self, id: str) -> None:
        """Pass a cancellation on."""
        self.engine.cancel(id)

    def state(self) -> State:
        """Tell what the engine tells, edited."""
        return self.tell(self, self.engine.state())

    # EDITS

    def start_hits_at_0(self, plan: Plan) -> Plan:
        """Plan those that were found in the cache from their first token."""
        hits = {id for id, tokens in plan.cached if tokens > 0}
        return replace(plan, entries=tuple(e._replace(start=0) if e.id in hits else e for e in plan.entries))

    def tell_full_hits(self, plan: Plan) -> Plan:
        """Say of those that were found in part that they were found in whole."""
        known = {id: live.known for id, live in self.engine.live.items()}
        return replace(plan, cached=tuple((id, known[id] if tokens else 0) for id, tokens in plan.cached))

    def shorten_hits(self, plan: Plan) -> Plan:
        """Compute the last block of a hit anew."""
        size = self.engine.limits.block_size
        hits = {id for id, tokens in plan.cached if tokens > 0}
        cached = tuple((id, tokens - size if tokens else 0) for id, tokens in plan.cached)
        entries = tuple(Entry(e.id, e.start - size, e.count + size) if e.id in hits else e for e in plan.entries)
        return replace(plan, cached=cached, entries=entries)

    def put_off_decodes(self, plan: Plan) -> Plan:
        """Leave the decodes of a mixed plan out."""
        prompts = {id: live.request.prompt for id, live in self.engine.live.items()}
        chunks = tuple(entry for entry in plan.entries if entry.start < prompts[entry.id])
        return self.leave_out(plan, chunks) if chunks else plan

    def stop_at_head(self, plan: Plan) -> Plan:
        """Leave out the chunks behind the first waiting request that gets nothing."""
        planned = {entry.id for entry in plan.entries}
        blocked: set[str] = set()
        for live in self.engine.queues.waiting:
            if blocked or live.id not in planned:
                blocked.add(live.id)
        return self.leave_out(plan, tuple(entry for entry in plan.entries if entry.id not in blocked))

    def leave_out(self, plan: Plan, kept: tuple[Entry, ...]) -> Plan:
        """Take back what the engine counted for the entries that are left out; their blocks stay."""
        for id, start, _ in set(plan.entries) - set(kept):
            self.engine.live[id].computed = start
        return replace(plan, entries=kept)


def tell_nothing_of_queues(engine: object, state: State) -> State:
    """Leave out what is told of the queues."""
    return replace(state, running=None, waiting=None)


def tell_nothing_of_blocks(engine: object, state: State) -> State:
    """Leave out what is told of the pool."""
    return replace(state, held=None, free=None)
