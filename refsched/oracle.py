"""The oracle for other people's tests: is this plan right, in the state that the scheduler was in?

`plan` gives the reference's plan for a snapshot, `assert_plan` fails with the judge's sentence where a plan breaks a
clause, and `Oracle` follows an engine through a whole run. What a test does not tell is not looked at.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from refsched.conformance.breach import Breach
from refsched.conformance.choice import Choice
from refsched.conformance.ledger import Account
from refsched.conformance.members import Member
from refsched.conformance.messages import Told
from refsched.conformance.recording import Opening
from refsched.conformance.verdict import Judge
from refsched.dialect import Dialect, get_dialect
from refsched.errors import InputError
from refsched.model import (
    LARGEST_COUNT,
    Cancelled,
    Completed,
    Entry,
    Event,
    Limits,
    Plan,
    Planned,
    Request,
    State,
    Submitted,
    check_count,
)
from refsched.scheduling.engine import ReferenceEngine
from refsched.scheduling.kv import get_longest
from refsched.scheduling.live import Live
from refsched.units import Blocks, Tokens, ceil_div

Entries = Plan | Mapping[str, Tokens] | Iterable[Sequence[object]]
UNKNOWN_OUTPUT: Tokens = LARGEST_COUNT // 2  # where a test does not say when a request ends


@dataclass(frozen=True, slots=True)
class Job:
    """Show one request: its prompt, the tokens it knows by now (None: the prompt only), and those computed.

    `held` blocks are those of the computed tokens unless told; `place` in the order of arrival is that in the snapshot.
    """

    id: str
    prompt: Tokens
    known: Tokens | None = None
    computed: Tokens = 0
    output: Tokens | None = None
    priority: int = 0
    held: Blocks | None = None
    place: int | None = None

    def get_known(self) -> Tokens:
        """Count prompt and outputs so far."""
        return self.prompt if self.known is None else self.known

    def get_goal(self) -> Tokens:
        """Count the tokens up to which it prefills: what it knew when it last began to wait."""
        known = self.get_known()
        decodes = known - self.computed == 1 and self.computed >= self.prompt
        return self.prompt if decodes else known

    def make_request(self) -> Request:
        """Make the request that was once submitted."""
        outputs = self.output or UNKNOWN_OUTPUT
        return Request(self.id, self.prompt, outputs, self.priority)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Show a scheduler between two iterations: its queues in order, and its free blocks (None: the rest)."""

    running: Sequence[Job] = ()
    waiting: Sequence[Job] = ()
    free: Blocks | None = None

    def jobs(self) -> list[tuple[int, Job]]:
        """List all jobs with their places, running ones first."""
        listed = [*self.running, *self.waiting]
        return [(number if job.place is None else job.place, job) for number, job in enumerate(listed)]


def plan(snapshot: Snapshot, limits: Limits, dialect: str | Dialect = "vllm-v1") -> Plan:
    """Give the plan of the reference for a snapshot; raise InputError where the snapshot cannot be."""
    chosen = choose(dialect)
    check_snapshot(snapshot, limits, chosen)
    engine = ReferenceEngine(chosen, limits)
    for place, job in snapshot.jobs():
        live = engine.live[job.id] = Live(job.make_request(), place)
        live.known, live.computed, live.goal = job.get_known(), job.computed, job.get_goal()
        held = get_held(job, limits)
        if held:
            engine.queues.pool.held[job.id] = held
    engine.queues.running = [engine.live[job.id] for job in snapshot.running]
    engine.queues.waiting.extend(engine.live[job.id] for job in snapshot.waiting)
    engine.queues.pool.free = get_free(snapshot, limits, engine.queues.pool.total)  # type: ignore[misc]  # no cache
    return engine.plan()


