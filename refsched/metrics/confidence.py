"""Confidence in a quantile from order statistics alone: nothing is assumed of the distribution.

The number of values below the true quantile is binomial, so two ranks bound it with a known probability; see
H. A. David and H. N. Nagaraja, "Order Statistics", section 7.1. Values are taken as independent, which requests that
share a batch are not: the true interval is wider.

Binomial tails are added up in integers scaled by 2**BITS; where a tail comes within 2**-MARGIN of the level, the
wider interval is given.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb

from refsched.metrics.population import Population

BITS, MARGIN = 200, 64
LEVEL = Fraction(95, 100)


@dataclass(frozen=True, slots=True)
class Ranks:
    """Hold the ranks whose values bound a quantile; None where no rank does: too few values."""

    lower: int | None
    upper: int | None


@dataclass(frozen=True, slots=True)
class Interval:
    """Hold the values that bound a quantile at a level of confidence; None where the sample has no such bound.

    `needed` values are the fewest that have both bounds.
    """

    level: Fraction
    lower: Fraction | None
    upper: Fraction | None
    needed: int


def compute_interval(population: Population, p: Fraction, level: Fraction = LEVEL) -> Interval:
    """Bound the quantile p on both sides at a level of confidence, each side failing as often at most."""
    ranks = find_ranks(population.n, p, level)
    lower, upper = (None if rank is None else population.at(rank) for rank in (ranks.lower, ranks.upper))
    return Interval(level, lower, upper, count_needed(p, level))


@lru_cache(maxsize=4096)
def find_ranks(n: int, p: Fraction, level: Fraction = LEVEL) -> Ranks:
    """Find the closest ranks l < u with P(l <= number below < u) >= level, the tails each at most half of the rest."""
    tail = (1 - level) / 2
    lower = find_lower(n, p, tail)
    mirrored = find_lower(n, 1 - p, tail)
    return Ranks(lower, None if mirrored is None else n + 1 - mirrored)


def find_lower(n: int, p: Fraction, tail: Fraction) -> int | None:
    """Find the largest rank l >= 1 with P(Binomial(n, p) < l) <= tail; None where not even 1 will do."""
    if n == 0 or not 0 < p < 1:
        return None
    weights = dict(list_weights(n, p))
    total = sum(weights.values())
    below, rank = 0, min(weights)
    allowed = Fraction(total) * (tail - Fraction(1, 1 << MARGIN))
    while below + weights.get(rank, 0) <= allowed:
        below += weights[rank]
        rank += 1
    return rank or None


def list_weights(n: int, p: Fraction) -> Iterator[tuple[int, int]]:
    """Give the counts k that have any weight in Binomial(n, p), and their weights up to a common factor."""
    mode = min((n + 1) * p.numerator // p.denominator, n)
    hits, misses = p.numerator, p.denominator - p.numerator
    weight, count = 1 << BITS, mode
    while weight:
        yield count, weight
        if count == n:
            break
        weight = weight * (n - count) * hits // ((count + 1) * misses)
        count += 1
    weight, count = 1 << BITS, mode
    while count:
        weight = weight * count * misses // ((n - count + 1) * hits)
        count -= 1
        if not weight:
            break
        yield count, weight


@lru_cache(maxsize=256)
def count_needed(p: Fraction, level: Fraction = LEVEL, sides: int = 2) -> int:
    """Count the fewest values with which the quantile p has a bound above and, for two sides, one below.

    The largest value bounds it from above unless all lie below it, which happens with probability p**n.
    """
    tail = (1 - level) / sides
    worst = max(p, 1 - p) if sides == 2 else p
    n, low = 1, 0
    while worst**n > tail:
        low, n = n, n * 2
    while n - low > 1:
        middle = (low + n) // 2
        low, n = (middle, n) if worst**middle > tail else (low, middle)
    return n


@lru_cache(maxsize=256)
def count_for_verdict(p: Fraction, level: Fraction, above: int) -> int:
    """Count the fewest values of which `above` may exceed a limit while the quantile p is below it at that level.

    One-sided: P(Binomial(n, 1 - p) <= above) must be at most 1 - level. MLPerf's early stopping asks for level 0.99.
    """
    n = above + 1
    while not is_enough(n, p, level, above):
        n *= 2
    low = n // 2
    while n - low > 1:
        middle = (low + n) // 2
        low, n = (low, middle) if is_enough(middle, p, level, above) else (middle, n)
    return n


def is_enough(n: int, p: Fraction, level: Fraction, above: int) -> bool:
    """Tell whether so few values above a limit are improbable enough if the quantile were not below it."""
    below = sum(comb(n, count) * (1 - p) ** count * p ** (n - count) for count in range(above + 1))
    return below <= 1 - level
