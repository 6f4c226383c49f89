"""The iteration ranges of simulated records, in compact columns: two numbers for each row, no object for any."""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from refsched.metrics.compact import Padded, pick
from refsched.record import IterationEnds, IterationRanges
from refsched.units import Tokens

Ranges = tuple[tuple[int, int], ...]


class Pieces(NamedTuple):
    """Hold ranges one by one: the iteration after the first of each, the one after its last, and its row.

    Iterations rise … stop - 1 of a range each end a gap. A row that has no range has an empty one, at 0.
    """

    rises: Sequence[int]
    stops: Sequence[int]
    rows: Sequence[int]


@dataclass(frozen=True, slots=True)
class RangeTable:
    """Hold the last range of each row, from `rises` - 1 to `stops`, and, of those interrupted, the `earlier` ones."""

    ends: Sequence[IterationEnds]  # as many as there were runs
    run_of: Sequence[int]  # by row
    rises: Sequence[int]  # 0 in a row that has no range
    stops: Sequence[int]
    earlier: Mapping[int, Ranges]

    def __len__(self) -> int:
        return len(self.rises) - self.rises.count(0)

    def __contains__(self, row: int) -> bool:
        return self.rises[row] > 0

    def __getitem__(self, row: int) -> IterationRanges:
        if row not in self:
            raise KeyError(row)
        last = self.rises[row] - 1, self.stops[row]
        return IterationRanges(self.ends[self.run_of[row]], (*self.earlier.get(row, ()), last))

    def list_pieces(self, run: int) -> Iterator[Pieces]:
        """List the ranges of all rows of a run: the last ones, then the earlier ones."""
        if len(self.ends) == 1:
            yield Pieces(self.rises, self.stops, range(len(self.rises)))
        else:
            rows = array("q", (row for row, each in enumerate(self.run_of) if each == run))
            yield Pieces(pick(self.rises, rows), pick(self.stops, rows), rows)
        of_run = ((row, ranges) for row, ranges in self.earlier.items() if self.run_of[row] == run)
        earlier = [(first + 1, stop, row) for row, ranges in of_run for first, stop in ranges]
        if earlier:
            yield Pieces(*zip(*earlier, strict=True))

    def count_deliveries(self) -> Tokens:
        """Count the deliveries of all rows."""
        earlier = sum(stop - first for ranges in self.earlier.values() for first, stop in ranges)
        return sum(self.stops) - sum(self.rises) + len(self) + earlier

    def select(self, rows: Sequence[int]) -> "RangeTable":
        """Give a table of some rows, in their order."""
        run_of, rises, stops = (pick(column, rows) for column in (self.run_of, self.rises, self.stops))
        earlier = {new: self.earlier[old] for new, old in enumerate(rows) if old in self.earlier}
        return RangeTable(self.ends, run_of, rises, stops, earlier)


class RangeCollector:
    """Put the ranges of records into a table, row by row; rows without any may be left out."""

    def __init__(self) -> None:
        self.ends: list[IterationEnds] = []
        self.run_of, self.rises, self.stops = Padded(), Padded(), Padded()
        self.earlier: dict[int, Ranges] = {}

    def add(self, row: int, deliveries: IterationRanges) -> None:
        """Add the ranges of a row."""
        if not deliveries.ranges:
            return
        *earlier, (first, stop) = deliveries.ranges
        self.rises.put(row, first + 1)
        self.stops.put(row, stop)
        if earlier:
            self.earlier[row] = tuple(earlier)
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
        return RangeTable(self.ends, self.run_of.take(rows), self.rises.take(rows), self.stops.take(rows), self.earlier)
