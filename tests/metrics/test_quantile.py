"""Quantiles carry the name of their definition, and differ [A10, B12]."""

from fractions import Fraction
from itertools import accumulate
from math import ceil, floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refsched.errors import InputError
from refsched.metrics.population import Population, Run, count_values, make_ratio_runs, make_runs
from refsched.metrics.quantile import ALIASES, DEFINITIONS, METHODS, compute_quantile

P99 = Fraction(99, 100)
HYNDMAN_FAN = {  # type: (m, from p), as in table 1 of the paper; place = n * p + m
    "hf4": lambda p: Fraction(0),
    "hf5": lambda p: Fraction(1, 2),
    "hf6": lambda p: p,
    "hf7": lambda p: 1 - p,
    "hf8": lambda p: (p + 1) / 3,
    "hf9": lambda p: p / 4 + Fraction(3, 8),
}


def quantile(values: list[int], p: Fraction, method: str) -> Fraction:
    """Give a quantile of a plain list."""
    return compute_quantile(Population(count_values(values)), p, method)


def test_one_long_gap_in_a_hundred() -> None:
    """B12: 99 gaps of 10 ms and one of 500: mean 14.9; nearest rank says 10, interpolation 14.9, floor index 500."""
    population = Population({10: 99, 500: 1})
    assert population.mean() == Fraction("14.9")
    expected = {
        "nearest-rank": 10,
        "linear": Fraction("14.9"),
        "inverted-cdf": 10,
        "floor-index": 500,
        "hf2": 255,
        "hf6": Fraction("495.1"),
    }
    assert {method: compute_quantile(population, P99, method) for method in expected} == expected


def test_p99_of_three_values() -> None:
    """A public issue's case: p99 of [10, 20, 30] is 30 by nearest rank and 29.8 interpolated, never 20."""
    assert quantile([10, 20, 30], P99, "nearest-rank") == 30
    assert quantile([10, 20, 30], P99, "linear") == Fraction("29.8")


@pytest.mark.parametrize(
    ("n", "p", "expected"),
    [
        (10, "0.50", ("5.5", 5, 5, 6, 5, 5)),
        (10, "0.90", ("9.1", 9, 10, 10, 9, 9)),
        (20, "0.50", ("10.5", 10, 11, 11, 10, 11)),
        (100, "0.99", ("99.01", 99, 99, 100, 99, 99)),
        (10, "0.99", ("9.91", 10, 10, 10, 10, 10)),
    ],
)
def test_the_same_data_under_six_rules_of_tools(n: int, p: str, expected: tuple[str | int, ...]) -> None:
    """What tools print for the values 1 … n: interpolated, nearest rank, GuideLLM, MLPerf, HdrHistogram, numpy."""
    rules = ("linear", "nearest-rank", "guidellm", "floor-index", "rounded-rank", "nearest-index")
    values = list(range(1, n + 1))
    assert tuple(quantile(values, Fraction(p), rule) for rule in rules) == tuple(map(Fraction, expected))


def test_the_float_rule_leaves_the_exact_one_only_by_rounding() -> None:
    """Of 21,989 pairs of n <= 2000 and eleven quantiles, 1,404 differ; here a part, and never by more than a rank."""
    ps = [Fraction(p) for p in ("0.001", "0.01", "0.05", "0.1", "0.25", "0.5", "0.75", "0.9", "0.95", "0.99", "0.999")]
    differ = 0
    for n in range(2, 301):
        population = Population(dict.fromkeys(range(1, n + 1), 1))
        for p in ps:
            float_rank, rank = (int(compute_quantile(population, p, rule)) for rule in ("guidellm", "hf1"))
            assert abs(float_rank - rank) <= 1
            differ += float_rank != rank
    assert differ == sum(count_float_differences(n) for n in range(2, 301)) > 50


def count_float_differences(n: int) -> int:
    """Count, with Python floats and nothing of ours, for how many of the eleven quantiles the cumulative sum errs."""
    ps = ("0.001", "0.01", "0.05", "0.1", "0.25", "0.5", "0.75", "0.9", "0.95", "0.99", "0.999")
    sums = list(accumulate([1 / n] * n))
    found = [next((rank for rank, total in enumerate(sums, 1) if total >= float(p)), n) for p in ps]
    return sum(rank != ceil(Fraction(p) * n) for rank, p in zip(found, ps, strict=True))


