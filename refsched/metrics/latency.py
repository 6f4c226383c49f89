"""Latency of single requests, and the gaps between their deliveries.

All values are ticks. What is not defined for a record is None: it is counted as undefined, never as 0.
"""

from collections.abc import Iterable
from fractions import Fraction
from itertools import accumulate, pairwise

from refsched.metrics.quantile import Value
from refsched.record import IterationEnds, IterationRanges, Record
from refsched.units import Ticks, Tokens


def get_first(record: Record) -> Ticks | None:
    """Give the time of the first delivery."""
    deliveries = record.deliveries
    if isinstance(deliveries, IterationRanges):
        return deliveries.ends[deliveries.ranges[0][0]] if deliveries.ranges else None
    return next((delivery.at for delivery in deliveries), None)


def get_last(record: Record) -> Ticks | None:
    """Give the time of the last delivery."""
    deliveries = record.deliveries
    if isinstance(deliveries, IterationRanges):
        return deliveries.ends[deliveries.ranges[-1][1] - 1] if deliveries.ranges else None
    return max((delivery.at for delivery in deliveries), default=None)


def count_tokens(record: Record) -> Tokens | None:
    """Count the output tokens delivered; None where a delivery does not say how many it holds."""
    deliveries = record.deliveries
    if isinstance(deliveries, IterationRanges):
        return len(deliveries)
    counts = [delivery.tokens for delivery in deliveries]
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

    def __init__(self) -> None:
        self.steps: dict[int, tuple[IterationEnds, list[Ticks]]] = {}

    def get_steps(self, ends: IterationEnds) -> list[Ticks]:
        """Give, for each iteration, the ticks since the end of the one before it (0 for the first)."""
        if id(ends) not in self.steps:
            self.steps[id(ends)] = ends, [0, *(after - before for before, after in pairwise(ends))]
        return self.steps[id(ends)][1]

    def longest(self, record: Record) -> Ticks | None:
        """Give the longest gap between two deliveries of one request, for two deliveries or more [B15]."""
        deliveries = record.deliveries
        if not isinstance(deliveries, IterationRanges):
            return max((after.at - before.at for before, after in pairwise(deliveries)), default=None)
        steps = self.get_steps(deliveries.ends)
        inside = [max(steps[first + 1 : stop]) for first, stop in deliveries.ranges if stop - first > 1]
        return max(inside + between_ranges(deliveries), default=None)

    def count(self, records: Iterable[Record]) -> dict[Value, int]:
        """Count all gaps of all records by length."""
        counts: dict[Value, int] = {}
        changes: dict[int, list[int]] = {}
        for record in records:
            for gap in self.add_record(record, changes):
                counts[gap] = counts.get(gap, 0) + 1
        for key, change in changes.items():
            for gap, weight in zip(self.steps[key][1], accumulate(change), strict=False):
                if weight:
                    counts[gap] = counts.get(gap, 0) + weight
        return counts

    def add_record(self, record: Record, changes: dict[int, list[int]]) -> list[Ticks]:
        """Return a record's single gaps; those inside ranges are added to `changes`, as where coverage rises and falls."""
        deliveries = record.deliveries
        if not isinstance(deliveries, IterationRanges):
            return [after.at - before.at for before, after in pairwise(deliveries)]
        self.get_steps(deliveries.ends)
        change = changes.setdefault(id(deliveries.ends), [0] * (len(deliveries.ends) + 1))
        for first, stop in deliveries.ranges:
            change[first + 1] += 1
            change[stop] -= 1
        return between_ranges(deliveries)


def between_ranges(deliveries: IterationRanges) -> list[Ticks]:
    """Give the gaps from the last delivery of each range to the first of the next."""
    ends = deliveries.ends
    return [ends[after[0]] - ends[before[1] - 1] for before, after in pairwise(deliveries.ranges)]
