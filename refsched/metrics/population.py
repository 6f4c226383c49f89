"""Populations: values in ascending order, exact and in compact arrays; nothing is expanded and nothing is rounded.

Ratios are ordered without making a Fraction of each: `make_key` maps rationals whose denominators are below 2**63
to integers in the same order, and different rationals to different integers.
"""

from array import array
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import merge
from itertools import accumulate, chain, repeat
from operator import mul, sub
from typing import TypeAlias

from refsched.errors import InputError
from refsched.metrics.compact import RUN, get_kind, to_array

Value: TypeAlias = int | Fraction
SHIFT = 128  # rationals a/b and c/d that differ, differ by at least 1/(b*d), which is above 2**-128
SAMPLE = 1 << 17  # values looked at to see whether many are the same


def make_key(value: int, divisor: int = 1) -> int:
    """Give an integer that orders value / divisor among all rationals with denominators below 2**63."""
    return (value << SHIFT) // divisor


@dataclass(frozen=True, slots=True)
class Run:
    """Hold values in ascending order: integers or, with `divisors`, ratios; `ranks` count the copies up to each."""

    values: Sequence[int]
    divisors: Sequence[int] | None = None
    ranks: Sequence[int] | None = None

    def __len__(self) -> int:
        if self.ranks is None:
            return len(self.values)
        return self.ranks[-1] if self.ranks else 0

    def get_value(self, place: int) -> Fraction:
        """Give the value at a place among the distinct ones."""
        return Fraction(self.values[place], 1 if self.divisors is None else self.divisors[place])

    def get_key(self, place: int) -> int:
        """Give the key of the value at a place."""
        return make_key(self.values[place], 1 if self.divisors is None else self.divisors[place])

    def find_place(self, key: int) -> int:
        """Count the places whose keys are at most `key`."""
        if self.divisors is None:
            return bisect_right(self.values, key >> SHIFT)
        return bisect_right(range(len(self.values)), key, key=self.get_key)

    def count_up_to(self, key: int) -> int:
        """Count the values whose keys are at most `key`."""
        place = self.find_place(key)
        return place if self.ranks is None else self.ranks[place - 1] if place else 0

    def weights(self) -> Iterator[int]:
        """Give how often each value stands here."""
        if self.ranks is None:
            return repeat(1, len(self.values))
        return map(sub, self.ranks, chain((0,), self.ranks))

    def has_one_divisor(self) -> bool:
        """Tell whether all ratios have the same divisor."""
        divisors = self.divisors or ()
        return bool(divisors) and divisors.count(divisors[0]) == len(divisors)

    def total(self) -> Fraction:
        """Give the exact sum of all values."""
        weighted = self.values if self.ranks is None else map(mul, self.values, self.weights())
        if self.divisors is None:
            return Fraction(sum(weighted))
        if self.has_one_divisor():
            return Fraction(sum(weighted), self.divisors[0])
        parts: dict[int, int] = defaultdict(int)
        for value, divisor in zip(weighted, self.divisors, strict=True):
            parts[divisor] += value
        return sum_exactly([Fraction(part, divisor) for divisor, part in parts.items()])


def sum_exactly(parts: Sequence[Fraction]) -> Fraction:
    """Add rationals in pairs of pairs, so that few of the sums have long denominators."""
    if len(parts) < 3:
        return sum(parts, Fraction(0))
    middle = len(parts) // 2
    return sum_exactly(parts[:middle]) + sum_exactly(parts[middle:])


