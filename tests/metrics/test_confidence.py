"""Intervals from ranks against sums of binomial probabilities in exact rationals [B12]."""

from fractions import Fraction
from math import comb, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refsched.metrics.confidence import compute_interval, count_needed, find_ranks
from refsched.metrics.population import Population

P99, LEVEL = Fraction(99, 100), Fraction(95, 100)


def expect_lower(n: int, p: Fraction, tail: Fraction) -> int | None:
    """Find the lower rank from the definition."""
    below, rank = Fraction(0), 0
    while True:
        below += comb(n, rank) * p**rank * (1 - p) ** (n - rank)
        if below > tail:
            return rank or None
        rank += 1


@given(n=st.integers(1, 120), p=st.sampled_from(["0.01", "0.1", "0.5", "0.9", "0.95", "0.99"]))
def test_the_ranks_are_those_of_the_definition(n: int, p: str) -> None:
    share, tail = Fraction(p), (1 - LEVEL) / 2
    ranks, mirrored = find_ranks(n, share), expect_lower(n, 1 - share, tail)
    assert ranks.lower == expect_lower(n, share, tail)
    assert ranks.upper == (None if mirrored is None else n + 1 - mirrored)


def test_how_many_values_p99_needs() -> None:
    assert P99**298 > 1 - LEVEL >= P99**299 and count_needed(P99, LEVEL, sides=1) == 299
    assert 2 * P99**367 > 1 - LEVEL >= 2 * P99**368 and count_needed(P99, LEVEL) == 368
    assert find_ranks(367, P99).upper is None and find_ranks(368, P99).upper == 368


@pytest.mark.parametrize("n", [100_000, 10_000_000])
def test_large_samples_come_near_the_normal_law(n: int) -> None:
    ranks = find_ranks(n, Fraction(1, 2))
    assert ranks.lower is not None and ranks.upper is not None
    assert ranks.lower == n + 1 - ranks.upper
    assert abs(ranks.upper - n / 2 - 1.959964 * sqrt(n) / 2) < 2


def test_an_interval_names_what_a_small_sample_lacks() -> None:
    interval = compute_interval(Population(dict.fromkeys(range(1, 11), 1)), P99)
    assert (interval.lower, interval.upper, interval.needed) == (9, None, 368)
    assert compute_interval(Population({}), P99).lower is None
