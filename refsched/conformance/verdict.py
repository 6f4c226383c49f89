"""The verdict: the strongest of safe, refines and exact that a trace reaches, and where the next one breaks.

exact implies refines implies safe. Events come one at a time; nothing is kept but the books, so a trace of any length
is judged in bounded memory.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from refsched.conformance.breach import Breach
from refsched.conformance.choice import Choice
from refsched.conformance.desk import Finding
from refsched.conformance.exact import Comparison
from refsched.conformance.invariants import PLAN_CHECKS, RESULT_CHECKS, SUBMIT_CHECKS
from refsched.conformance.ledger import Ledger, Totals
from refsched.conformance.liveness import Liveness, Watch, find_idle, find_oldest_preempted
from refsched.conformance.marks import Marks
from refsched.conformance.messages import Told
from refsched.conformance.recording import Opening
from refsched.conformance.relation import Relation, make_relation
from refsched.conformance.scenario import History
from refsched.conformance.scene import Planning, Result
from refsched.dialect import Dialect
from refsched.model import Cancelled, Completed, Event, Failed, Planned, Submitted
from refsched.scheduling.engine import ReferenceEngine

Page = Mapping[str, object]
RELATIONS = ("none", "safe", "refines", "exact")
EMPTY = frozenset[str]()
PLAN_FIELDS = frozenset({"preempted", "rejected", "cached"})


@dataclass(frozen=True, slots=True)
class Verdict:
    """Hold what was found; `unsupported` says why a stronger relation could not even be looked for."""

    relation: str
    liveness: Liveness
    asked: str
    broken: tuple[Breach, ...]
    remarks: tuple[Breach, ...]
    scenarios: Mapping[str, Page]  # by clause
    passed: tuple[str, ...]
    inconclusive: tuple[str, ...]
    totals: Totals
    dialect: Dialect | None
    unsupported: str | None = None

    def conforms(self) -> bool:
        """Tell whether the relation asked for holds and the run does not end stuck or in a circle."""
        strong_enough = RELATIONS.index(self.relation) >= RELATIONS.index(self.asked)
        return strong_enough and (self.liveness.kind in ("live", "unknown") or self.liveness.waived)


class Judge:
    """Judge one trace, event by event [CNF-SAFE-1, CNF-REF-1, CNF-EXA-1, CNF-OPEN-1]."""

    def __init__(self, opening: Opening, choice: Choice):
        limits = opening.limits
        self.dialect, self.unsupported, self.promised = choice
        dialect = self.dialect
        shares = bool(opening.dialect.get("prefix_cache")) or (dialect is not None and dialect.prefix_cache)
        self.books = (
            Ledger(limits, shares) if dialect is None else Ledger(limits, shares, dialect.stop, dialect.decodes_counted)
        )
        self.marks = Marks()
        self.watch = Watch(
            opening.dialect.get("impossible") == "admit" if dialect is None else dialect.impossible != "reject"
        )
        self.relation: Relation | None = make_relation(dialect, limits) if dialect is not None else None
        self.exact: Comparison | None = (
            Comparison(ReferenceEngine(dialect, limits), limits) if dialect is not None else None
        )
        self.refuses_late = dialect is not None and dialect.planning_rejects != "nothing"
        self.below: dict[str, Breach] = {}  # where refines and exact end
        self.history = History()
        self.scenarios: dict[str, Page] = {}
        self.hello = opening.dialect

    def take(self, told: Told) -> None:
        """Judge one event, then write it down."""
        event = told.event
        self.history.add(told)
        fallen = len(self.marks.broken)
        if isinstance(event, Planned):
            self.take_plan(event, told)
        elif isinstance(event, Completed):
            event = self.fill_in(event, told)
            self.take_result(event, told)
        elif isinstance(event, Submitted):
            self.marks.check(SUBMIT_CHECKS, EMPTY, self.books.iteration, self.books, event)
            self.books.submit(event.request, event.rejected is not None)
            self.watch.greet()
        elif isinstance(event, Cancelled):
            self.books.cancel(event.id)
            self.watch.greet()
        elif not told.unsupported or event.op in ("plan", "complete"):
            self.fail(event)
        if len(self.marks.broken) > fallen:
            self.relation = self.exact = None
        self.compare(event, told)
        if len(self.marks.broken) + len(self.below) + len(self.marks.remarks) > len(self.scenarios):
            self.keep_scenario(told.row)

    def keep_scenario(self, row: int) -> None:
        """Keep what led to the clauses that have just broken, and the row of the answer that broke them."""
        page: Page | None = None
        for breach in (*self.marks.broken.values(), *self.below.values(), *self.marks.remarks.values()):
            if breach.clause not in self.scenarios:
                page = page or {"row": row, **self.history.page(self.books, dict(self.hello))}
                self.scenarios[breach.clause] = page

    # POLICY-FREE

    def take_plan(self, event: Planned, told: Told) -> None:
        """Check a plan."""
        books, state = self.books, event.state
        number = books.iteration + 1
        scene = Planning(books, event.plan, state, number, dict(event.plan.cached))
        self.marks.check(PLAN_CHECKS, self.get_told(event, told), number, scene)
        books.apply_plan(event)
        self.watch.see_plan(event.plan)
        self.marks.remark(find_idle(books, event))
        if self.dialect is None or self.dialect.policy == "fcfs":
            self.marks.remark(find_oldest_preempted(books, event))

    def get_told(self, event: Planned, told: Told) -> frozenset[str]:
        """Name what a plan's answer tells; without a prefix cache there are no hits to tell."""
        state = event.state
        names = {"free": state.free, "held": state.held, "running": state.running, "waiting": state.waiting}
        hits = frozenset() if self.books.shares_blocks else frozenset({"cached"})
        return (PLAN_FIELDS - told.omitted) | hits | {name for name, value in names.items() if value is not None}

    def fill_in(self, event: Completed, told: Told) -> Completed:
        """Supply emissions and ends that the trace leaves out, by the rules of the model."""
        emitted = self.books.expect_emitted() if "emitted" in told.omitted else event.emitted
        finished = self.books.expect_finished(emitted) if "finished" in told.omitted else event.finished
        return Completed(emitted, finished, event.free) if told.omitted else event

    def take_result(self, event: Completed, told: Told) -> None:
        """Check a result."""
        books = self.books
        if books.plan is None:  # no reader lets this pass, but a driver may do it
            because = f"after iteration {books.iteration} a result comes without a plan"
            self.marks.broken.setdefault("SCH-OUT-1", Breach("SCH-OUT-1", books.iteration, because))
            return
        scene = Result(books, books.plan, books.state, event, books.iteration, told.claim)
        names = {"free": event.free, "known": books.state.free, "held": books.state.held}
        tells = {name for name, value in names.items() if value is not None}
        tells |= {"emitted", "finished"} - told.omitted | (set() if books.shares_blocks else {"unshared"})
        self.marks.check(RESULT_CHECKS, frozenset(tells), books.iteration, scene)
        books.apply_result(event)
        self.watch.see_result(books, event)

    def fail(self, event: Event) -> None:
        """Note that the engine answered with an error of its own [MOD-ANS-1]."""
        assert isinstance(event, Failed)
        number = self.books.iteration + (event.op == "plan")
        because = f"iteration {number}: the engine answers {event.op} with an error: {' '.join(event.error.split())}"
        self.marks.broken.setdefault("MOD-ANS-1", Breach("MOD-ANS-1", number, because))

    # UNDER A DIALECT

    def compare(self, event: Event, told: Told) -> None:
        """Ask the relation and the reference about an event, each up to its first breach."""
        if "preempted" in told.omitted or ("rejected" in told.omitted and self.refuses_late):
            self.relation = self.exact = None
            self.unsupported = self.unsupported or "the trace does not say who was preempted, or refused while planning"
        if self.relation is not None:
            finding = self.ask_relation(self.relation, event)
            if finding is not None:
                self.below["refines"] = Breach(finding.clause, self.books.iteration, finding.because)
                self.relation = None
        if self.exact is not None:
            difference = self.exact.follow(event, "cached" not in told.omitted)
            if difference is not None:
                because = f"iteration {self.books.iteration} differs in {difference}"
                self.below["exact"] = Breach("CNF-EXA-1", self.books.iteration, because)
                self.exact = None

    def ask_relation(self, relation: Relation, event: Event) -> Finding | None:
        """Pass an event on."""
        if isinstance(event, Planned):
            return relation.plan(event.plan, event.state)
        if isinstance(event, Submitted):
            return relation.submit(event.request, event.rejected)
        if isinstance(event, Completed):
            relation.complete(event.emitted, event.finished)
        elif isinstance(event, Cancelled):
            relation.cancel(event.id)
        return None

    # THE END

    def conclude(self, closed: bool, asked: str | None = None) -> Verdict:
        """Say what the trace reached."""
        self.watch.closed = closed
        liveness, breaches = self.watch.conclude(self.books)
        broken = [*self.marks.broken.values(), *breaches]
        relation = self.get_relation()
        if relation in ("safe", "refines") and self.below:
            broken.append(self.below.get("refines") or self.below["exact"])
        broken.sort(key=lambda breach: breach.iteration)
        for breach in breaches:
            self.scenarios.setdefault(breach.clause, self.history.page(self.books, dict(self.hello)))
        held = sorted(self.marks.held.keys() - self.marks.broken.keys() - self.marks.open.keys())
        return Verdict(
            relation,
            liveness,
            asked or self.promised,
            tuple(broken),
            tuple(self.marks.remarks.values()),
            self.scenarios,
            tuple(held),
            tuple(sorted(self.marks.open.keys() - self.marks.broken.keys())),
            self.books.totals,
            self.dialect,
            self.unsupported,
        )

    def get_relation(self) -> str:
        """Name the strongest relation that holds."""
        if self.marks.broken:
            return "none"
        if self.relation is None:
            return "safe"
        return "refines" if self.exact is None else "exact"


def judge(opening: Opening, events: Iterable[Told], choice: Choice) -> Judge:
    """Judge a whole trace; ask the judge returned for its conclusion."""
    judge = Judge(opening, choice)
    for told in events:
        judge.take(told)
    return judge