@pytest.mark.parametrize("method", METHODS)
@given(values=st.lists(st.integers(-50, 50), min_size=1, max_size=40), p=st.fractions(0, 1, max_denominator=200))
def test_runs_give_the_same_as_the_written_out_list(method: str, values: list[int], p: Fraction) -> None:
    assert quantile(values, p, method) == expect(ALIASES.get(method, method), sorted(values), p)


def expect(method: str, ordered: list[int], p: Fraction) -> Fraction:
    """Compute a quantile from the sorted list, straight from its definition."""
    n = len(ordered)

    def at(rank: int) -> int:
        return ordered[min(max(rank, 1), n) - 1]

    if method in HYNDMAN_FAN:
        place = n * p + HYNDMAN_FAN[method](p)
        share = place - floor(place)
        return (1 - share) * at(floor(place)) + share * at(floor(place) + 1)
    if method == "hf2":
        return Fraction(at(ceil(n * p)) + at(floor(n * p) + 1), 2)
    if method == "hf3":
        place = n * p - Fraction(1, 2)
        whole = place == floor(place) and floor(place) % 2 == 0
        return Fraction(at(floor(place) + (not whole)))
    if method == "float-cumulative":
        values = sorted(set(ordered))
        sums = list(accumulate(ordered.count(value) / n for value in values))
        return Fraction(next((v for v, total in zip(values, sums, strict=True) if total >= float(p)), values[-1]))
    ranks = {
        "nearest-rank": ceil(n * p),
        "hf1": ceil(n * p),
        "floor-index": floor(n * p) + 1,
        "rounded-rank": floor(n * p + Fraction(1, 2)),
        "nearest-index": round((n - 1) * p) + 1,
    }
    return Fraction(at(ranks[method]))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.integers(-1, 10))
def test_the_share_above_a_threshold(values: list[int], threshold: int) -> None:
    expected = Fraction(sum(value > threshold for value in values), len(values))
    assert Population(count_values(values)).share_above(threshold) == expected


ratios = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 9)), min_size=1, max_size=25)


@given(ratios, st.lists(st.integers(0, 8), max_size=20), st.booleans())
def test_several_runs_of_integers_and_ratios_are_one_population(
    pairs: list[tuple[int, int]], whole: list[int], weighted: bool
) -> None:
    values, divisors = [value for value, _ in pairs], [divisor for _, divisor in pairs]
    middle = len(pairs) // 2
    runs = make_runs(whole) + [Run([0], None, [2])]
    for part in (slice(None, middle), slice(middle, None)):
        runs += make_ratio_runs(values[part], divisors[part], weighted)
    population = Population(runs=runs)
    written = sorted(
        [*map(Fraction, whole), Fraction(0), Fraction(0)]
        + [Fraction(value, divisor) for value, divisor in pairs for _ in range(divisor if weighted else 1)]
    )
    assert [population.at(rank) for rank in range(1, population.n + 1)] == written
    assert population.mean() == sum(written) / len(written)
    assert (population.min(), population.max()) == (written[0], written[-1])
    assert [value for value, weight in population.weighted() for _ in range(weight)] == written
    assert population.count_above(Fraction(7, 2)) == sum(value > Fraction(7, 2) for value in written)


def test_what_has_no_quantile_is_refused() -> None:
    with pytest.raises(InputError, match="empty"):
        quantile([], P99, "linear")
    with pytest.raises(InputError, match="median-of-medians"):
        quantile([1], P99, "median-of-medians")
    with pytest.raises(InputError, match="between 0 and 1"):
        quantile([1], Fraction(2), "linear")
    with pytest.raises(InputError, match="rank"):
        Population({1: 1}).at(2)


def test_every_alias_names_a_definition() -> None:
    assert set(ALIASES.values()) <= DEFINITIONS.keys() and METHODS.keys() == DEFINITIONS.keys() | ALIASES.keys()
