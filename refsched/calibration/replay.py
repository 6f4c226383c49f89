"""A real engine's run, replayed: the same requests through the scheduler's rule under a cost model.

A time to first token counts from when the engine queued a request, which happens between iterations; so the simulated
one counts from the first boundary at which the request is seen.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from refsched.calibration.real_run import Run, Times
from refsched.calibration.samples import quantile
from refsched.dialect import get_dialect
from refsched.errors import InputError
from refsched.model import Event, Iteration
from refsched.record import Record
from refsched.scheduling.engine import ReferenceEngine
from refsched.simulation.cost_fitted import FittedCost, set_overhead
from refsched.simulation.leap import leap
from refsched.units import TICKS_PER_SECOND, Ticks

FITTED_ON = 100
LONGEST_OVERHEAD = 0.2  # seconds per iteration: beyond it the profile is of something else
SEARCHES = 14


@dataclass(frozen=True, slots=True)
class Summary:
    """Hold the numbers that are compared, in seconds."""

    mean_ttft: float
    p95_ttft: float
    mean_tpot: float
    makespan: float


class Boundaries:
    """Collect when each iteration started and ended."""

    def __init__(self) -> None:
        self.starts: list[Ticks] = []
        self.ends: list[Ticks] = []

    def on_event(self, event: Event) -> None:
        """Take no notice."""

    def on_iteration(self, iteration: Iteration) -> None:
        """Note one iteration."""
        self.starts.append(iteration.start)
        self.ends.append(iteration.end)

    def see(self, at: Ticks) -> Ticks:
        """Give when something that comes at `at` is seen: at once between iterations, else at the running one's end."""
        place = bisect_right(self.starts, at) - 1
        return max(at, self.ends[place]) if place >= 0 else at


def replay(run: Run, cost: FittedCost, dialect: str) -> tuple[Times, ...]:
    """Simulate the run and give what each client would have seen, by the engine's own stamps."""
    boundaries = Boundaries()
    engine = ReferenceEngine(get_dialect(dialect, {"prefix_cache": run.prefix_cache}), run.limits)
    result = leap(engine, run.limits, cost, run.offers, (boundaries,))
    return tuple(time_record(record, boundaries) for record in result.records)


def time_record(record: Record, boundaries: Boundaries) -> Times:
    """Give a simulated request's times; raise InputError where it got no token."""
    if record.server is None or record.server.first_token is None or record.ended is None:
        raise InputError(f"request {record.id} got no token in the simulation")
    queued, first, last = boundaries.see(record.planned or 0), record.server.first_token, record.ended
    further = sum(delivery.tokens or 0 for delivery in record.deliveries) - 1
    seconds = [ticks / TICKS_PER_SECOND for ticks in (first - queued, last - first, last - queued, last)]
    return Times(seconds[0], seconds[1] / further if further > 0 else None, seconds[2], seconds[3])


def summarise(times: Sequence[Times], start: float) -> Summary:
    """Give the numbers that are compared; the makespan runs from `start`, the first arrival, to the last token."""
    ttfts, tpots = [each.ttft for each in times], [each.tpot for each in times if each.tpot is not None]
    last = max(each.end for each in times)
    return Summary(sum(ttfts) / len(ttfts), quantile(ttfts, 0.95), sum(tpots) / len(tpots), last - start)


def get_start(run: Run) -> float:
    """Give the first queueing on the measured clock."""
    return min(each.end - each.latency for each in run.measured)


def fit_overhead(run: Run, cost: FittedCost, dialect: str, first: int = FITTED_ON) -> float:
    """Find the seconds per iteration with which the first arrivals take as long from first to last token as measured.

    Later arrivals are simulated too, for they compete, but only the first are looked at. Times to first token are not:
    the first iterations of a real run are slow once, and everybody who waits for them would count it.
    """
    goal = sum(map(get_decode_time, run.measured[:first]))
    low, high = 0.0, LONGEST_OVERHEAD
    for _ in range(SEARCHES):
        middle = (low + high) / 2
        times = replay(run, set_overhead(cost, round(middle * TICKS_PER_SECOND)), dialect)
        low, high = (middle, high) if sum(map(get_decode_time, times[:first])) < goal else (low, middle)
    return (low + high) / 2


def get_decode_time(times: Times) -> float:
    """Give the seconds from a request's first token to its last."""
    return times.latency - times.ttft