class Population:
    """Hold values with how often each occurs; made from counts, or from runs that are each in order."""

    def __init__(self, counts: Mapping[Value, int] | None = None, runs: Iterable[Run] = ()):
        self.runs = [run for run in (*runs, *make_rational_runs(counts or {})) if len(run)]
        self.n = sum(map(len, self.runs))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Population) and list(self.weighted()) == list(other.weighted())

    def at(self, rank: int) -> Fraction:
        """Give the value of rank 1 … n in ascending order; raise InputError for any other rank."""
        if not 1 <= rank <= self.n:
            raise InputError(f"a population of {self.n} has no rank {rank}")
        if len(self.runs) == 1:
            run = self.runs[0]
            return run.get_value(rank - 1 if run.ranks is None else bisect_right(run.ranks, rank - 1))
        return self._find(rank)

    def _find(self, rank: int) -> Fraction:
        low = min(run.get_key(0) for run in self.runs)
        high = max(run.get_key(len(run.values) - 1) for run in self.runs)
        while low < high:
            middle = (low + high) // 2
            if sum(run.count_up_to(middle) for run in self.runs) >= rank:
                high = middle
            else:
                low = middle + 1
        ends = ((run, run.find_place(low) - 1) for run in self.runs)
        return next(run.get_value(place) for run, place in ends if place >= 0 and run.get_key(place) == low)

    def mean(self) -> Fraction:
        """Give the exact mean; the population must not be empty."""
        return sum_exactly([run.total() for run in self.runs]) / self.n

    def max(self) -> Fraction:
        """Give the largest value; the population must not be empty."""
        return max(run.get_value(len(run.values) - 1) for run in self.runs)

    def min(self) -> Fraction:
        """Give the smallest value; the population must not be empty."""
        return min(run.get_value(0) for run in self.runs)

    def count_above(self, threshold: Value) -> int:
        """Count the values above `threshold`."""
        key = make_key(threshold.numerator, threshold.denominator)
        return self.n - sum(run.count_up_to(key) for run in self.runs)

    def share_above(self, threshold: Value) -> Fraction:
        """Give the share of the population that is above `threshold`; the population must not be empty."""
        return Fraction(self.count_above(threshold), self.n)

    def weighted(self) -> Iterator[tuple[Fraction, int]]:
        """Give each distinct value in ascending order, with how often it occurs."""
        entries = merge(*map(list_keys, self.runs))
        last, value, weight = None, Fraction(0), 0
        for key, numerator, divisor, count in entries:
            if key != last and last is not None:
                yield value, weight
            weight = weight + count if key == last else count
            last, value = key, Fraction(numerator, divisor)
        if last is not None:
            yield value, weight


def list_keys(run: Run) -> Iterator[tuple[int, int, int, int]]:
    """Give (key, value, divisor, weight) of each place of a run."""
    divisors = run.divisors or [1] * len(run.values)
    for value, divisor, weight in zip(run.values, divisors, run.weights(), strict=True):
        yield make_key(value, divisor), value, divisor, weight


def count_values(values: Iterable[Value]) -> dict[Value, int]:
    """Count how often each value occurs."""
    counts: dict[Value, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return counts


def make_rational_runs(counts: Mapping[Value, int]) -> list[Run]:
    """Make a run of values, rationals among them, that are counted already."""
    values = sorted(counts)
    ranks = list(accumulate(counts[value] for value in values))
    if all(isinstance(value, int) for value in values):
        return [Run([value.numerator for value in values], None, ranks)]
    return [Run([value.numerator for value in values], [value.denominator for value in values], ranks)]


def make_runs(values: Iterable[int]) -> list[Run]:
    """Sort integers into runs; memory follows the length of one run."""
    every = values if isinstance(values, list | array) else to_array(values)
    parts = (every[start : start + RUN] for start in range(0, len(every), RUN))
    return [make_run(part) for part in parts]


def make_run(part: Sequence[int]) -> Run:
    """Sort integers, or count them where many are the same, which is quicker then."""
    if len(part) > SAMPLE and len(set(part[:SAMPLE])) * 2 < SAMPLE:
        return make_counted_run(Counter(part))
    return Run(to_array(sorted(part)))


def make_counted_run(counts: Mapping[int, int]) -> Run:
    """Make a run of integers that are counted already."""
    values = to_array(sorted(counts))
    return Run(values, None, to_array(accumulate(map(counts.__getitem__, values))))


def merge_counted_runs(one: Run, other: Run) -> Run:
    """Merge two runs of counted integers into one; a value of both is counted together."""
    values, ranks, total = array("q"), array("q"), 0
    for value, weight in merge(*(zip(run.values, run.weights(), strict=True) for run in (one, other))):
        total += weight
        if values and values[-1] == value:
            ranks[-1] = total
        else:
            values.append(value)
            ranks.append(total)
    return Run(values, None, ranks)


def make_ratio_runs(values: Sequence[int], divisors: Sequence[int], is_weighted: bool = False) -> list[Run]:
    """Sort ratios into runs; where they are weighted, each stands as often as its divisor says."""
    runs = []
    for start in range(0, len(values), RUN):
        part, over = values[start : start + RUN], divisors[start : start + RUN]
        if over.count(over[0]) == len(over):
            runs.append(make_common_run(part, over[0], is_weighted))
            continue
        shift = 2 * max(over).bit_length()  # 1 / (b * d) is above 2**-shift
        keys = [(value << shift) // each for value, each in zip(part, over, strict=True)]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        below = array(get_kind(over), map(over.__getitem__, order))
        ranks = to_array(accumulate(below)) if is_weighted else None
        runs.append(Run(to_array(map(part.__getitem__, order)), below, ranks))
    return runs


def make_common_run(values: Sequence[int], divisor: int, is_weighted: bool) -> Run:
    """Sort ratios of one divisor."""
    divisors = to_array([divisor]) * len(values)
    return Run(to_array(sorted(values)), divisors, to_array(accumulate(divisors)) if is_weighted else None)
