"""A second engine of vLLM V1, put together from parts: change one part, and one rule is broken.

It is written apart from the policies and shares nothing with them, so it also shows that the suite accepts a right
engine that it has not seen. `faults` changes its parts.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from refsched.model import Entry, Limits, Plan, Request, State
from refsched.units import UNLIMITED, Blocks, Tokens, ceil_div


@dataclass(slots=True)
class Job:
    """Follow one request."""

    request: Request
    place: int
    known: Tokens
    computed: Tokens = 0
    held: Blocks = 0

    @property
    def id(self) -> str:
        """Give the request's id."""
        return self.request.id


class Sketch:
    """Keep two lists of jobs and a count of free blocks; every decision is one of `parts`."""

    def __init__(self, limits: Limits, parts: "Parts"):
        self.limits, self.parts = limits, parts
        self.budget: Tokens = limits.token_budget or UNLIMITED
        self.seats: int = limits.max_seqs or UNLIMITED
        self.cap: Tokens = limits.chunk_cap or UNLIMITED
        self.max_len: Tokens = limits.max_len or UNLIMITED
        self.free: Blocks = limits.num_blocks or UNLIMITED
        self.running: list[Job] = []
        self.waiting: list[Job] = []
        self.submitted = 0
        self.left: Tokens = 0
        self.planned: dict[str, Entry] = {}
        self.gone: list[Job] = []

    # THE PROTOCOL

    def submit(self, request: Request) -> str | None:
        """Take a request, or say why not."""
        reason = self.parts.refuse(self, request)
        if reason is None:
            self.submitted += 1
            self.parts.enqueue(self, Job(request, self.submitted, request.prompt))
        return reason

    def plan(self) -> Plan:
        """Serve the running, admit the waiting."""
        self.left, self.planned, self.gone = self.parts.budget(self), {}, []
        alone = len(self.running) + len(self.waiting) <= 1
        cap = UNLIMITED if alone and self.parts.lifts_cap else self.parts.cap(self)
        for job in self.parts.order(self):
            self.serve(job, cap)
        if self.parts.may_admit(self):
            self.admit(cap)
        plan = Plan(tuple(self.planned.values()), tuple(job.id for job in self.gone))
        for job in self.running:
            entry = self.planned.get(job.id)
            job.computed = job.computed if entry is None else entry.start + entry.count
        return self.parts.finish(self, plan)

    def complete(self, emitted: Sequence[str], finished: Sequence[str]) -> None:
        """Learn a result."""
        for job in self.running:
            job.known += job.id in emitted
        for job in [each for each in self.running if each.id in finished]:
            self.parts.retire(self, job)

    def cancel(self, id: str) -> None:
        """Forget a request."""
        for job in [each for each in (*self.running, *self.waiting) if each.id == id]:
            self.parts.drop(self, job)

    def state(self) -> State:
        """Tell everything."""
        held = {job.id: job.held for job in self.running}
        free = None if self.limits.num_blocks is None else self.free
        queues = [tuple(job.id for job in queue) for queue in (self.running, self.waiting)]
        return self.parts.tell(self, State(queues[0], queues[1], None, held, free))

    # STEPS

    def serve(self, job: Job, cap: Tokens) -> None:
        """Give a running job its next tokens, making room for them."""
        share = self.parts.share(self, job, min(job.known - job.computed, cap, self.max_len - 1 - job.computed))
        if (
            job in self.running
            and share > 0
            and self.left > 0
            and self.parts.make_room(self, job, job.computed + share)
        ):
            self.parts.enter_plan(self, job, job.computed, share)

    def admit(self, cap: Tokens) -> None:
        """Admit from the head of the waiting list."""
        for job in tuple(self.waiting):
            if self.left <= 0 or not self.parts.has_seat(self):
                return
            share = self.parts.share(self, job, min(job.known, cap))
            if not self.parts.passes_gate(self, job, share):
                if self.parts.head_blocks:
                    return
                continue
            self.take(job, share)
            self.waiting.remove(job)
            self.running.append(job)
            self.parts.enter_plan(self, job, 0 if job.computed == 0 else job.computed, share)

    def blocks_for(self, tokens: Tokens) -> Blocks:
        """Count the blocks of so many tokens."""
        return ceil_div(min(tokens, self.max_len), self.limits.block_size)

    def take(self, job: Job, tokens: Tokens) -> None:
        """Let a job hold the blocks of its first tokens."""
        missing = max(0, self.blocks_for(tokens) + self.parts.spare_blocks - job.held)
        self.free -= missing
        job.held += missing

    def give_back(self, job: Job) -> None:
        """Take all blocks of a job."""
        self.free += job.held
        job.held = 0


# THE PARTS AS THEY SHOULD BE


