"""The iteration ranges of simulated records, in compact columns: eight bytes for each number, no object for each."""

from array import array
from collections.abc import Iterable, Iterator

from refsched.record import IterationEnds, IterationRanges

ABSENT = -1


class RangeTable:
    """Keep IterationRanges by row; a row without any is not in the table."""

    def __init__(self) -> None:
        self.ends: list[IterationEnds] = []  # as many as there were runs
        self.run_of = array("q")  # by row: which of the ends, or ABSENT
        self.offsets = array("q", [0])  # by row: where its ranges stop in `edges`
        self.edges = array("q")  # first and stop of each range, in turn
        self.count = 0

    def add(self, deliveries: IterationRanges | None) -> None:
        """Add the next row."""
        if deliveries is None:
            self.run_of.append(ABSENT)
        else:
            self.run_of.append(self._find_run(deliveries.ends))
            for first, stop in deliveries.ranges:
                self.edges.extend((first, stop))
            self.count += 1
        self.offsets.append(len(self.edges))

    def _find_run(self, ends: IterationEnds) -> int:
        for place, known in enumerate(self.ends):
            if known is ends:
                return place
        self.ends.append(ends)
        return len(self.ends) - 1

    def __len__(self) -> int:
        return self.count

    def __contains__(self, row: int) -> bool:
        return self.run_of[row] != ABSENT

    def __getitem__(self, row: int) -> IterationRanges:
        if row not in self:
            raise KeyError(row)
        edges = self.edges[self.offsets[row] : self.offsets[row + 1]]
        return IterationRanges(self.ends[self.run_of[row]], tuple(zip(edges[::2], edges[1::2], strict=True)))

    def values(self) -> Iterator[IterationRanges]:
        """Give the ranges of every row that has some, made as they are asked for."""
        return (self[row] for row, run in enumerate(self.run_of) if run != ABSENT)

    def list_broken(self) -> list[int]:
        """List the rows with more than one range."""
        pairs = zip(self.offsets, self.offsets[1:], strict=False)
        return [row for row, (begin, stop) in enumerate(pairs) if stop - begin > 2]

    def count_deliveries(self) -> int:
        """Count the deliveries of all rows."""
        return sum(self.edges[1::2]) - sum(self.edges[::2])

    def select(self, rows: Iterable[int]) -> "RangeTable":
        """Give a table of some rows, in their order."""
        chosen = RangeTable()
        chosen.ends = self.ends
        for row in rows:
            chosen.run_of.append(self.run_of[row])
            chosen.edges.extend(self.edges[self.offsets[row] : self.offsets[row + 1]])
            chosen.offsets.append(len(chosen.edges))
            chosen.count += self.run_of[row] != ABSENT
        return chosen
