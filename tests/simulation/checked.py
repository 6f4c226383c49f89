"""An engine that is watched: every plan and every result is held against the rules that all policies obey."""

from collections.abc import Sequence

from refsched.dialect import get_dialect
from refsched.model import Limits, Plan, Request, State
from refsched.record import Outcome
from refsched.scheduling.engine import ReferenceEngine
from refsched.scheduling.policies import Policy
from refsched.simulation.cost import CostModel, UnitCost
from refsched.simulation.step import Simulated, simulate
from refsched.workload.offer import Offer


class Checked:
    """Pass everything on to a reference engine, and keep books of its own."""

    def __init__(self, engine: ReferenceEngine, limits: Limits):
        self.engine, self.limits = engine, limits
        self.known: dict[str, int] = {}
        self.computed: dict[str, int] = {}

    def submit(self, request: Request) -> str | None:
        """Begin to follow a request."""
        reason = self.engine.submit(request)
        if reason is None:
            self.known[request.id], self.computed[request.id] = request.prompt, 0
        return reason

    def plan(self) -> Plan:
        """Check a plan before it is run."""
        plan = self.engine.plan()
        for id in plan.preempted:
            self.computed[id] = 0
        cached = dict(plan.cached)
        self.check_sizes(plan)
        for entry in plan.entries:
            assert entry.id not in plan.preempted, "preempted and planned"
            assert entry.start == cached.get(entry.id, self.computed[entry.id]), "starts where it did not stop"
            self.computed[entry.id] = entry.start + entry.count
            assert self.computed[entry.id] <= self.known[entry.id], "plans tokens that nobody knows"
            held = self.engine.queues.pool.held.get(entry.id, 0)
            needed = min(self.computed[entry.id], self.limits.max_len or 10**9)
            assert held * self.limits.block_size >= needed, "plans tokens without blocks"
        assert self.engine.queues.pool.is_conserved(), "blocks got lost"
        return plan

    def check_sizes(self, plan: Plan) -> None:
        """Check budget, sequence limit and the entries themselves."""
        assert sum(entry.count for entry in plan.entries) <= (self.limits.token_budget or 10**9), "over the budget"
        assert len(plan.entries) <= (self.limits.max_seqs or 10**9), "over the sequence limit"
        assert len({entry.id for entry in plan.entries}) == len(plan.entries), "planned twice"
        assert all(entry.count >= 1 for entry in plan.entries), "an entry of nothing"

    def complete(self, emitted: Sequence[str], finished: Sequence[str]) -> None:
        """Check that the finished hold nothing."""
        self.engine.complete(emitted, finished)
        for id in emitted:
            self.known[id] += 1
        for id in finished:
            assert id not in self.engine.queues.pool.held, "finished and holding blocks"
        assert self.engine.queues.pool.is_conserved(), "blocks got lost"

    def cancel(self, id: str) -> None:
        """Check that the cancelled holds nothing."""
        self.engine.cancel(id)
        assert id not in self.engine.queues.pool.held, "cancelled and holding blocks"

    def state(self) -> State:
        """Show the engine's state."""
        return self.engine.state()


def run_checked(
    rule: str, limits: Limits, offers: Sequence[Offer], cost: CostModel | None = None, select: Policy | None = None
) -> Simulated:
    """Run offers through a watched engine (with `select` in place of its policy, if given) and check the end."""
    engine = ReferenceEngine(get_dialect(rule), limits)
    engine.select_iteration = select or engine.select_iteration
    run = simulate(Checked(engine, limits), limits, cost or UnitCost(), offers)
    assert len(run.records) == len(offers), "somebody got lost"
    for offer, record in zip(sorted(offers, key=lambda offer: offer.at), run.records, strict=True):
        assert record.id == offer.request.id
        if record.outcome is Outcome.COMPLETED:
            wanted = min(offer.request.output, (limits.max_len or 10**9) - offer.request.prompt)
            assert len(record.deliveries) == wanted, "not the outputs that were asked for"
        if record.outcome is Outcome.UNFINISHED:
            assert run.ending.kind != "done" and record.reason, "unfinished without a reason"
    if run.ending.kind == "done":
        assert not engine.live and not engine.queues.pool.held, "a drained engine is not empty"
    return run
