"""Fidelity of the load: was the intended plan of sends kept? [A20, B10]

A client that falls behind, or waits for a free place, sends later than planned. Its latencies from the send then look
better the more it is overloaded; the ones from the schedule do not.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import compress, islice
from operator import mul, sub

from refsched.metrics.columns import Columns
from refsched.metrics.compact import MISSING, to_array
from refsched.metrics.population import Population, make_runs
from refsched.metrics.window import Edges, list_levels
from refsched.units import TICKS_PER_SECOND, Ticks

TOLERANCE: Ticks = 10**9  # 1 ms: what a busy client's timers are late without any fault in the plan
OF_A_GAP = Fraction(1, 10)  # or a tenth of the mean intended gap, whichever is longer


@dataclass(frozen=True, slots=True)
class Fidelity:
    """Hold what became of the plan; `verdict` is kept | late | drifting | capped | dropped | unknown."""

    planned: int
    sent: int
    dropped: int
    tolerance: Ticks
    lag: Population
    late: int
    trend: Fraction | None  # ticks of lag per tick of the plan, by least squares
    intended_rate: Fraction | None
    achieved_rate: Fraction | None
    intended_cv2: Fraction | None  # squared coefficient of variation of the gaps
    achieved_cv2: Fraction | None
    cap: int | None  # the number in flight that held late sends back
    verdict: str


def compute_fidelity(columns: Columns, edges: Edges) -> Fidelity:
    """Compare when requests were to be sent with when they were."""
    due, at = get_pairs(columns)
    lags = to_array(map(sub, at, due))
    sent = edges.sent
    planned = sent if columns.get("planned") is columns.get("sent") else columns.sort_known("planned")
    gap = Fraction(planned[-1] - planned[0], len(planned) - 1) if len(planned) > 1 else Fraction(0)
    tolerance = max(TOLERANCE, int(gap * OF_A_GAP))
    late = [(since, since + lag) for since, lag in zip(due, lags, strict=True) if lag > tolerance]
    trend, cap, dropped = compute_trend(due, lags), find_cap(columns, edges, late, tolerance), len(planned) - len(due)
    grows = trend is not None and trend * (max(due) - min(due)) > tolerance
    return Fidelity(
        planned=len(planned),
        sent=len(sent),
        dropped=dropped,
        tolerance=tolerance,
        lag=Population(runs=make_runs(lags)),
        late=len(late),
        trend=trend,
        intended_rate=compute_rate(planned),
        achieved_rate=compute_rate(sent),
        intended_cv2=compute_cv2(planned),
        achieved_cv2=compute_cv2(sent),
        cap=cap,
        verdict=judge(len(planned), dropped, len(late), cap, grows),
    )


def get_pairs(columns: Columns) -> tuple[Sequence[Ticks], Sequence[Ticks]]:
    """Give when each request was due and when it was sent, of those that know both."""
    due, at = columns.get("planned"), columns.get("sent")
    if MISSING not in due and MISSING not in at:
        return due, at
    known = [MISSING not in pair for pair in zip(due, at, strict=True)]
    return list(compress(due, known)), list(compress(at, known))


def judge(planned: int, dropped: int, late: int, cap: int | None, grows: bool) -> str:
    """Say what became of the plan, the gravest thing first."""
    answers = (
        (not planned, "unknown"),
        (dropped > 0, "dropped"),
        (not late, "kept"),
        (cap is not None, "capped"),
        (grows, "drifting"),
    )
    return next((word for is_so, word in answers if is_so), "late")


def compute_trend(due: Sequence[Ticks], lags: Sequence[Ticks]) -> Fraction | None:
    """Fit a line to lag over planned time by least squares, and give its slope; None where all plans are one time."""
    n, times, lag = len(due), sum(due), sum(lags)
    over = n * sum(map(mul, due, due)) - times * times
    return Fraction(n * sum(map(mul, due, lags)) - times * lag, over) if over else None


def compute_rate(times: Sequence[Ticks]) -> Fraction | None:
    """Give the requests per second between the first and the last of some times in order."""
    length = times[-1] - times[0] if times else 0
    return Fraction((len(times) - 1) * TICKS_PER_SECOND, length) if length else None


def compute_cv2(times: Sequence[Ticks]) -> Fraction | None:
    """Give the squared coefficient of variation of the gaps between times in order: variance / mean**2."""
    gaps = to_array(map(sub, islice(times, 1, None), times))
    total = sum(gaps)
    return Fraction(len(gaps) * sum(map(mul, gaps, gaps)), total * total) - 1 if total else None


def find_cap(columns: Columns, edges: Edges, late: Sequence[tuple[Ticks, Ticks]], tolerance: Ticks) -> int | None:
    """Find the limit on requests in flight that held late sends back.

    It is the most in flight in the whole run where nine in ten late sends were due with as many in flight, and left
    within the tolerance after one of them ended.
    """
    if not late:
        return None
    levels = list_levels(columns)
    peak = max(level for _, level in levels)
    times = [at for at, _ in levels]
    held = sum(
        levels[bisect_right(times, due) - 1][1] == peak and follows(edges.ended, at, tolerance) for due, at in late
    )
    return peak if held * 10 >= len(late) * 9 else None


def follows(ended: Sequence[Ticks], at: Ticks, tolerance: Ticks) -> bool:
    """Tell whether one of some times in order lies at `at`, or before it by no more than the tolerance."""
    place = bisect_right(ended, at)
    return place > 0 and at - ended[place - 1] <= tolerance