def assert_plan(
    snapshot: Snapshot,
    plan: Entries,
    limits: Limits,
    dialect: str | Dialect = "vllm-v1",
    preempted: Sequence[str] = (),
    iteration: int = 0,
) -> None:
    """Raise AssertionError with the judge's sentence where a plan is not allowed in a snapshot.

    A plan is a Plan, a map from id to tokens, or rows [id, tokens] or [id, start, tokens].
    """
    chosen = choose(dialect)
    check_snapshot(snapshot, limits, chosen)
    judge = Judge(Opening({}, "", {}, limits), Choice(chosen))
    show_snapshot(judge, snapshot, limits, iteration)
    starts = {job.id: job.computed for _, job in snapshot.jobs()}
    demand(judge, Planned(read_plan(plan, preempted, starts)))


class Oracle:
    """Follow an engine through a run; every method raises AssertionError with the judge's sentence."""

    def __init__(self, limits: Limits, dialect: str | Dialect = "vllm-v1"):
        self.dialect, self.limits = choose(dialect), limits
        self.judge = Judge(Opening({}, "", {}, limits), Choice(self.dialect))

    def submit(
        self,
        id: str,
        prompt: Tokens,
        output: Tokens,
        priority: int = 0,
        prefix: Sequence[int] = (),
        rejected: str | None = None,
    ) -> None:
        """Tell that a request was submitted, and the reason if it was refused."""
        demand(self.judge, Submitted(Request(id, prompt, output, priority, tuple(prefix)), rejected))

    def plan(
        self,
        plan: Entries,
        preempted: Sequence[str] = (),
        cached: Mapping[str, Tokens] | None = None,
        state: State = State(),
    ) -> None:
        """Tell what was planned, and what else the engine shows: cache hits, blocks, queues."""
        live = self.judge.books.live
        starts = {id: 0 if id in preempted else account.computed for id, account in live.items()}
        hits = {id: tokens for id, tokens in (cached or {}).items() if not starts.get(id)}
        made = read_plan(plan, preempted, starts | hits, tuple((cached or {}).items()))
        left_out = frozenset() if cached is not None or not self.dialect.prefix_cache else frozenset({"cached"})
        demand(self.judge, Planned(made, state), left_out)

    def complete(
        self, emitted: Sequence[str] | None = None, finished: Sequence[str] | None = None, free: Blocks | None = None
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Tell the result of the plan; what is not told is supplied. Return who emitted and who ended."""
        books = self.judge.books
        got = tuple(books.expect_emitted() if emitted is None else emitted)
        ended = tuple(books.expect_finished(got) if finished is None else finished)
        demand(self.judge, Completed(got, ended, free))
        return got, ended

    def cancel(self, id: str) -> None:
        """Tell that a client gave a request up."""
        demand(self.judge, Cancelled(id))

    def end(self) -> None:
        """Tell that nothing more comes; fail where requests are left that can never end."""
        verdict = self.judge.conclude(closed=True)
        breaches = [each for each in verdict.broken if each.clause.startswith("LIV-")]
        if breaches and not verdict.conforms():
            raise AssertionError(breaches[0].sentence())


# READING WHAT A TEST SHOWS


def choose(dialect: str | Dialect) -> Dialect:
    """Find a dialect by its name."""
    return dialect if isinstance(dialect, Dialect) else get_dialect(dialect)


def check_snapshot(snapshot: Snapshot, limits: Limits, dialect: Dialect) -> None:
    """Refuse a snapshot that cannot be, or that cannot show what the dialect looks at."""
    if dialect.prefix_cache:
        raise InputError("a snapshot does not show a prefix cache; follow the run with Oracle", field="dialect")
    ids = [job.id for _, job in snapshot.jobs()]
    if len(set(ids)) < len(ids):
        raise InputError(f"{max(ids, key=ids.count)!r} stands twice", field="snapshot")
    for _, job in snapshot.jobs():
        check_count(job.prompt, f"{job.id}.prompt")
        check_count(job.computed, f"{job.id}.computed", least=0)
        if not job.prompt <= job.get_known() or not job.computed < job.get_known():
            raise InputError(
                f"has {job.computed} tokens computed of {job.get_known()} known, {job.prompt} in its prompt",
                field=job.id,
            )


def get_held(job: Job, limits: Limits) -> Blocks:
    """Count the blocks of a job."""
    return ceil_div(job.computed, limits.block_size) if job.held is None else job.held


def get_free(snapshot: Snapshot, limits: Limits, total: Blocks) -> Blocks:
    """Count the free blocks; raise InputError where more are held than there are."""
    free = total - sum(get_held(job, limits) for _, job in snapshot.jobs()) if snapshot.free is None else snapshot.free
    return check_count(free, "free", least=0) if limits.num_blocks is not None else free


def read_plan(
    plan: Entries, preempted: Sequence[str], starts: Mapping[str, Tokens], cached: tuple[tuple[str, Tokens], ...] = ()
) -> Plan:
    """Read a plan from what a test has at hand; where no start is told, a request goes on where it was."""
    if isinstance(plan, Plan):
        return replace(plan, entries=tuple(Entry(*entry) for entry in plan.entries))
    rows = plan.items() if isinstance(plan, Mapping) else plan
    return Plan(tuple(read_entry(tuple(row), starts) for row in rows), tuple(preempted), (), cached)


def read_entry(row: tuple[object, ...], starts: Mapping[str, Tokens]) -> Entry:
    """Read (id, tokens) or (id, start, tokens)."""
    if len(row) not in (2, 3) or not isinstance(row[0], str):
        raise InputError(f"{row!r} is neither (id, tokens) nor (id, start, tokens)", field="plan")
    numbers = [check_count(each, f"plan.{row[0]}", least=-LARGEST_COUNT) for each in row[1:]]
    start = numbers[0] if len(numbers) == 2 else starts.get(row[0], 0)
    return Entry(row[0], start, numbers[-1])


# SHOWING IT TO THE JUDGE


def show_snapshot(judge: Judge, snapshot: Snapshot, limits: Limits, iteration: int) -> None:
    """Open the judge's books as they stand in a snapshot."""
    judge.exact = None
    judge.books.iteration = iteration - 1
    for place, job in snapshot.jobs():
        request = job.make_request()
        account = Account(request, get_longest(request, limits, judge.books.stop), place)
        account.known, account.computed = job.get_known(), job.computed
        account.emitted = job.get_known() - job.prompt
        judge.books.live[job.id] = account
    if judge.relation is not None:
        desk = judge.relation.rule.desk
        desk.number = iteration - 1
        for place, job in snapshot.jobs():
            desk.live[job.id] = make_member(job, place, limits, judge.books.stop)
        desk.running = [desk.live[job.id] for job in snapshot.running]
        desk.waiting = [desk.live[job.id] for job in snapshot.waiting]
        desk.pool.free = get_free(snapshot, limits, desk.pool.free)  # type: ignore[misc]  # no cache: it counts


def make_member(job: Job, place: int, limits: Limits, stop: str) -> Member:
    """Put a job on the desk of the relation."""
    request = job.make_request()
    member = Member(request, place, get_longest(request, limits, stop), -1)
    member.known, member.computed, member.goal = job.get_known(), job.computed, job.get_goal()
    member.blocks = get_held(job, limits)
    return member


def demand(judge: Judge, event: Event, left_out: frozenset[str] = frozenset()) -> None:
    """Let the judge take an event; raise AssertionError with its sentence where a clause breaks with it."""
    before = {*judge.marks.broken, *judge.below}
    judge.take(Told(0, event, left_out))
    broken: list[Breach] = [breach for clause, breach in judge.marks.broken.items() if clause not in before]
    if "refines" in judge.below and "refines" not in before:
        broken.append(judge.below["refines"])
    if broken:
        raise AssertionError("; ".join(each.sentence() for each in broken))
