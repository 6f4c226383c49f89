"""Liveness: does the work end? Stuck and livelocked runs are told apart from those that were only cut off.

Stuck: the last plan of a closed trace is empty, preempts and refuses nobody, and requests are live. Livelock: a state
repeats after a preemption, with no emission, arrival or cancellation in between [LIV-END-1, LIV-LOOP-1, LIV-IMP-1].
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import NamedTuple

from refsched.conformance.breach import Breach, shorten_list
from refsched.conformance.ledger import Account, Ledger
from refsched.model import Completed, Plan, Planned
from refsched.scheduling.kv import explain_impossible
from refsched.units import ceil_div

REMEMBERED = 4096  # states since the last news; a livelock with a longer period is not seen
REPEATS_UNTOLD = 2  # so often a state must have been there before, where the order of the queues is not told
Signature = tuple[object, ...]


class Seen(NamedTuple):
    """Note where a state was last seen, how many preemptions there had been, and how often it was seen."""

    iteration: int
    preempted: int
    times: int


@dataclass(frozen=True, slots=True)
class Liveness:
    """Say how a trace ends: live, stuck, livelock or unknown; `waived` where impossible requests were let in."""

    kind: str
    period: int | None = None
    waived: bool = False


class Watch:
    """Follow a trace and notice that nothing moves, or that everything moves in a circle."""

    def __init__(self, may_admit_impossible: bool):
        self.may_admit_impossible = may_admit_impossible
        self.seen: OrderedDict[Signature, Seen] = OrderedDict()
        self.preempted = 0
        self.period: int | None = None
        self.is_idle = False
        self.closed = False

    def forget(self) -> None:
        """Start afresh: something new happened."""
        self.seen.clear()
        self.period = None

    def greet(self) -> None:
        """Start afresh: something came from outside."""
        self.forget()
        self.is_idle = False

    def see_plan(self, plan: Plan) -> None:
        """Note whether a plan moves anything."""
        self.is_idle = not (plan.entries or plan.preempted or plan.rejected)
        self.preempted += len(plan.preempted)

    def see_result(self, books: Ledger, event: Completed) -> None:
        """Note the state after a result, and whether it was there before a preemption."""
        if event.emitted or event.finished:
            self.forget()
        state = books.state
        is_told = state.running is not None and state.waiting is not None
        signature = get_signature(books, state.running or (), state.waiting or ()) if is_told else get_counts(books)
        before = self.seen.get(signature, Seen(books.iteration, self.preempted, 0))
        self.seen[signature] = Seen(books.iteration, self.preempted, before.times + 1)
        if before.preempted < self.preempted and before.times >= (1 if is_told else REPEATS_UNTOLD):
            self.period = self.period or books.iteration - before.iteration
        if len(self.seen) > REMEMBERED:
            self.seen.popitem(last=False)

    def conclude(self, books: Ledger) -> tuple[Liveness, list[Breach]]:
        """Say how the trace ends, and which clauses that breaks."""
        if not books.live:
            return Liveness("live" if self.closed else "unknown"), []
        is_over = self.closed and books.plan is None  # nothing is outstanding, nothing left to come
        kind = "stuck" if self.is_idle and is_over else "livelock" if self.period else "unknown"
        if kind == "unknown":
            return Liveness(kind), []
        impossible = [
            id for id, each in books.live.items() if explain_impossible(each.request, books.limits, books.stop)
        ]
        waived = bool(impossible) and self.may_admit_impossible
        breaches = [] if waived else list_breaches(kind, self.period, books, impossible)
        return Liveness(kind, self.period if kind == "livelock" else None, waived), breaches


def get_signature(books: Ledger, running: tuple[str, ...], waiting: tuple[str, ...]) -> Signature:
    """Reduce a state to what decides the next plans."""
    live = books.live
    return tuple([tuple([(id, live[id].computed) for id in queue if id in live]) for queue in (running, waiting)])


def get_counts(books: Ledger) -> Signature:
    """Reduce a state whose queues are not told to the tokens computed."""
    return tuple([(id, account.computed) for id, account in books.live.items()])


def list_breaches(kind: str, period: int | None, books: Ledger, impossible: list[str]) -> list[Breach]:
    """Name the clauses that a run which cannot go on breaks [LIV-END-1, LIV-LOOP-1, LIV-IMP-1]."""
    live = shorten_list([describe(each, books) for each in books.live.values()])
    circle = (
        f"its state repeats every {period} iterations without an output"
        if kind == "livelock"
        else "nothing is planned any more"
    )
    because = f"after iteration {books.iteration} {circle}, and these requests are live: {live}"
    clauses = ["LIV-LOOP-1"] * (kind == "livelock") + ["LIV-IMP-1" if impossible else "LIV-END-1"]
    if impossible:
        why = explain_impossible(books.live[impossible[0]].request, books.limits, books.stop)
        because += f"; {impossible[0]} can never finish ({why}) and was not refused"
    return [Breach(clause, books.iteration, because) for clause in clauses]


def describe(account: Account, books: Ledger) -> str:
    """Show where a request stands."""
    return f"{account.request.id} ({account.computed} of {account.known} known tokens computed)"


# WHAT SHOULD NOT BE


def find_idle(books: Ledger, event: Planned) -> Breach | None:
    """Find a request that could run in an iteration, already in the books, that runs nothing [LIV-IDLE-1]."""
    if event.plan.entries or event.state.free is None:
        return None
    for id, account in books.live.items():
        missing = ceil_div(account.known, books.limits.block_size) - (account.held or 0)
        if missing <= event.state.free and not explain_impossible(account.request, books.limits, books.stop):
            needs = f"all its known tokens need {max(missing, 0)} of {event.state.free} free blocks"
            because = f"iteration {books.iteration} plans nothing; {id} is live, and {needs}"
            return Breach("LIV-IDLE-1", books.iteration, because)
    return None


def find_oldest_preempted(books: Ledger, event: Planned) -> Breach | None:
    """Find the oldest live request among the preempted [LIV-OLD-1]."""
    if not event.plan.preempted or not books.live:
        return None
    oldest = min(books.live.values(), key=lambda account: account.place)
    if oldest.request.id not in event.plan.preempted or explain_impossible(oldest.request, books.limits, books.stop):
        return None
    return Breach(
        "LIV-OLD-1",
        books.iteration,
        f"iteration {books.iteration} preempts {oldest.request.id}, the oldest live request",
    )
