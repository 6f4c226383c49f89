"""The definitions once more, for one record and one delivery after the other: what the columns must agree with.

All values are ticks. What is not defined for a record is None: it is counted as undefined, never as 0.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise

from refsched.metrics.population import Value
from refsched.metrics.ranges import RangeCollector, RangeTable
from refsched.metrics.steps import count_gaps, find_longest
from refsched.record import IterationRanges, Record
from refsched.units import Ticks, Tokens

WITH_TOKENS = ("content", "reasoning")


def get_times(record: Record) -> list[Ticks]:
    """Give the times of the chunks that carry tokens."""
    return [each.at for each in record.deliveries if each.kind in WITH_TOKENS and each.tokens != 0]


def get_first(record: Record) -> Ticks | None:
    """Give the time of the first chunk with tokens."""
    return next(iter(get_times(record)), None)


def get_last(record: Record) -> Ticks | None:
    """Give the time of the last chunk with tokens."""
    return max(get_times(record), default=None)


def count_tokens(record: Record) -> Tokens | None:
    """Count the output tokens; None where neither a total nor every delivery says how many there are."""
    if record.output_tokens is not None and record.token_source != "requested":
        return record.output_tokens
    counts = [each.tokens for each in record.deliveries if each.kind in WITH_TOKENS]
    return None if None in counts else sum(count or 0 for count in counts)


def compute_ttft(record: Record) -> Ticks | None:
    """Compute the time to first token: first token received - request sent [A8]."""
    first = get_first(record)
    return None if first is None or record.sent is None else first - record.sent


def compute_tpot(record: Record) -> Fraction | None:
    """Compute the time per output token after the first: (last - first) / (tokens - 1), for two tokens or more [A9]."""
    first, last, tokens = get_first(record), get_last(record), count_tokens(record)
    if first is None or last is None or tokens is None or tokens < 2:
        return None
    return Fraction(last - first, tokens - 1)


def compute_total(record: Record) -> Ticks | None:
    """Compute the total time: last token received - request sent."""
    last = get_last(record)
    return None if last is None or record.sent is None else last - record.sent


class Gaps:
    """Measure the gaps between deliveries [A12, B13]; ranges over shared iteration ends are never expanded."""

    def longest(self, record: Record) -> Ticks | None:
        """Give the longest gap between two deliveries of one request, for two deliveries or more [B15]."""
        deliveries = record.deliveries
        if isinstance(deliveries, IterationRanges):
            return max((gap for _, gap in find_longest(make_table([deliveries]))), default=None)
        return max((after - before for before, after in pairwise(get_times(record))), default=None)

    def count(self, records: Iterable[Record]) -> dict[Value, int]:
        """Count all gaps of all records by length."""
        every = list(records)
        ranges = [record.deliveries for record in every if isinstance(record.deliveries, IterationRanges)]
        counts: dict[Value, int] = Counter()
        for part in count_gaps(make_table(ranges)):
            for gap, weight in part.items():
                counts[gap] += weight
        for record in every:
            if not isinstance(record.deliveries, IterationRanges):
                for before, after in pairwise(get_times(record)):
                    counts[after - before] += 1
        return counts


def make_table(every: Sequence[IterationRanges]) -> RangeTable:
    """Put ranges into a table, a row for each."""
    collector = RangeCollector()
    for row, deliveries in enumerate(every):
        collector.add(row, deliveries)
    return collector.take(len(every))
