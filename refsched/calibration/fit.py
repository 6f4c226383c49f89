"""Non-negative least squares of relative errors, robust against single wild points.

Non-negative, so that no prediction falls when work is added. Relative, so that a short iteration counts as much as a
long one. The method is Lawson and Hanson's active set (Solving Least Squares Problems, 1974, chapter 23) on the normal
equations, their columns scaled to length 1; points off by more than 3 % weigh less (Huber's rule, reweighted).
"""

import math
import random
from collections.abc import Callable, Sequence

from refsched.calibration.samples import quantile

Rows = Sequence[Sequence[float]]
ROBUST = 0.03  # relative error from which a point's weight falls
ROUNDS = 6  # of reweighting
RIDGE = 1e-10  # keeps the scaled equations solvable where two columns are alike
NOTHING_TO_GAIN = 1e-11
MOST_STEPS = 500


def fit_relative(rows: Rows, seconds: Sequence[float], known: Sequence[float], rounds: int = ROUNDS) -> list[float]:
    """Find coefficients of at least 0 so that known + rows x coefficients is relatively nearest to `seconds`."""
    scaled = [[value / time for value in row] for row, time in zip(rows, seconds, strict=True)]
    target = [1 - part / time for part, time in zip(known, seconds, strict=True)]
    found = solve_nonnegative(scaled, target)
    for _ in range(rounds):
        weights = [get_weight(multiply(row, found) - goal) for row, goal in zip(scaled, target, strict=True)]
        heavy = [[value * weight for value in row] for row, weight in zip(scaled, weights, strict=True)]
        found = solve_nonnegative(heavy, [goal * weight for goal, weight in zip(target, weights, strict=True)])
    return found


def get_weight(error: float) -> float:
    """Give the square root of Huber's weight."""
    return 1.0 if abs(error) < ROBUST else math.sqrt(ROBUST / abs(error))


def get_loss(errors: Sequence[float]) -> float:
    """Give Huber's mean loss of relative errors."""
    sizes = [abs(error) for error in errors]
    return sum(size * size if size < ROBUST else ROBUST * (2 * size - ROBUST) for size in sizes) / len(sizes)


def multiply(row: Sequence[float], column: Sequence[float]) -> float:
    """Give the sum of the products."""
    return sum(a * b for a, b in zip(row, column, strict=True))


def solve_nonnegative(rows: Rows, target: Sequence[float]) -> list[float]:
    """Find x of at least 0 that minimises |rows x - target|; for few columns."""
    columns = range(len(rows[0]))
    scale = [math.sqrt(sum(row[j] * row[j] for row in rows)) or 1.0 for j in columns]
    gram, goal = make_normal_equations(rows, target, scale)
    x = [0.0] * len(scale)
    passive: list[int] = []
    for _ in range(MOST_STEPS):
        gain = [goal[i] - multiply(gram[i], x) for i in columns]
        best = max((i for i in columns if i not in passive), key=gain.__getitem__, default=None)
        if best is None or gain[best] <= NOTHING_TO_GAIN:
            break
        passive = sorted([*passive, best])
        x, passive = settle(gram, goal, x, passive)
    return [value / size for value, size in zip(x, scale, strict=True)]


def make_normal_equations(
    rows: Rows, target: Sequence[float], scale: Sequence[float]
) -> tuple[list[list[float]], list[float]]:
    """Give the scaled matrix rows' rows and the vector rows' target."""
    size = len(scale)
    gram, goal = [[0.0] * size for _ in scale], [0.0] * size
    for row, value in zip(rows, target, strict=True):
        filled = [(j, row[j] / scale[j]) for j in range(size) if row[j]]
        for i, left in filled:
            goal[i] += left * value
            line = gram[i]
            for j, right in filled:
                line[j] += left * right
    for i in range(size):
        gram[i][i] += RIDGE
    return gram, goal


def settle(
    gram: list[list[float]], goal: list[float], x: list[float], passive: list[int]
) -> tuple[list[float], list[int]]:
    """Solve for the passive columns; while one comes out negative, go there only as far as the first reaches 0."""
    while passive:
        solved = solve([[gram[i][j] for j in passive] for i in passive], [goal[i] for i in passive])
        if min(solved) > 0:
            x = [0.0] * len(x)
            for i, value in zip(passive, solved, strict=True):
                x[i] = value
            return x, passive
        pairs = list(zip(passive, solved, strict=True))
        step = min(x[i] / (x[i] - value) for i, value in pairs if value <= 0)
        moved = {i: x[i] + step * (value - x[i]) for i, value in pairs}
        passive = [i for i in passive if moved[i] > 1e-13]
        x = [moved[i] if i in passive else 0.0 for i in range(len(x))]
    return [0.0] * len(x), []


def solve(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Solve a small square system by elimination with row exchange."""
    size = len(right)
    rows = [[*line, value] for line, value in zip(matrix, right, strict=True)]
    for k in range(size):
        best = max(range(k, size), key=lambda i: abs(rows[i][k]))
        rows[k], rows[best] = rows[best], rows[k]
        pivot = rows[k][k] or 1e-14
        for row in rows[k + 1 :]:
            factor = row[k] / pivot
            if factor:
                row[k:] = [value - factor * above for value, above in zip(row[k:], rows[k][k:], strict=True)]
    x = [0.0] * size
    for k in reversed(range(size)):
        x[k] = (rows[k][size] - multiply(rows[k][k + 1 : size], x[k + 1 :])) / (rows[k][k] or 1e-14)
    return x


def bootstrap(
    fit: Callable[[Sequence[int]], Sequence[float]], count: int, repeats: int, seed: int
) -> list[tuple[float, float]]:
    """Fit `repeats` times to as many points drawn with replacement; give each coefficient's 5 % and 95 % quantile."""
    random_source = random.Random(seed)
    drawn = [fit([random_source.randrange(count) for _ in range(count)]) for _ in range(repeats)]
    return [(quantile(column, 0.05), quantile(column, 0.95)) for column in zip(*drawn, strict=True)]
