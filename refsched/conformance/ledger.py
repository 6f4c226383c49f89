"""The judge's own books: what each live request knows, has computed and got, according to the trace alone.

The books follow what was observed, right or wrong, so that one breach does not make every later decision look like
another. They trust neither the engine nor the reference.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from refsched.model import Completed, Limits, Plan, Planned, Request, State
from refsched.scheduling.kv import get_longest
from refsched.units import Blocks, Tokens


class Account:
    """Follow one request; `held` is None while no answer has told it."""

    __slots__ = ("computed", "emitted", "held", "known", "longest", "place", "request")

    def __init__(self, request: Request, longest: Tokens, place: int):
        self.request = request
        self.place = place  # in the order of submission
        self.known: Tokens = request.prompt
        self.computed: Tokens = 0
        self.emitted: Tokens = 0
        self.longest = longest  # known tokens at its end
        self.held: Blocks | None = None


@dataclass(slots=True)
class Totals:
    """Count what a trace holds."""

    submitted: int = 0
    refused: int = 0
    iterations: int = 0
    entries: int = 0
    tokens: int = 0
    preempted: int = 0
    dropped: int = 0
    emitted: int = 0
    finished: int = 0
    cancelled: int = 0


class Ledger:
    """Keep the accounts of all live requests; memory follows their number, not the length of the trace."""

    def __init__(self, limits: Limits, shares_blocks: bool = False, stop: str = "reaches", counts_decodes: bool = True):
        self.limits = limits
        self.counts_decodes = counts_decodes  # whether the budget binds an iteration of decodes only
        self.stop = stop  # where max_len ends a request
        self.shares_blocks = shares_blocks  # one block may count for several holders: sums say nothing then
        self.live: dict[str, Account] = {}
        self.totals = Totals()
        self.iteration = -1
        self.plan: Plan | None = None
        self.state = State()

    def submit(self, request: Request, refused: bool) -> None:
        """Open an account for a request that the engine took."""
        self.totals.submitted += 1
        self.totals.refused += refused
        self.shares_blocks = self.shares_blocks or bool(request.prefix)
        if not refused:
            self.live[request.id] = Account(
                request, get_longest(request, self.limits, self.stop), self.totals.submitted
            )

    def apply_plan(self, event: Planned) -> None:
        """Write down a plan as it was observed."""
        plan, held = event.plan, event.state.held or {}
        self.plan, self.state = plan, event.state
        self.iteration += 1
        self.count(plan)
        for id in plan.preempted:
            if id in self.live:
                self.live[id].computed, self.live[id].held = 0, None
        for id in plan.rejected:
            self.live.pop(id, None)
        for id, start, count in plan.entries:
            if id in self.live:
                self.live[id].computed, self.live[id].held = start + count, None
        for id, blocks in held.items():
            if id in self.live:
                self.live[id].held = blocks

    def count(self, plan: Plan) -> None:
        """Add a plan to the totals."""
        totals = self.totals
        totals.iterations += 1
        totals.entries += len(plan.entries)
        totals.tokens += sum([entry.count for entry in plan.entries])
        totals.preempted += len(plan.preempted)
        totals.dropped += len(plan.rejected)

    def expect_emitted(self) -> tuple[str, ...]:
        """Name who should emit: each planned request with all known tokens computed [SCH-OUT-1, SCH-OUT-2]."""
        entries = self.plan.entries if self.plan is not None else ()
        live = self.live
        return tuple([each.id for each in entries if each.id in live and live[each.id].computed == live[each.id].known])

    def expect_finished(self, emitted: Iterable[str]) -> tuple[str, ...]:
        """Name who should end: each request whose next token is its last [SCH-OUT-3]."""
        return tuple([id for id in emitted if id in self.live and self.live[id].known + 1 >= self.live[id].longest])

    def apply_result(self, event: Completed) -> None:
        """Write down a result as it was observed."""
        for id in event.emitted:
            if id in self.live:
                self.live[id].known += 1
                self.live[id].emitted += 1
        for id in event.finished:
            self.live.pop(id, None)
        self.totals.emitted += len(event.emitted)
        self.totals.finished += len(event.finished)
        self.plan = None

    def cancel(self, id: str) -> None:
        """Close the account of a request that its client gave up."""
        self.totals.cancelled += self.live.pop(id, None) is not None
        self.state = replace(self.state, free=None)  # how many blocks came free is not told
