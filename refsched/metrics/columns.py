"""Columns: what all records show, in arrays of 8-byte integers, so that millions of records need little memory."""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from refsched.metrics.compact import MISSING, pick, sort_packed, to_array
from refsched.metrics.ranges import RangeTable
from refsched.record import Outcome

OUTCOMES = tuple(Outcome)
CODE = {outcome: code for code, outcome in enumerate(OUTCOMES)}
COMPLETED = CODE[Outcome.COMPLETED]


@dataclass(slots=True)
class Columns:
    """Hold one row for each record; `gaps` and `held` give the gaps before the chunks of row i and their tokens.

    A simulated record has none there: its ranges of iterations stand in `ranges`, under its row.
    """

    outcomes: Sequence[int]
    groups: Sequence[int]
    names: Sequence[str]  # of the groups
    fields: Mapping[str, Sequence[int]]  # columns that agree in every row may be one
    longest: Sequence[int]
    starts: Sequence[int]  # starts[i]:starts[i + 1] are the gaps of row i
    gaps: Sequence[int]
    held: Sequence[int]
    ranges: RangeTable
    clock: str = "run"
    disagreements: int = 0  # records whose two token counts differ
    sources: dict[str, int] = field(default_factory=dict)  # records by where their token total comes from

    def __len__(self) -> int:
        return len(self.outcomes)

    def get(self, name: str) -> Sequence[int]:
        """Give a column; MISSING stands for what is not known."""
        return self.longest if name == "longest" else self.fields[name]

    def known(self, name: str) -> Sequence[int]:
        """Give the values of a column that are known."""
        column = self.get(name)
        return column if MISSING not in column else to_array(value for value in column if value != MISSING)

    def sort_known(self, name: str) -> Sequence[int]:
        """Give the known values of a column in order."""
        return sort_packed(self.known(name))

    def select(self, rows: Sequence[int]) -> "Columns":
        """Give the same columns with only some rows, in order."""
        if len(rows) == len(self):
            return self
        starts, gaps = self.starts, self.gaps
        picked = {id(column): pick(column, rows) for column in self.fields.values()}
        return Columns(
            outcomes=pick(self.outcomes, rows),
            groups=pick(self.groups, rows),
            names=self.names,
            fields={name: picked[id(column)] for name, column in self.fields.items()},
            longest=pick(self.longest, rows),
            starts=to_array(accumulate((starts[row + 1] - starts[row] for row in rows), initial=0)),
            gaps=pick_slices(gaps, starts, rows),
            held=pick_slices(self.held, starts, rows),
            ranges=self.ranges.select(rows),
            clock=self.clock,
        )

    def select_completed(self) -> "Columns":
        """Give the rows of completed requests."""
        if self.outcomes.count(COMPLETED) == len(self):
            return self
        return self.select(array("q", (row for row, code in enumerate(self.outcomes) if code == COMPLETED)))

    def select_groups(self) -> dict[str, "Columns"]:
        """Give the rows of each group, by its name; none where no record names one."""
        found = set(self.groups)
        if not any(self.names[group] for group in found):
            return {}
        rows = {group: array("q") for group in found}
        for row, group in enumerate(self.groups):
            rows[group].append(row)
        return {self.names[group]: self.select(rows[group]) for group in sorted(rows, key=self.names.__getitem__)}


def pick_slices(column: Sequence[int], starts: Sequence[int], rows: Sequence[int]) -> Sequence[int]:
    """Give the values that belong to some rows."""
    picked = array("q")
    if column:
        for row in rows:
            picked.extend(column[starts[row] : starts[row + 1]])
    return picked
