"""Runs of the reference engine on small random workloads, as events that the judge can read."""

from random import Random

from refsched.dialect import Dialect
from refsched.model import Cancelled, Completed, Event, Limits, Planned, Request, State, Submitted
from refsched.scheduling.engine import ReferenceEngine
from refsched.scheduling.progress import Progress

Arrival = tuple[int, Request]
LONGEST_RUN = 150


def draw_workload(rng: Random, shares: bool) -> tuple[Limits, list[Arrival]]:
    """Draw limits that bind and a few requests that compete."""
    size = rng.choice((1, 1, 2, 4))
    limits = Limits(
        token_budget=rng.choice((2, 3, 4, 7, 16, 64)),
        max_seqs=rng.choice((1, 2, 3, 8, None)),
        chunk_cap=rng.choice((None, None, 1, 3, 5)),
        block_size=size,
        num_blocks=rng.choice((None, 3, 5, 8, 12, 20)),
        max_len=rng.choice((None, None, 11, 20)),
    )
    arrivals, at = [], 0
    for number in range(rng.randint(1, 6)):
        at += rng.choice((0, 0, 1, 2))
        prompt = rng.randint(1, 14)
        prefix = tuple(3 * place + (rng.random() < 0.3) for place in range(prompt // size)) if shares else ()
        arrivals.append((at, Request(f"r{number}", prompt, rng.randint(1, 8), rng.choice((0, 0, 1, -1)), prefix)))
    return limits, arrivals


def record_run(dialect: Dialect, limits: Limits, arrivals: list[Arrival], rng: Random | None = None) -> list[Event]:
    """Run the reference engine, with a rare cancellation where a generator of chance is given."""
    engine, progress, events = ReferenceEngine(dialect, limits), Progress(limits, dialect.stop), list[Event]()
    left = list(arrivals)
    for number in range(LONGEST_RUN):
        while left and left[0][0] <= number:
            submit(engine, progress, events, left.pop(0)[1])
        if rng is not None and progress.live and rng.random() < 0.02:
            cancel(engine, progress, events, rng.choice(sorted(progress.live)))
        if not left and not progress.live:
            break
        record_iteration(engine, progress, events)
    return events


def submit(engine: ReferenceEngine, progress: Progress, events: list[Event], request: Request) -> None:
    """Submit a request."""
    reason = engine.submit(request)
    events.append(Submitted(request, reason))
    if reason is None:
        progress.start(request)


def cancel(engine: ReferenceEngine, progress: Progress, events: list[Event], id: str) -> None:
    """Cancel a request."""
    engine.cancel(id)
    progress.end(id)
    events.append(Cancelled(id))


def record_iteration(engine: ReferenceEngine, progress: Progress, events: list[Event]) -> None:
    """Plan and complete one iteration, and tell all that can be told."""
    plan, state = engine.plan(), engine.state()
    held = {entry.id: (state.held or {}).get(entry.id, 0) for entry in plan.entries}
    events.append(Planned(plan, State(state.running, state.waiting, None, held, state.free)))
    _, emitted, finished = progress.settle(plan)
    engine.complete(emitted, finished)
    events.append(Completed(emitted, finished, engine.state().free))
    for id in (*finished, *plan.rejected):
        progress.end(id)
