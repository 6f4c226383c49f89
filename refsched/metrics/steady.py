"""Steadiness: ramp and drain, whether the middle of a run was in a steady state, and its cold start [A19, A21]."""

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from refsched.metrics.columns import COMPLETED, Columns
from refsched.metrics.compact import MISSING
from refsched.metrics.population import Population, make_runs
from refsched.metrics.window import Edges, Window, count_tokens_in, get_steady_window
from refsched.units import Ticks

SPREAD = 2  # times the square root of the arrivals: what arrivals at random may add without a trend
EDGE = Fraction(1, 10)  # of the window, moved in on both sides, to see how much depends on where it begins and ends


@dataclass(frozen=True, slots=True)
class Steadiness:
    """Hold what happened between the first end and the last send; `verdict` is steady | growing | draining | unknown.

    Utilisation is arrivals over completions there: above 1 there is no steady state, and every mean depends on how
    long the run was.
    """

    window: Window | None
    ramp: Ticks | None
    drain: Ticks | None
    arrivals: int
    departures: int
    utilisation: Fraction | None
    growth: int
    verdict: str


@dataclass(frozen=True, slots=True)
class ColdStart:
    """Hold the requests sent before the first one ended, apart from the rest."""

    burst: int
    offered: int
    ttft_burst: Fraction | None
    ttft_rest: Fraction | None


@dataclass(frozen=True, slots=True)
class InWindow:
    """Hold what three rules attribute to one window, and the tokens received in it."""

    window: Window
    requests: dict[str, int]
    tokens: int
    ttft_p99: Fraction | None


def check_steadiness(edges: Edges) -> Steadiness:
    """Tell whether as many requests ended as were sent, between ramp and drain."""
    window = get_steady_window(edges)
    if window is None:
        return Steadiness(None, None, None, 0, 0, None, 0, "unknown")
    counts = edges.count(window)
    arrivals, departures = counts["start-in"], counts["end-in"]
    growth = arrivals - departures
    return Steadiness(
        window=window,
        ramp=window.start - edges.sent[0],
        drain=edges.ended[-1] - window.stop,
        arrivals=arrivals,
        departures=departures,
        utilisation=Fraction(arrivals, departures) if departures else None,
        growth=growth,
        verdict=judge_growth(growth, arrivals),
    )


def judge_growth(growth: int, arrivals: int) -> str:
    """Say whether the number in the system grew by more than random arrivals explain."""
    if abs(growth) <= SPREAD * isqrt(arrivals) + 1:
        return "steady"
    return "growing" if growth > 0 else "draining"


def split_cold_start(columns: Columns, edges: Edges) -> ColdStart | None:
    """Set apart what was sent before the first end; None where nothing was both sent and ended."""
    if not edges.ended:
        return None
    edge = edges.ended[0]
    waits, counts = [0, 0], [0, 0]  # of the burst, and of the rest
    for code, sent, first in zip(columns.outcomes, columns.get("sent"), columns.get("first"), strict=True):
        if code == COMPLETED and sent != MISSING and first != MISSING:
            waits[sent >= edge] += first - sent
            counts[sent >= edge] += 1
    if not any(counts):
        return None
    burst, rest = (Fraction(wait, count) if count else None for wait, count in zip(waits, counts, strict=True))
    return ColdStart(bisect_left(edges.sent, edge), len(edges.sent), burst, rest)


def look_into(columns: Columns, edges: Edges, window: Window) -> InWindow:
    """Count what each rule attributes to a window; the p99 is of TTFT, of requests sent in it, by nearest rank."""
    rows = zip(columns.outcomes, columns.get("sent"), columns.get("first"), strict=True)
    waits = (
        first - sent
        for code, sent, first in rows
        if window.start <= sent < window.stop and first != MISSING and code == COMPLETED
    )
    population = Population(runs=make_runs(waits))
    p99 = population.at(-(-population.n * 99 // 100)) if population.n else None
    return InWindow(window, edges.count(window), count_tokens_in(columns, window), p99)


def move_edges(window: Window) -> Window:
    """Move both edges of a window in."""
    step = int((window.stop - window.start) * EDGE)
    return Window(window.start + step, window.stop - step)
