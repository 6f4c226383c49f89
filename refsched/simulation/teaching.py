"""The two documents' tables, computed by running the engine: nothing here is written down in advance.

The timetable [A6] counts iterations and is never turned into milliseconds or a percentage [A6b]. The chunk table
[B3-B5] shows what a smaller chunk gives the running requests and what it costs the one that is prefilling [B4b].
"""

from collections.abc import Sequence
from dataclasses import dataclass

from refsched.dialect import get_dialect
from refsched.errors import InputError
from refsched.metrics.latency import Gaps
from refsched.model import Limits, Request, TimelineRun, Work, check_count
from refsched.record import Record
from refsched.scheduling.engine import ReferenceEngine
from refsched.simulation.cost import ChunkCost, UnitCost
from refsched.simulation.observe import TimelineRecorder
from refsched.simulation.step import simulate
from refsched.units import TICKS_PER_SECOND, Ticks, Tokens, ceil_div
from refsched.workload.offer import Offer

DECODERS = 2  # document B's two running requests
MOST_ITERATIONS = 1_000_000


@dataclass(frozen=True, slots=True)
class TimetableRow:
    """Give who runs from one iteration boundary up to another, and how many places stay empty."""

    start: int
    stop: int
    members: tuple[str, ...]
    empty: int


@dataclass(frozen=True, slots=True)
class Timetable:
    """Give the rows of a timetable, when each request is done, and when all are; all in iterations."""

    rows: tuple[TimetableRow, ...]
    done: dict[str, int]
    end: int


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """Give what one chunk size does; times in ticks, delays against prefilling in one chunk [B4, B4b]."""

    chunk: Tokens
    iterations: int
    longest_gap: Ticks
    prefill_done: Ticks
    delay: Ticks
    delay_decode: Ticks
    delay_overhead: Ticks
    tokens_gained: int


def compute_timetable(rule: str, offers: Sequence[Offer], places: int = 2) -> Timetable:
    """Run `offers` under `rule` in unit iterations, one token per request and iteration."""
    limits = Limits(token_budget=places, max_seqs=places)
    recorder = TimelineRecorder()
    run = simulate(ReferenceEngine(get_dialect(rule), limits), limits, UnitCost(), offers, [recorder])
    rows: list[TimetableRow] = []
    for part in recorder.timeline().runs:
        add_row(rows, part, places)
    done = {record.id: to_iterations(record.ended or 0) for record in run.records}
    return Timetable(tuple(rows), done, to_iterations(run.makespan))


def to_iterations(ticks: Ticks) -> int:
    """Count the unit iterations in a time."""
    return ticks // TICKS_PER_SECOND


def add_row(rows: list[TimetableRow], run: TimelineRun, places: int) -> None:
    """Add a run of iterations to the rows, or make the last row longer if the same requests run on."""
    members = tuple(sorted(entry.id for entry in run.plan.entries))
    start = to_iterations(run.start)
    if rows and rows[-1].members == members and rows[-1].stop == start:
        start = rows.pop().start
    rows.append(TimetableRow(start, to_iterations(run.start) + run.repeats, members, places - len(members)))


def compute_chunk_row(chunk: Tokens, cost: ChunkCost) -> ChunkRow:
    """Run document B's workload with at most `chunk` prefill tokens in an iteration.

    Raise InputError for a chunk that is not positive or cuts the prompt into more than a million iterations.
    """
    check_count(chunk, "chunk")
    expected = ceil_div(cost.prompt, chunk)
    if expected > MOST_ITERATIONS:
        raise InputError(f"{expected} iterations are more than {MOST_ITERATIONS}", field="chunk")
    long, decoders, arrival = run_chunks(chunk, cost, expected)
    done = (long.ended or 0) - arrival
    longest = max(gap for gap in map(Gaps().longest, decoders) if gap is not None)
    extra = expected - 1
    delay = done - (cost.decode + cost.full_prefill + cost.overhead)
    iterations = len(decoders[0].deliveries) - 1
    return ChunkRow(
        chunk, iterations, longest, done, delay, extra * cost.decode, extra * cost.overhead, extra * DECODERS
    )


def run_chunks(chunk: Tokens, cost: ChunkCost, iterations: int) -> tuple[Record, list[Record], Ticks]:
    """Let two requests decode and a long prompt arrive at the end of their first iteration; both outlast its prefill.

    Return the long request's record, the decoders' and the time of the long one's arrival.
    """
    arrival = cost.duration(Work(((0, 1),) * DECODERS, 0, 0))
    decoders = [Offer(0, Request(f"decoder-{place}", 1, iterations + 1)) for place in range(DECODERS)]
    long = Offer(arrival, Request("long", cost.prompt, 1))
    limits = Limits(token_budget=chunk + DECODERS, max_seqs=DECODERS + 1, chunk_cap=chunk)
    run = simulate(ReferenceEngine(get_dialect("document-a"), limits), limits, cost, [*decoders, long])
    return run.records[-1], list(run.records[:-1]), arrival
