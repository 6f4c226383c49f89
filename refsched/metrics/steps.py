"""The gaps between iterations of a simulated run, straight from the progressions that its ends are kept as.

A gap belongs to the iteration that ends it. Inside a progression gaps are the durations; the first of each is
counted from the end of the iteration before, which may have been a while ago.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise

from refsched.metrics.seen import list_range_gaps
from refsched.record import IterationEnds, IterationRanges
from refsched.units import Ticks


class Steps:
    """Find and count gaps of records that share iteration ends; the ends may grow between two calls."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[IterationEnds, list[Ticks], list[Ticks]]] = {}

    def get(self, ends: IterationEnds) -> tuple[list[Ticks], list[Ticks]]:
        """Give the first gap and the largest gap of each progression."""
        _, firsts, tops = self.known.setdefault(id(ends), (ends, [], []))
        for place in range(len(tops), len(ends.firsts)):
            duration, growth = ends.durations[place], ends.growths[place]
            before = ends[ends.firsts[place] - 1] if place else ends.starts[0]
            firsts.append(ends.starts[place] + duration - before)
            inside = count_inside(ends, place) - 1
            others = (duration + growth, duration + inside * growth) if inside else ()
            tops.append(max((firsts[-1], *others)))
        return firsts, tops

    def find_longest(self, deliveries: IterationRanges) -> Ticks | None:
        """Find the longest gap between two deliveries of a record."""
        inside = (self.find_top(deliveries.ends, *each) for each in deliveries.ranges if each[1] - each[0] > 1)
        return max(chain(inside, list_range_gaps(deliveries)), default=None)

    def find_top(self, ends: IterationEnds, first: int, stop: int) -> Ticks:
        """Find the longest gap between two of the iterations first … stop - 1."""
        firsts, tops = self.get(ends)
        low, high = (bisect_right(ends.firsts, number) - 1 for number in (first + 1, stop - 1))
        if low == high:
            return max(list_edge(ends, firsts, low, first + 1, stop))
        edges = list_edge(ends, firsts, low, first + 1, ends.firsts[low + 1]) + list_edge(
            ends, firsts, high, ends.firsts[high], stop
        )
        return max(chain(edges, tops[low + 1 : high]))

    def count_gaps(self, every: Iterable[IterationRanges]) -> dict[Ticks, int]:
        """Count all gaps of some records by length; those inside ranges by where coverage rises and falls."""
        counts: dict[Ticks, int] = {}
        changes: dict[int, dict[int, int]] = {}
        for deliveries in every:
            self.get(deliveries.ends)
            change = changes.setdefault(id(deliveries.ends), {})
            for first, stop in deliveries.ranges:
                change[first + 1] = change.get(first + 1, 0) + 1
                change[stop] = change.get(stop, 0) - 1
            for gap in list_range_gaps(deliveries):
                counts[gap] = counts.get(gap, 0) + 1
        for key, change in changes.items():
            ends, firsts, _ = self.known[key]
            for first, stop, weight in list_covered(change):
                count_covered(counts, ends, firsts, first, stop, weight)
        return counts


def count_inside(ends: IterationEnds, place: int) -> int:
    """Count the iterations of a progression."""
    after = ends.firsts[place + 1] if place + 1 < len(ends.firsts) else ends.count
    return after - ends.firsts[place]


def list_edge(ends: IterationEnds, firsts: list[Ticks], place: int, first: int, stop: int) -> list[Ticks]:
    """List the gaps of iterations first … stop - 1 of one progression that may be its longest: the outermost."""
    begin, duration, growth = ends.firsts[place], ends.durations[place], ends.growths[place]
    gaps = [firsts[place]] if first == begin else []
    low = max(first, begin + 1)
    return gaps + ([duration + (low - begin) * growth, duration + (stop - 1 - begin) * growth] if low < stop else [])


def list_covered(change: dict[int, int]) -> Iterator[tuple[int, int, int]]:
    """Give the stretches of iterations (first, stop) that a constant number of records covers, and that number."""
    weight = 0
    for first, stop in pairwise(sorted(change)):
        weight += change[first]
        if weight:
            yield first, stop, weight


def count_covered(
    counts: dict[Ticks, int], ends: IterationEnds, firsts: list[Ticks], first: int, stop: int, weight: int
) -> None:
    """Add the gaps of iterations first … stop - 1 to `counts`, `weight` times each."""
    place = bisect_right(ends.firsts, first) - 1
    while first < stop:
        begin, duration, growth = ends.firsts[place], ends.durations[place], ends.growths[place]
        until = min(stop, begin + count_inside(ends, place))
        if first == begin:
            counts[firsts[place]] = counts.get(firsts[place], 0) + weight
            first += 1
        if growth == 0 and first < until:
            counts[duration] = counts.get(duration, 0) + weight * (until - first)
        elif first < until:
            for gap in range(duration + (first - begin) * growth, duration + (until - begin) * growth, growth):
                counts[gap] = counts.get(gap, 0) + weight
        first, place = until, place + 1
