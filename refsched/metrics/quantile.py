"""Exact quantiles of weighted populations, each under the name of its definition [A10, B12, decision 11]."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from itertools import accumulate
from math import ceil, floor
from typing import TypeAlias

from refsched.errors import InputError

Value: TypeAlias = int | Fraction


class Population:
    """Hold values with how often each occurs, in order; nothing is expanded."""

    def __init__(self, counts: Mapping[Value, int]):
        self.values = sorted(counts)
        self.ranks = list(accumulate(counts[value] for value in self.values))  # rank of the last copy of each value
        self.n = self.ranks[-1] if self.ranks else 0

    def at(self, rank: int) -> Value:
        """Give the value of rank 1 … n in ascending order."""
        return self.values[bisect_left(self.ranks, rank)]

    def mean(self) -> Fraction:
        """Give the exact mean; the population must not be empty."""
        before = [0, *self.ranks]
        shares = (value * (upto - start) for value, start, upto in zip(self.values, before, self.ranks, strict=False))
        return Fraction(sum(shares)) / self.n

    def share_above(self, threshold: Value) -> Fraction:
        """Give the share of the population that is above `threshold`."""
        place = bisect_left(self.values, threshold)
        place += place < len(self.values) and self.values[place] == threshold
        return 1 - Fraction(self.ranks[place - 1] if place else 0, self.n)


def count_values(values: Iterable[Value]) -> dict[Value, int]:
    """Count how often each value occurs."""
    counts: dict[Value, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return counts


def compute_nearest_rank(population: Population, p: Fraction) -> Fraction:
    """Give the value of rank ceil(n * p), at least 1."""
    return Fraction(population.at(max(1, ceil(population.n * p))))


def compute_linear(population: Population, p: Fraction) -> Fraction:
    """Interpolate between the ranks around (n - 1) * p + 1: Hyndman and Fan's type 7, numpy's default."""
    place = (population.n - 1) * p
    low = floor(place)
    below = Fraction(population.at(low + 1))
    return below if low == place else below + (place - low) * (population.at(low + 2) - below)


def compute_inverted_cdf(population: Population, p: Fraction) -> Fraction:
    """Give the least value below or at which a share of at least p lies: Hyndman and Fan's type 1."""
    shares = [rank >= p * population.n for rank in population.ranks]
    return Fraction(population.values[shares.index(True)])


def compute_floor_index(population: Population, p: Fraction) -> Fraction:
    """Give sorted[floor(n * p)], counted from 0 and cut at the last: MLPerf LoadGen's rule."""
    return Fraction(population.at(min(floor(population.n * p), population.n - 1) + 1))


METHODS: Mapping[str, Callable[[Population, Fraction], Fraction]] = {
    "nearest-rank": compute_nearest_rank,
    "linear": compute_linear,
    "inverted-cdf": compute_inverted_cdf,
    "floor-index": compute_floor_index,
}
DEFAULT_METHOD = "nearest-rank"


def compute_quantile(population: Population, p: Fraction, method: str = DEFAULT_METHOD) -> Fraction:
    """Give the quantile p of a population under a named definition.

    Raise InputError for an unknown definition, an empty population, or p outside 0 … 1.
    """
    if method not in METHODS:
        raise InputError(f"{method!r} is not one of {', '.join(METHODS)}", field="--quantile")
    if population.n == 0:
        raise InputError("an empty population has no quantiles")
    if not 0 <= p <= 1:
        raise InputError(f"{p} is not between 0 and 1")
    return METHODS[method](population, p)
