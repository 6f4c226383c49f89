"""The Engine protocol (edition 1) and the reference engine.

The loop is document A's [A5]: waiting and active requests -> a policy plans within the budget -> one iteration runs
-> finished requests retire and waiting ones refill their places.
"""

from collections.abc import Sequence
from typing import Protocol

from refsched.dialect import Dialect
from refsched.model import Limits, Plan, Request, State
from refsched.scheduling.kv import explain_impossible
from refsched.scheduling.live import Live
from refsched.scheduling.policies import POLICIES, REFUSALS
from refsched.scheduling.prefix import PrefixPool, Reuse
from refsched.scheduling.queues import Queues
from refsched.units import UNLIMITED, Tokens


class Engine(Protocol):
    """Be driven: one plan is outstanding at a time, and the driver says who emitted and who ended.

    A class or function that returns an Engine for some Limits is all that an engine author writes in Python.
    """

    def submit(self, request: Request) -> str | None:
        """Take a request, or return the reason for refusing it."""
        ...

    def plan(self) -> Plan:
        """Decide the next iteration; the planned tokens count as computed from now on [decision 7]."""
        ...

    def complete(self, emitted: Sequence[str], finished: Sequence[str]) -> None:
        """Learn the result of the planned iteration: who got an output token, and which of them ended."""
        ...

    def cancel(self, id: str) -> None:
        """Forget a live request and free what it holds."""
        ...

    def state(self) -> State:
        """Show queues, computed tokens and blocks, as far as they can be told."""
        ...


class ReferenceEngine:
    """Run one dialect's policy under some limits."""

    def __init__(self, dialect: Dialect, limits: Limits):
        self.dialect = dialect
        self.stop = dialect.stop
        self.limits = limits
        self.queues = Queues(dialect, limits)
        self.live: dict[str, Live] = {}
        self.submitted = 0
        self.select_iteration = POLICIES[dialect.rule]

    def submit(self, request: Request) -> str | None:
        """Let a request wait, or return why it can never finish [decision 3]."""
        if request.id in self.live:
            return f"a live request is already named {request.id}"
        if self.dialect.impossible == "reject":
            reason = self.explain_impossible(request)
            if reason is not None:
                return reason
        live = self.live[request.id] = Live(request, self.submitted)
        self.submitted += 1
        self.queues.enqueue(live)
        return None

    def explain_impossible(self, request: Request) -> str | None:
        """Say why a request can never finish under the limits, or can never enter under this rule."""
        reason = explain_impossible(request, self.limits, self.dialect.stop)
        refusal = REFUSALS.get(self.dialect.rule)
        return refusal(self.queues, request) if reason is None and refusal is not None else reason

    def plan(self) -> Plan:
        """Let the policy choose, count what it planned as computed, and forget whom it refused."""
        plan = self.select_iteration(self.queues)
        live = self.live
        for id, start, count in plan.entries:
            live[id].computed = start + count
        for id in plan.rejected:
            del live[id]
        return plan

    def complete(self, emitted: Sequence[str], finished: Sequence[str]) -> None:
        """Let emitted tokens be known, and retire the finished in the order given."""
        live = self.live
        for id in emitted:
            live[id].known += 1
        for id in finished:
            self.retire(id)

    def cancel(self, id: str) -> None:
        """Retire a request that its client gave up; an unknown one is no error."""
        if id in self.live:
            self.retire(id)

    def retire(self, id: str) -> None:
        """Free everything a request holds and forget it."""
        live = self.live.pop(id)
        try:
            self.queues.running.remove(live)
        except ValueError:
            self.queues.waiting.remove(live)
        self.queues.pool.release(id)

    def state(self) -> State:
        """Show the queues in order, and the pool."""
        queues, pool = self.queues, self.queues.pool
        return State(
            running=tuple(live.id for live in queues.running),
            waiting=tuple(live.id for live in queues.waiting),
            computed={live.id: self.count_computed(live) for live in self.live.values()},
            held=dict(pool.held),
            free=None if pool.total == UNLIMITED else pool.free,
        )

    def count_computed(self, live: Live) -> Tokens:
        """Count the tokens a request need not compute: those it has, or those that a lookup would find now."""
        return live.computed or len(self.queues.pool.find(live).blocks) * self.limits.block_size

    def reuse(self) -> Reuse | None:
        """Count what admissions found in the prefix cache, or return None where the dialect has none [A18]."""
        return self.queues.pool.reuse if isinstance(self.queues.pool, PrefixPool) else None

    def count_anew(self) -> None:
        """Forget the peak of the pool and what its prefix cache found so far; what the cache holds stays."""
        pool = self.queues.pool
        pool.lowest_free = pool.free
        if isinstance(pool, PrefixPool):
            pool.reuse = Reuse()
