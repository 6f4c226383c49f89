"""Quantiles carry the name of their definition, and differ [A10, B12]."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refsched.errors import InputError
from refsched.metrics.quantile import METHODS, Population, compute_quantile, count_values

P99 = Fraction(99, 100)


def quantile(values: list[int], p: Fraction, method: str) -> Fraction:
    """Give a quantile of a plain list."""
    return compute_quantile(Population(count_values(values)), p, method)


def test_one_long_gap_in_a_hundred() -> None:
    """B12: 99 gaps of 10 ms and one of 500: mean 14.9; nearest rank says 10, interpolation 14.9, floor index 500."""
    population = Population({10: 99, 500: 1})
    assert population.mean() == Fraction("14.9")
    assert {method: compute_quantile(population, P99, method) for method in METHODS} == {
        "nearest-rank": 10,
        "linear": Fraction("14.9"),
        "inverted-cdf": 10,
        "floor-index": 500,
    }


def test_p99_of_three_values() -> None:
    """A public issue's case: p99 of [10, 20, 30] is 30 by nearest rank and 29.8 interpolated, never 20."""
    assert quantile([10, 20, 30], P99, "nearest-rank") == 30
    assert quantile([10, 20, 30], P99, "linear") == Fraction("29.8")


@pytest.mark.parametrize("method", METHODS)
@given(values=st.lists(st.integers(-50, 50), min_size=1, max_size=40), p=st.fractions(0, 1, max_denominator=200))
def test_runs_give_the_same_as_the_written_out_list(method: str, values: list[int], p: Fraction) -> None:
    assert quantile(values, p, method) == expect(method, sorted(values), p)


def expect(method: str, ordered: list[int], p: Fraction) -> Fraction:
    """Compute a quantile from the sorted list, straight from its definition."""
    n = len(ordered)
    if method == "floor-index":
        return Fraction(ordered[min(int(n * p), n - 1)])
    if method == "linear":
        place = (n - 1) * p
        low = int(place)
        high = min(low + 1, n - 1)
        return ordered[low] + (place - low) * (ordered[high] - ordered[low])
    return Fraction(next(value for rank, value in enumerate(ordered, 1) if rank >= n * p))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.integers(-1, 10))
def test_the_share_above_a_threshold(values: list[int], threshold: int) -> None:
    expected = Fraction(sum(value > threshold for value in values), len(values))
    assert Population(count_values(values)).share_above(threshold) == expected


def test_what_has_no_quantile_is_refused() -> None:
    with pytest.raises(InputError, match="empty"):
        quantile([], P99, "linear")
    with pytest.raises(InputError, match="median-of-medians"):
        quantile([1], P99, "median-of-medians")
    with pytest.raises(InputError, match="between 0 and 1"):
        quantile([1], Fraction(2), "linear")
