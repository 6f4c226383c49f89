"""The gaps between iterations of a simulated run, straight from the progressions that its ends are kept as.

A gap belongs to the iteration that ends it. Inside a progression gaps are the durations; the first of each is
counted from the end of the iteration before, which may have been a while ago.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from refsched.metrics.compact import iterate_order, iterate_sorted
from refsched.metrics.ranges import Pieces, RangeTable
from refsched.metrics.seen import list_range_gaps
from refsched.record import IterationEnds
from refsched.units import Ticks

PART = 1 << 19  # different lengths counted at once; this bounds the memory that counting takes
Stretch: TypeAlias = tuple[int, int, Ticks, Ticks, Ticks]
# a progression: its iterations first … stop - 1, the gap before the first, the duration then, and how that grows


def list_stretches(ends: IterationEnds) -> Iterator[Stretch]:
    """Give the progressions of a run in order."""
    ended = ends.starts[0] if ends.count else 0
    for first, stop, start, duration, growth in ends.progressions():
        yield first, stop, start + duration - ended, duration, growth
        count = stop - first
        ended = start + count * duration + growth * (count * (count - 1) // 2)


# THE LONGEST


def find_longest(table: RangeTable) -> Iterator[tuple[int, Ticks]]:
    """Give the number of a row and a gap of it; the longest of each row that has any is among them."""
    for run, ends in enumerate(table.ends):
        for pieces in table.list_pieces(run):
            yield from find_longest_inside(ends, pieces)
    for row in table.earlier:
        yield from ((row, gap) for gap in list_range_gaps(table[row]))


def find_longest_inside(ends: IterationEnds, pieces: Pieces) -> Iterator[tuple[int, Ticks]]:
    """Give the row and the longest gap of each range of two iterations or more, in the order in which they stop."""
    stretches, tops = list_stretches(ends), Tops()
    stretch: Stretch = (0, 0, 0, 0, 0)
    for place in iterate_order(pieces.stops):
        rise, stop = pieces.rises[place], pieces.stops[place]
        if rise >= stop:
            continue
        while stretch[1] < stop:
            tops.push(stretch, stretch[1])
            stretch = next(stretches)
        tops.push(stretch, stop)
        yield pieces.rows[place], tops.find_longest(rise)


class Tops:
    """Keep, of the gaps told in order, those that are longer than all after them: the longest from any place on."""

    def __init__(self) -> None:
        self.places: list[int] = []
        self.gaps: list[Ticks] = []

    def push(self, stretch: Stretch, stop: int) -> None:
        """Tell the gaps of a stretch before iteration `stop`; it may be told again, up to a later one."""
        first, _, before, duration, growth = stretch
        last = duration + (stop - 1 - first) * growth
        if before > last or stop - 1 == first:
            self._push(first, before)
        if growth < 0:
            for place in range(first + 1, stop - 1):
                self._push(place, duration + (place - first) * growth)
        if stop - 1 > first:  # unless they become shorter, the last is the longest of those inside
            self._push(stop - 1, last)

    def _push(self, place: int, gap: Ticks) -> None:
        places, gaps = self.places, self.gaps
        while gaps and gaps[-1] <= gap:
            gaps.pop()
            places.pop()
        gaps.append(gap)
        places.append(place)

    def find_longest(self, place: int) -> Ticks:
        """Find the longest gap from iteration `place` on."""
        return self.gaps[bisect_left(self.places, place)]


# ALL OF THEM


def count_gaps(table: RangeTable) -> Iterator[Mapping[Ticks, int]]:
    """Count all gaps by length, in parts of bounded size: one length may be in several."""
    counts: dict[Ticks, int] = defaultdict(int)
    for gaps, weight in list_gaps(table):
        for gap in gaps:
            counts[gap] += weight
        if len(counts) > PART:
            yield counts
            counts = defaultdict(int)
    yield counts


def list_gaps(table: RangeTable) -> Iterator[tuple[Iterable[Ticks], int]]:
    """Give all gaps, and how often each stands there: by how many ranges cover an iteration, and between ranges."""
    for run, ends in enumerate(table.ends):
        for rises, stops, _ in table.list_pieces(run):
            yield from list_covered_gaps(ends, list_covered(iterate_sorted(rises), iterate_sorted(stops)))
    for row in table.earlier:
        yield list_range_gaps(table[row]), 1


def list_covered(rises: Iterator[int], stops: Iterable[int]) -> Iterator[tuple[int, int, int]]:
    """Give the iterations (first, stop) that a constant number of ranges covers, and that number.

    Ranges cover from one of the sorted `rises` up to one of the sorted `stops`.
    """
    weight = at = 0
    rise = next(rises, None)
    for stop in stops:
        while rise is not None and rise <= stop:
            if weight and rise > at:
                yield at, rise, weight
            weight, at, rise = weight + 1, rise, next(rises, None)
        if weight and stop > at:
            yield at, stop, weight
        weight, at = weight - 1, stop


def list_covered_gaps(
    ends: IterationEnds, covered: Iterable[tuple[int, int, int]]
) -> Iterator[tuple[Iterable[Ticks], int]]:
    """Give the gaps of iterations that are covered, and how often each."""
    stretches = list_stretches(ends)
    first = until = 0
    for place, stop, weight in covered:
        while place < stop:
            while until <= place:
                first, until, before, duration, growth = next(stretches)
            if place == first:
                yield (before,), weight
                place += 1
            upto = min(stop, until)
            if growth:
                yield range(duration + (place - first) * growth, duration + (upto - first) * growth, growth), weight
            elif place < upto:
                yield (duration,), weight * (upto - place)
            place = upto
