"""Exact quantiles, each under the name of its definition [A10, B12, decision 11].

The types are those of R. J. Hyndman and Y. Fan, "Sample quantiles in statistical packages", 1996.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from math import ceil, floor

from refsched.errors import InputError
from refsched.metrics.population import Population, Value, count_values

__all__ = ["DEFAULT_METHOD", "METHODS", "Population", "Value", "compute_quantile", "count_values", "get_method"]

HALF = Fraction(1, 2)


def compute_nearest_rank(population: Population, p: Fraction) -> Fraction:
    """Give the value of rank ceil(n * p), at least 1."""
    return population.at(max(1, ceil(population.n * p)))


def compute_averaged(population: Population, p: Fraction) -> Fraction:
    """Give the nearest rank or, where n * p is whole, the mean of that value and the next: type 2."""
    rank = ceil(population.n * p)
    if rank != population.n * p:
        return population.at(rank)
    return (at_clamped(population, rank) + at_clamped(population, rank + 1)) / 2


def compute_nearest_even(population: Population, p: Fraction) -> Fraction:
    """Give the value whose rank is nearest to n * p, the even one of two: type 3."""
    return at_clamped(population, round(population.n * p))


def interpolate(shift: Fraction, slope: Fraction, population: Population, p: Fraction) -> Fraction:
    """Interpolate between the ranks around n * p + shift + slope * p: types 4 to 9."""
    place = population.n * p + shift + slope * p
    low = floor(place)
    below = at_clamped(population, low)
    return below if low == place else below + (place - low) * (at_clamped(population, low + 1) - below)


def compute_floor_index(population: Population, p: Fraction) -> Fraction:
    """Give sorted[floor(n * p)], counted from 0 and cut at the last: MLPerf LoadGen's rule."""
    return at_clamped(population, floor(population.n * p) + 1)


def compute_nearest_index(population: Population, p: Fraction) -> Fraction:
    """Give sorted[(n - 1) * p] with the index rounded half to even: numpy's `nearest`."""
    return population.at(round((population.n - 1) * p) + 1)


def compute_rounded_rank(population: Population, p: Fraction) -> Fraction:
    """Give the value of rank floor(n * p + 1/2), at least 1: HdrHistogram's rule, without its buckets."""
    return at_clamped(population, floor(population.n * p + HALF))


def compute_float_cumulative(population: Population, p: Fraction) -> Fraction:
    """Give the first value at which shares added up in binary floating point reach p: GuideLLM's rule.

    The rounding of the sum is part of that rule; it can come out one value above or below type 1.
    """
    reached, wanted = 0.0, p.numerator / p.denominator
    for value, weight in population.weighted():
        reached += weight / population.n
        if reached >= wanted:
            return value
    return population.max()


def at_clamped(population: Population, rank: int) -> Fraction:
    """Give the value of a rank, the first or the last where there is none."""
    return population.at(min(max(rank, 1), population.n))


Rule = Callable[[Population, Fraction], Fraction]
INTERPOLATED: Mapping[str, tuple[Fraction, Fraction]] = {  # shift, slope
    "hf4": (Fraction(0), Fraction(0)),
    "hf5": (HALF, Fraction(0)),
    "hf6": (Fraction(0), Fraction(1)),
    "hf7": (Fraction(1), Fraction(-1)),
    "hf8": (Fraction(1, 3), Fraction(1, 3)),
    "hf9": (Fraction(3, 8), Fraction(1, 4)),
}
DEFINITIONS: Mapping[str, Rule] = {
    "nearest-rank": compute_nearest_rank,
    "hf1": compute_nearest_rank,
    "hf2": compute_averaged,
    "hf3": compute_nearest_even,
    **{name: partial(interpolate, shift, slope) for name, (shift, slope) in INTERPOLATED.items()},
    "floor-index": compute_floor_index,
    "nearest-index": compute_nearest_index,
    "rounded-rank": compute_rounded_rank,
    "float-cumulative": compute_float_cumulative,
}
ALIASES: Mapping[str, str] = {"linear": "hf7", "inverted-cdf": "hf1", "guidellm": "float-cumulative"}
METHODS: Mapping[str, Rule] = {**DEFINITIONS, **{alias: DEFINITIONS[name] for alias, name in ALIASES.items()}}
DEFAULT_METHOD = "nearest-rank"


def get_method(name: str) -> Rule:
    """Get a definition by name; raise InputError for an unknown one."""
    if name not in METHODS:
        raise InputError(f"{name!r} is not one of {', '.join(METHODS)}", field="--quantile")
    return METHODS[name]


def compute_quantile(population: Population, p: Fraction, method: str = DEFAULT_METHOD) -> Fraction:
    """Give the quantile p of a population under a named definition.

    Raise InputError for an unknown definition, an empty population, or p outside 0 … 1.
    """
    rule = get_method(method)
    if population.n == 0:
        raise InputError("an empty population has no quantiles")
    if not 0 <= p <= 1:
        raise InputError(f"{p} is not between 0 and 1")
    return rule(population, p)
