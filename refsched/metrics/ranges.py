"""The iteration ranges of simulated records, in compact columns: two numbers for each row, no object for any."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from refsched.metrics.compact import Padded, pick, to_array
from refsched.record import IterationEnds, IterationRanges
from refsched.units import Tokens

Ranges = tuple[tuple[int, int], ...]


class Pieces(NamedTuple):
    """Hold ranges one by one: the iteration after the first of each, the one after its last, and its row.

    Iterations rise … stop - 1 of a range each end a gap. A row that has no range holds an empty one.
    """

    rises: Sequence[int]
    stops: Sequence[int]
    rows: Sequence[int]


@dataclass(frozen=True, slots=True)
class RangeTable:
    """Hold the range of each row, from `rises` - 1 to `stops`; `broken` has the rows that do not have just one."""

    ends: Sequence[IterationEnds] = ()  # as many as there were runs
    run_of: Sequence[int] = b""  # by row
    rises: Sequence[int] = b""  # 0 in a row that was not simulated
    stops: Sequence[int] = b""
    broken: Mapping[int, Ranges] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rises) - self.rises.count(0)

    def __contains__(self, row: int) -> bool:
        return self.rises[row] > 0

    def __getitem__(self, row: int) -> IterationRanges:
        if row not in self:
            raise KeyError(row)
        return IterationRanges(self.ends[self.run_of[row]], self._list_ranges(row))

    def _list_ranges(self, row: int) -> Ranges:
        return self.broken[row] if row in self.broken else ((self.rises[row] - 1, self.stops[row]),)

    def list_pieces(self, run: int) -> Pieces:
        """List the ranges of all rows of a run."""
        if len(self.ends) == 1 and not self.broken:
            return Pieces(self.rises, self.stops, range(len(self.rises)))
        rows = [row for row, each in enumerate(self.run_of) if each == run and row in self]
        pieces = [(first + 1, stop, row) for row in rows for first, stop in self._list_ranges(row)]
        return Pieces(*map(to_array, zip(*pieces, strict=True))) if pieces else Pieces((), (), ())

    def count_deliveries(self) -> Tokens:
        """Count the deliveries of all rows."""
        covered = sum(self.stops) - sum(self.rises) + len(self)
        holes = (
            self.stops[row] - self.rises[row] + 1 - sum(stop - first for first, stop in ranges)
            for row, ranges in self.broken.items()
        )
        return covered - sum(holes)

    def select(self, rows: Sequence[int]) -> "RangeTable":
        """Give a table of some rows, in their order."""
        run_of, rises, stops = (pick(column, rows) for column in (self.run_of, self.rises, self.stops))
        broken = {new: self.broken[old] for new, old in enumerate(rows) if old in self.broken}
        return RangeTable(self.ends, run_of, rises, stops, broken)


class RangeCollector:
    """Put the ranges of records into a table, row by row; rows without any may be left out."""

    def __init__(self) -> None:
        self.ends: list[IterationEnds] = []
        self.run_of, self.rises, self.stops = Padded(), Padded(), Padded()
        self.broken: dict[int, Ranges] = {}

    def add(self, row: int, deliveries: IterationRanges) -> None:
        """Add the ranges of a row."""
        ranges = deliveries.ranges
        first, stop = (ranges[0][0], ranges[-1][1]) if ranges else (0, 1)
        self.rises.put(row, first + 1)
        self.stops.put(row, stop)
        if len(ranges) != 1:
            self.broken[row] = ranges
        run = self._find_run(deliveries.ends)
        if run:
            self.run_of.put(row, run)

    def _find_run(self, ends: IterationEnds) -> int:
        for place, known in enumerate(self.ends):
            if known is ends:
                return place
        self.ends.append(ends)
        return len(self.ends) - 1

    def take(self, rows: int) -> RangeTable:
        """Give the table of all rows."""
        return RangeTable(self.ends, self.run_of.take(rows), self.rises.take(rows), self.stops.take(rows), self.broken)
