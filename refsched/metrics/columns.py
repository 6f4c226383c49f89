"""Columns: what all records show, in arrays of 8-byte integers, so that a million records need little memory."""

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from refsched.errors import InputError
from refsched.metrics.population import to_array
from refsched.metrics.ranges import RangeTable
from refsched.metrics.seen import (
    Chunks,
    Seen,
    get_chunks,
    list_gaps,
    look_at,
    look_at_ranges,
)
from refsched.metrics.steps import Steps
from refsched.record import IterationRanges, Outcome, Record
from refsched.units import Ticks

MISSING = -(1 << 63)
BATCH = 1 << 12
OUTCOMES = tuple(Outcome)
CODE = {outcome: code for code, outcome in enumerate(OUTCOMES)}
COMPLETED = CODE[Outcome.COMPLETED]


@dataclass(slots=True)
class Columns:
    """Hold one row for each record; `gaps` and `held` give the gaps before the chunks of row i and their tokens.

    A simulated record has no rows in `gaps`: its ranges of iterations stand in `ranges`, under its row.
    """

    outcomes: Sequence[int]
    groups: Sequence[int]
    names: Sequence[str]  # of the groups
    fields: dict[str, Sequence[int]]
    longest: Sequence[int]
    starts: Sequence[int]  # starts[i]:starts[i + 1] are the gaps of row i
    gaps: Sequence[int]
    held: Sequence[int]
    ranges: RangeTable
    steps: Steps
    clock: str = "run"
    disagreements: int = 0  # records whose two token counts differ
    sources: dict[str, int] = field(default_factory=dict)  # records by where their token total comes from

    def __len__(self) -> int:
        return len(self.outcomes)

    def get(self, name: str) -> Sequence[int]:
        """Give a column; MISSING stands for what is not known."""
        return self.longest if name == "longest" else self.fields[name]

    def known(self, name: str) -> list[int]:
        """Give the values of a column that are known."""
        column = self.get(name)
        return list(column) if MISSING not in column else [value for value in column if value != MISSING]

    def find_rows(self, is_wanted: Callable[[int], bool]) -> list[int]:
        """Number the rows that are wanted."""
        return [row for row in range(len(self)) if is_wanted(row)]

    def select(self, rows: Sequence[int]) -> "Columns":
        """Give the same columns with only some rows, in order."""
        if len(rows) == len(self):
            return self
        starts, gaps = self.starts, self.gaps
        return Columns(
            outcomes=pick(self.outcomes, rows),
            groups=pick(self.groups, rows),
            names=self.names,
            fields={name: pick(column, rows) for name, column in self.fields.items()},
            longest=pick(self.longest, rows),
            starts=to_array(accumulate((starts[row + 1] - starts[row] for row in rows), initial=0)),
            gaps=pick_slices(gaps, starts, rows),
            held=pick_slices(self.held, starts, rows),
            ranges=self.ranges.select(rows),
            steps=self.steps,
            clock=self.clock,
        )

    def select_completed(self) -> "Columns":
        """Give the rows of completed requests."""
        if self.outcomes.count(COMPLETED) == len(self):
            return self
        return self.select([row for row, code in enumerate(self.outcomes) if code == COMPLETED])

    def select_groups(self) -> dict[str, "Columns"]:
        """Give the rows of each group, by its name; none where no record names one."""
        rows: dict[int, list[int]] = {}
        for row, group in enumerate(self.groups):
            rows.setdefault(group, []).append(row)
        if all(not self.names[group] for group in rows):
            return {}
        return {self.names[group]: self.select(rows[group]) for group in sorted(rows, key=self.names.__getitem__)}


def pick(column: Sequence[int], rows: Sequence[int]) -> Sequence[int]:
    """Give some values of a column."""
    return array("q", map(column.__getitem__, rows))


def pick_slices(column: Sequence[int], starts: Sequence[int], rows: Sequence[int]) -> Sequence[int]:
    """Give the values that belong to some rows."""
    picked = array("q")
    if column:
        for row in rows:
            picked.extend(column[starts[row] : starts[row + 1]])
    return picked


class Collector:
    """Turn records into columns, one at a time."""

    def __init__(self) -> None:
        self.codes, self.of_group, self.longest = array("b"), array("q"), array("q")
        self.groups: dict[str, int] = {}
        self.columns = [array("q") for _ in Seen._fields]
        self.batch: list[Seen] = []
        self.starts, self.gaps, self.held = array("q", [0]), array("q"), array("q")
        self.ranges = RangeTable()
        self.steps = Steps()
        self.clocks: dict[str, str] = {}
        self.sources: dict[str, int] = {}
        self.disagreements = 0

    def add(self, record: Record) -> None:
        """Add one record."""
        deliveries = record.deliveries
        if isinstance(deliveries, IterationRanges):
            seen = look_at_ranges(record, deliveries)
            longest = self.steps.find_longest(deliveries)
            self.ranges.add(deliveries)
        else:
            self.ranges.add(None)
            chunks = get_chunks(record)
            seen = look_at(record, chunks)
            longest = self.add_gaps(chunks)
        self.longest.append(MISSING if longest is None else longest)
        self.starts.append(len(self.gaps))
        self.batch.append(seen)
        self.add_kind(record, seen)
        if len(self.batch) == BATCH:
            self.flush()

    def add_gaps(self, chunks: Chunks) -> Ticks | None:
        """Add the gaps between the chunks of one record, and return the longest."""
        if len(chunks.times) < 2:
            return None
        gaps = list_gaps(chunks.times)
        self.gaps.extend(gaps)
        self.held.extend(chunks.tokens[1:])
        return max(gaps)

    def add_kind(self, record: Record, seen: Seen) -> None:
        """Add how it ended, its group, its clock, and where its token count comes from."""
        self.codes.append(CODE[record.outcome])
        self.of_group.append(self.groups.setdefault(record.group, len(self.groups)))
        self.clocks.setdefault(record.clock, record.id)
        if record.output_tokens is not None:
            source = record.token_source or "unnamed"
            self.sources[source] = self.sources.get(source, 0) + 1
            self.disagreements += seen.delivered is not None and seen.delivered != record.output_tokens

    def flush(self) -> None:
        """Move the batch into the columns."""
        for column, values in zip(self.columns, zip(*self.batch, strict=True), strict=False):
            unknown = values.count(None)
            if unknown == len(values):
                column.extend((MISSING,) * unknown)
            else:
                column.extend([MISSING if value is None else value for value in values] if unknown else values)
        self.batch.clear()

    def finish(self) -> Columns:
        """Give the columns; raise InputError where two clocks are mixed."""
        self.flush()
        if len(self.clocks) > 1:
            raise InputError(f"record {list(self.clocks.values())[1]!r} has another clock than those before it")
        return Columns(
            outcomes=self.codes,
            groups=self.of_group,
            names=list(self.groups),
            fields=dict(zip(Seen._fields, self.columns, strict=True)),
            longest=self.longest,
            starts=self.starts,
            gaps=self.gaps,
            held=self.held,
            ranges=self.ranges,
            steps=self.steps,
            clock=next(iter(self.clocks), "run"),
            disagreements=self.disagreements,
            sources=self.sources,
        )


def collect(records: Iterable[Record]) -> Columns:
    """Turn records into columns; raise InputError for a time that is not near 0, or for mixed clocks."""
    collector = Collector()
    try:
        for record in records:
            collector.add(record)
        return collector.finish()
    except OverflowError:
        raise InputError("times more than 106 days from 0; count them from the start of the run") from None
