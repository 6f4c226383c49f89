"""Records turned into columns, one at a time, whoever made them."""

from array import array
from collections.abc import Iterable

from refsched.errors import InputError
from refsched.metrics.columns import CODE, Columns
from refsched.metrics.compact import MISSING, TOO_FAR, Padded, SharedColumns
from refsched.metrics.ranges import RangeCollector
from refsched.metrics.seen import Chunks, Seen, get_chunks, list_gaps, look_at, look_at_ranges
from refsched.metrics.steps import find_longest
from refsched.record import IterationRanges, Record
from refsched.units import Ticks

BATCH = 1 << 12


class Collector:
    """Turn records into columns, one at a time."""

    def __init__(self) -> None:
        self.codes, self.longest = array("b"), array("q")
        self.groups: dict[str, int] = {}
        self.of_group, self.starts = Padded(), Padded()
        self.columns = SharedColumns(len(Seen._fields))
        self.batch: list[Seen] = []
        self.gaps, self.held = array("q"), array("q")
        self.ranges = RangeCollector()
        self.clocks: dict[str, str] = {}
        self.sources: dict[str, int] = {}
        self.disagreements = 0

    def add(self, record: Record) -> None:
        """Add one record."""
        deliveries, row = record.deliveries, len(self.codes)
        if isinstance(deliveries, IterationRanges):
            seen, longest = look_at_ranges(record, deliveries), MISSING  # until all are there
            self.ranges.add(row, deliveries)
        else:
            chunks = get_chunks(record)
            seen, longest = look_at(record, chunks), self.add_gaps(chunks)
        self.longest.append(longest)
        if self.gaps:
            self.starts.put(row + 1, len(self.gaps))
        self.batch.append(seen)
        self.add_kind(row, record, seen)
        if len(self.batch) == BATCH:
            self.flush()

    def add_gaps(self, chunks: Chunks) -> Ticks:
        """Add the gaps between the chunks of one record, and return the longest; MISSING where there is none."""
        if len(chunks.times) < 2:
            return MISSING
        gaps = list_gaps(chunks.times)
        self.gaps.extend(gaps)
        self.held.extend(chunks.tokens[1:])
        return max(gaps)

    def add_kind(self, row: int, record: Record, seen: Seen) -> None:
        """Add how it ended, its group, its clock, and where its token count comes from."""
        self.codes.append(CODE[record.outcome])
        group = self.groups.setdefault(record.group, len(self.groups))
        if group:
            self.of_group.put(row, group)
        self.clocks.setdefault(record.clock, record.id)
        if record.output_tokens is not None:
            source = record.token_source or "unnamed"
            self.sources[source] = self.sources.get(source, 0) + 1
            self.disagreements += seen.delivered is not None and seen.delivered != record.output_tokens

    def flush(self) -> None:
        """Move the batch into the columns."""
        if self.batch:
            self.columns.extend(list(zip(*self.batch, strict=True)))
        self.batch.clear()

    def finish(self) -> Columns:
        """Give the columns; raise InputError where two clocks are mixed."""
        self.flush()
        if len(self.clocks) > 1:
            raise InputError(f"record {list(self.clocks.values())[1]!r} has another clock than those before it")
        rows = len(self.codes)
        ranges = self.ranges.take(rows)
        for row, gap in find_longest(ranges):
            self.longest[row] = max(self.longest[row], gap)
        return Columns(
            outcomes=self.codes,
            groups=self.of_group.take(rows),
            names=list(self.groups),
            fields={name: self.columns[place] for place, name in enumerate(Seen._fields)},
            longest=self.longest,
            starts=self.starts.take(rows + 1),
            gaps=self.gaps,
            held=self.held,
            ranges=ranges,
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
        raise InputError(TOO_FAR) from None