def refuse(engine: Sketch, request: Request) -> str | None:
    """Refuse an id that is live, and what can never finish."""
    if any(job.id == request.id for job in (*engine.running, *engine.waiting)):
        return "this id is taken"
    if request.prompt >= engine.max_len:
        return "too long"
    longest = max(min(request.prompt + request.output, engine.max_len), request.prompt + 1)
    blocks = ceil_div(longest - 1, engine.limits.block_size)
    return None if blocks <= (engine.limits.num_blocks or UNLIMITED) else "does not fit the pool"


def make_room(engine: Sketch, job: Job, tokens: Tokens) -> bool:
    """Take blocks, preempting one after another; False if the job itself had to go."""
    while engine.blocks_for(tokens) + engine.parts.spare_blocks - job.held > engine.free:
        victim = engine.parts.choose_victim(engine)
        engine.parts.preempt(engine, victim)
        if victim is job:
            return False
    engine.take(job, tokens)
    return True


def preempt(engine: Sketch, victim: Job) -> None:
    """Take everything from a job and let it wait again."""
    engine.running.remove(victim)
    engine.give_back(victim)
    victim.computed = 0
    engine.left += engine.planned.pop(victim.id).count if victim.id in engine.planned else 0
    engine.gone.append(victim)
    engine.parts.requeue(engine, victim)


def share(engine: Sketch, job: Job, wanted: Tokens) -> Tokens:
    """Grant what is wanted and left."""
    return min(wanted, engine.left)


def enter_plan(engine: Sketch, job: Job, start: Tokens, count: Tokens) -> None:
    """Plan some tokens."""
    engine.planned[job.id] = Entry(job.id, start, count)
    engine.left -= count


def passes_gate(engine: Sketch, job: Job, share: Tokens) -> bool:
    """Let a job in if everything it knows fits now."""
    return engine.blocks_for(job.known) <= engine.free


def retire(engine: Sketch, job: Job) -> None:
    """Forget a running job and free its blocks."""
    engine.give_back(job)
    engine.running.remove(job)


def drop(engine: Sketch, job: Job) -> None:
    """Forget any job and free its blocks."""
    engine.give_back(job)
    (engine.running if job in engine.running else engine.waiting).remove(job)


def requeue_in_front(engine: Sketch, job: Job) -> None:
    """Let a job wait before all others."""
    engine.waiting.insert(0, job)


def enqueue_at_end(engine: Sketch, job: Job) -> None:
    """Let a job wait behind all others."""
    engine.waiting.append(job)


def enqueue_by_rank(engine: Sketch, job: Job) -> None:
    """Let a job wait by priority, then by arrival."""
    engine.waiting.append(job)
    engine.waiting.sort(key=get_rank)


def get_rank(job: Job) -> tuple[int, int]:
    """Order jobs by priority, then by arrival."""
    return job.request.priority, job.place


@dataclass(frozen=True, slots=True)
class Parts:
    """Hold every decision of a Sketch."""

    refuse: Callable[[Sketch, Request], str | None] = refuse
    enqueue: Callable[[Sketch, Job], None] = enqueue_at_end
    budget: Callable[[Sketch], Tokens] = lambda engine: engine.budget
    cap: Callable[[Sketch], Tokens] = lambda engine: engine.cap
    lifts_cap: bool = True
    order: Callable[[Sketch], Iterable[Job]] = lambda engine: tuple(engine.running)
    share: Callable[[Sketch, Job, Tokens], Tokens] = share
    make_room: Callable[[Sketch, Job, Tokens], bool] = make_room
    choose_victim: Callable[[Sketch], Job] = lambda engine: engine.running[-1]
    preempt: Callable[[Sketch, Job], None] = preempt
    requeue: Callable[[Sketch, Job], None] = requeue_in_front
    enter_plan: Callable[[Sketch, Job, Tokens, Tokens], None] = enter_plan
    may_admit: Callable[[Sketch], bool] = lambda engine: not engine.gone
    has_seat: Callable[[Sketch], bool] = lambda engine: len(engine.running) < engine.seats
    passes_gate: Callable[[Sketch, Job, Tokens], bool] = passes_gate
    head_blocks: bool = True
    spare_blocks: Blocks = 0
    retire: Callable[[Sketch, Job], None] = retire
    drop: Callable[[Sketch, Job], None] = drop
    finish: Callable[[Sketch, Plan], Plan] = lambda engine, plan: plan
    tell: Callable[[Sketch, State], State] = field(default=lambda engine, state: state)


FCFS = Parts()
PRIORITY = Parts(
    enqueue=enqueue_by_rank, requeue=enqueue_by_rank, choose_victim=lambda engine: max(engine.running, key=get_rank)
)
