"""Drive a rule through the step simulator under watch: what the protocol shows is held against the books kept here."""

from collections.abc import Mapping, Sequence

from refsched.dialect import Dialect, get_dialect, list_dialects
from refsched.model import Limits, Plan, Request, State
from refsched.record import Outcome
from refsched.scheduling.engine import ReferenceEngine
from refsched.scheduling.policies import Policy
from refsched.simulation.cost import UnitCost
from refsched.simulation.step import Simulated, simulate
from refsched.workload.offer import Offer

# What a recorded engine does not keep, by design of its dialect; everything else is checked for it too.
NOT_KEPT: Mapping[str, tuple[str, ...]] = {
    "sarathi-serve-orca": ("blocks",),  # runs on past max_len and the blocks reserved for it
    "vidur-orca": ("blocks",),  # the same, and its slot is rounded down
    "sarathi-serve-sarathi": ("start", "preempted"),  # may plan a victim at once, without saying that it starts over
    "sarathi-serve-vllm": ("start", "budget"),  # resumes without recomputing; does not count decodes
}
CLEAN = tuple(name for name in list_dialects() if get_dialect(name).impossible == "reject")
RECORDED = tuple(name for name in list_dialects() if name not in CLEAN)


class Watched:
    """Pass everything on to a reference engine and keep known and computed tokens apart from it."""

    def __init__(self, engine: ReferenceEngine):
        self.engine, self.limits, self.dialect = engine, engine.limits, engine.dialect
        self.skip = NOT_KEPT.get(engine.dialect.name, ())
        self.known: dict[str, int] = {}
        self.computed: dict[str, int] = {}
        self.prompts: dict[str, int] = {}

    def submit(self, request: Request) -> str | None:
        """Begin to follow a request that is accepted."""
        reason = self.engine.submit(request)
        if reason is None:
            self.known[request.id] = self.prompts[request.id] = request.prompt
            self.computed[request.id] = 0
        return reason

    def plan(self) -> Plan:
        """Check a plan before it is run."""
        plan = self.engine.plan()
        for id in plan.preempted:
            self.computed[id] = 0
        for id in plan.rejected:
            del self.known[id]
        self.check_sizes(plan)
        self.check_decodes(plan)
        for entry in plan.entries:
            self.check_entry(plan, *entry)
        self.check_nobody_is_lost()
        return plan

    def check_sizes(self, plan: Plan) -> None:
        """Check budget, sequence limit, and that everybody is planned once and with a token at least."""
        limits, ids = self.limits, [entry.id for entry in plan.entries]
        total = sum(entry.count for entry in plan.entries)
        assert "budget" in self.skip or total <= (limits.token_budget or total), "over the budget"
        assert len(ids) <= (limits.max_seqs or len(ids)), "over the sequence limit"
        assert len(set(ids)) == len(ids), "planned twice"
        assert all(entry.count >= 1 for entry in plan.entries), "an entry of nothing"
        assert "preempted" in self.skip or not set(ids) & set(plan.preempted), "preempted and planned"

    def check_decodes(self, plan: Plan) -> None:
        """Check the decode limit, of those that were running before."""
        entered = dict(plan.cached)
        ends = {entry.id: entry.start + 1 for entry in plan.entries if entry.count == 1 and entry.id not in entered}
        decodes = [id for id, end in ends.items() if end == self.known[id] > self.prompts[id]]
        assert len(decodes) <= (self.dialect.decode_limit or len(decodes)), "over the decode limit"

    def check_entry(self, plan: Plan, id: str, start: int, count: int) -> None:
        """Check that an entry goes on where its request was, with known tokens and blocks for them."""
        stopped = dict(plan.cached).get(id, self.computed[id])
        assert "start" in self.skip or start == stopped, "starts where it did not stop"
        end = self.computed[id] = start + count
        assert end <= self.known[id], "plans tokens that nobody knows"
        slots = self.engine.queues.pool.held.get(id, 0) * self.limits.block_size
        needed = min(end, (self.limits.max_len or end) + (self.dialect.stop == "exceeds"))
        assert "blocks" in self.skip or slots >= needed, "plans tokens without blocks"

    def check_nobody_is_lost(self) -> None:
        """Check that every live request is in one queue, and every block in one place."""
        queues = self.engine.queues
        ids = [live.id for live in (*queues.running, *queues.waiting)]
        assert sorted(ids) == sorted(self.known), "somebody got lost"
        assert queues.pool.is_conserved(), "blocks got lost"

    def complete(self, emitted: Sequence[str], finished: Sequence[str]) -> None:
        """Follow the result, and check that the finished hold nothing."""
        self.engine.complete(emitted, finished)
        for id in emitted:
            self.known[id] += 1
        for id in finished:
            self.end(id)
        self.check_nobody_is_lost()

    def cancel(self, id: str) -> None:
        """Follow a cancellation."""
        self.engine.cancel(id)
        self.end(id)
        self.check_nobody_is_lost()

    def end(self, id: str) -> None:
        """Forget a request, which must hold nothing any more."""
        del self.known[id]
        assert id not in self.engine.queues.pool.held, "gone and still holding blocks"

    def state(self) -> State:
        """Show the engine's state."""
        return self.engine.state()


def run_watched(dialect: Dialect, limits: Limits, offers: Sequence[Offer], select: Policy | None = None) -> Simulated:
    """Run offers through a watched engine (with `select` in place of its rule, if given) and check the records."""
    engine = ReferenceEngine(dialect, limits)
    engine.select_iteration = select or engine.select_iteration
    run = simulate(Watched(engine), limits, UnitCost(), offers, (), dialect.stop)
    requests = [offer.request for offer in sorted(offers, key=lambda offer: offer.at)]
    assert [record.id for record in run.records] == [request.id for request in requests], "somebody got lost"
    for request, record in zip(requests, run.records, strict=True):
        if record.outcome is Outcome.COMPLETED:
            assert len(record.deliveries) == count_outputs(dialect, limits, request), "not the outputs asked for"
    if run.ending.kind == "done":
        assert not engine.live and not engine.queues.pool.held, "a drained engine is not empty"
    return run


def count_outputs(dialect: Dialect, limits: Limits, request: Request) -> int:
    """Count the outputs a request gets at its end: as many as asked for, cut where max_len stops it."""
    if limits.max_len is None or dialect.stop == "never":
        return request.output
    room = limits.max_len - request.prompt + (dialect.stop == "exceeds")
    return min(request.output, max(room, 1))
