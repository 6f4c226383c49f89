"""The fit: against every subset of columns tried in turn, against wild points, and against known coefficients."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refsched.calibration.fit import bootstrap, fit_relative, get_loss, multiply, solve_nonnegative
from refsched.calibration.samples import quantile, sum_up


def solve_by_trying(rows: list[list[float]], target: list[float]) -> float:
    """Give the least squared distance over all sets of free columns, each solved by determinants."""
    best = sum(value * value for value in target)
    size = len(rows[0])
    for free in itertools.chain.from_iterable(itertools.combinations(range(size), k) for k in range(1, size + 1)):
        matrix = [[sum(row[i] * row[j] for row in rows) for j in free] for i in free]
        right = [sum(row[i] * value for row, value in zip(rows, target, strict=True)) for i in free]
        found = cramer(matrix, right)
        if found is not None and min(found) >= 0:
            x = [dict(zip(free, found, strict=True)).get(j, 0.0) for j in range(size)]
            best = min(best, distance(rows, target, x))
    return best


def determinant(matrix: list[list[float]]) -> float:
    if not matrix:
        return 1.0
    minors = ([[*row[:j], *row[j + 1 :]] for row in matrix[1:]] for j in range(len(matrix)))
    return sum((-1) ** j * matrix[0][j] * determinant(minor) for j, minor in enumerate(minors))


def cramer(matrix: list[list[float]], right: list[float]) -> list[float] | None:
    whole = determinant(matrix)
    if abs(whole) < 1e-6:
        return None
    swapped = (
        [[*row[:j], value, *row[j + 1 :]] for row, value in zip(matrix, right, strict=True)] for j in range(len(right))
    )
    return [determinant(each) / whole for each in swapped]


def distance(rows: list[list[float]], target: list[float], x: list[float]) -> float:
    return sum((multiply(row, x) - value) ** 2 for row, value in zip(rows, target, strict=True))


numbers = st.integers(-4, 4).map(float)


@given(st.lists(st.tuples(numbers, numbers, numbers, numbers), min_size=4, max_size=8))
def test_nonnegative_least_squares_is_the_best_of_all_sets_of_columns(lines: list[tuple[float, ...]]) -> None:
    rows, target = [list(line[:3]) for line in lines], [line[3] for line in lines]
    x = solve_nonnegative(rows, target)
    assert min(x) >= 0
    assert distance(rows, target, x) <= solve_by_trying(rows, target) + 1e-5


def make_points(wild: float) -> tuple[list[list[float]], list[float]]:
    draw = random.Random(3)
    rows = [[1.0, draw.uniform(1, 100), draw.uniform(1, 1000)] for _ in range(60)]
    times = [multiply(row, [2.0, 0.5, 0.01]) * draw.uniform(0.99, 1.01) for row in rows]
    return rows, [time * (wild if place % 10 == 0 else 1) for place, time in enumerate(times)]


def test_known_coefficients_come_back() -> None:
    rows, times = make_points(wild=1.0)
    assert fit_relative(rows, times, [0.0] * 60) == pytest.approx([2.0, 0.5, 0.01], rel=0.03)


def test_wild_points_weigh_little() -> None:
    rows, times = make_points(wild=1.5)
    robust = fit_relative(rows, times, [0.0] * 60)
    plain = fit_relative(rows, times, [0.0] * 60, rounds=0)
    assert robust == pytest.approx([2.0, 0.5, 0.01], rel=0.06)
    assert abs(plain[1] / 0.5 - 1) > abs(robust[1] / 0.5 - 1)


def test_what_is_known_is_not_fitted_again() -> None:
    rows, times = make_points(wild=1.0)
    known = [0.5 * row[1] for row in rows]
    found = fit_relative([[row[0], row[2]] for row in rows], times, known)
    assert found == pytest.approx([2.0, 0.01], rel=0.05)


def test_bootstrap_intervals_hold_the_truth_and_are_repeatable() -> None:
    rows, times = make_points(wild=1.0)

    def refit(places: object) -> list[float]:
        chosen = list(places)  # type: ignore[call-overload]
        return fit_relative([rows[i] for i in chosen], [times[i] for i in chosen], [0.0] * len(chosen), rounds=1)

    intervals = bootstrap(refit, 60, 50, seed=1)
    assert intervals == bootstrap(refit, 60, 50, seed=1)
    for (low, high), truth in zip(intervals, [2.0, 0.5, 0.01], strict=True):
        assert low <= truth * 1.01 and high >= truth * 0.99 and low < high


def test_quantiles_and_errors_by_hand() -> None:
    assert quantile([4.0, 1.0, 3.0, 2.0], 0.5) == 2.5
    errors = sum_up([1.1, 0.8, 1.0], [1.0, 1.0, 1.0])
    assert errors.n == 3
    assert (errors.median, errors.max) == pytest.approx((0.1, 0.2))
    assert errors.bias == pytest.approx(-0.1 / 3)
    assert get_loss([0.0, 0.02]) == pytest.approx(0.0002)
    assert get_loss([0.1]) == pytest.approx(0.03 * (0.2 - 0.03))
