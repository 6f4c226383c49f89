"""The gaps between iterations of a simulated run, straight from the progressions that its ends are kept as.

A gap belongs to the iteration that ends it. Inside a progression gaps are the durations; the first of each is
counted from the end of the iteration before, which may have been a while ago.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge

from refsched.metrics.ranges import RangeTable
from refsched.metrics.seen import list_range_gaps
from refsched.record import IterationEnds, IterationRanges
from refsched.units import Ticks


class Steps:
    """Find and count gaps of records that share iteration ends; the ends may grow between two calls."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[IterationEnds, array[Ticks], array[Ticks]]] = {}

    def get(self, ends: IterationEnds) -> tuple[array[Ticks], array[Ticks]]:
        """Give the first gap and the largest gap of each progression."""
        known = self.known.get(id(ends))
        if known is None:
            known = self.known[id(ends)] = ends, array("q"), array("q")
        _, firsts, tops = known
        if len(tops) == len(ends.firsts):
            return firsts, tops
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
        ends, ranges = deliveries.ends, deliveries.ranges
        gaps = [self.find_top(ends, first, stop) for first, stop in ranges if stop - first > 1]
        return max(gaps + list_range_gaps(deliveries), default=None)

    def find_top(self, ends: IterationEnds, first: int, stop: int) -> Ticks:
        """Find the longest gap between two of the iterations first … stop - 1, at least two."""
        firsts, tops = self.get(ends)
        low = bisect_right(ends.firsts, first + 1) - 1
        high = bisect_right(ends.firsts, stop - 1, low) - 1
        if low == high:
            return find_edge(ends, firsts, low, first + 1, stop)
        edges = (
            find_edge(ends, firsts, low, first + 1, ends.firsts[low + 1]),
            find_edge(ends, firsts, high, ends.firsts[high], stop),
        )
        return max(*edges, *tops[low + 1 : high])

    def count_gaps(self, every: Iterable[IterationRanges]) -> dict[Ticks, int]:
        """Count all gaps of some records by length; those inside ranges by where coverage rises and falls."""
        counts: dict[Ticks, int] = {}
        edges: dict[int, tuple[array[int], array[int]]] = {}
        for deliveries in every:
            self.get(deliveries.ends)
            rises, falls = edges.setdefault(id(deliveries.ends), (array("q"), array("q")))
            for first, stop in deliveries.ranges:
                rises.append(first + 1)
                falls.append(stop)
            for gap in list_range_gaps(deliveries):
                counts[gap] = counts.get(gap, 0) + 1
        for key, (rises, falls) in edges.items():
            ends, firsts, _ = self.known[key]
            for first, stop, weight in list_covered(sorted(rises), sorted(falls)):
                count_covered(counts, ends, firsts, first, stop, weight)
        return counts


def count_table(steps: Steps, table: RangeTable) -> dict[Ticks, int]:
    """Count all gaps of the records in a table, as `count_gaps` does."""
    if len(table.ends) != 1:
        return steps.count_gaps(table.values())
    ends = table.ends[0]
    firsts, _ = steps.get(ends)
    counts: dict[Ticks, int] = {}
    for row in table.list_broken():
        for gap in list_range_gaps(table[row]):
            counts[gap] = counts.get(gap, 0) + 1
    rises = sorted(first + 1 for first in table.edges[::2])
    for first, stop, weight in list_covered(rises, sorted(table.edges[1::2])):
        count_covered(counts, ends, firsts, first, stop, weight)
    return counts


def count_inside(ends: IterationEnds, place: int) -> int:
    """Count the iterations of a progression."""
    after = ends.firsts[place + 1] if place + 1 < len(ends.firsts) else ends.count
    return after - ends.firsts[place]


def find_edge(ends: IterationEnds, firsts: Sequence[Ticks], place: int, first: int, stop: int) -> Ticks:
    """Find the longest gap of iterations first … stop - 1 of one progression: one of the outermost."""
    begin, duration, growth = ends.firsts[place], ends.durations[place], ends.growths[place]
    last = firsts[place] if stop - 1 == begin else duration + (stop - 1 - begin) * growth
    if first > begin:
        return max(last, duration + (first - begin) * growth)
    return max(last, firsts[place], duration + growth) if stop - 1 > begin else last


def list_covered(rises: list[int], falls: list[int]) -> Iterator[tuple[int, int, int]]:
    """Give the stretches of iterations (first, stop) that a constant number of records covers, and that number.

    A record covers from one of the sorted `rises` up to one of the sorted `falls`.
    """
    weight, at = 0, 0
    for place, change in merge(((place, 1) for place in rises), ((place, -1) for place in falls)):
        if weight and place > at:
            yield at, place, weight
        weight, at = weight + change, place


def count_covered(
    counts: dict[Ticks, int], ends: IterationEnds, firsts: Sequence[Ticks], first: int, stop: int, weight: int
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
