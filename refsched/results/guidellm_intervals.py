"""GuideLLM's confidence intervals: Student's t for a mean, binomial ranks for a quantile, in binary doubles.

Both stand on the regularised incomplete beta function, taken here by its continued fraction (Abramowitz and Stegun,
"Handbook of Mathematical Functions", 26.5.8).
"""

import math
from collections.abc import Callable, Sequence

STEPS = 300
TINY = 1e-300
NARROW = 1e-15


def compute_beta(a: float, b: float, x: float) -> float:
    """Compute the regularised incomplete beta function I_x(a, b)."""
    if x <= 0.0 or x >= 1.0:
        return min(max(x, 0.0), 1.0)
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - compute_beta(b, a, 1.0 - x)
    logs = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(logs) * compute_fraction(a, b, x) / a


def compute_fraction(a: float, b: float, x: float) -> float:
    """Compute the continued fraction of the incomplete beta function by Lentz's method."""
    above, below = 1.0, 1.0 / keep_off_zero(1.0 - (a + b) * x / (a + 1.0))
    result = below
    for step in range(1, STEPS + 1):
        twice = 2 * step
        even = step * (b - step) * x / ((a + twice - 1.0) * (a + twice))
        odd = -(a + step) * (a + b + step) * x / ((a + twice) * (a + twice + 1.0))
        for term in (even, odd):
            below = 1.0 / keep_off_zero(1.0 + term * below)
            above = keep_off_zero(1.0 + term / above)
            result *= above * below
        if abs(above * below - 1.0) < NARROW:
            break
    return result


def keep_off_zero(value: float) -> float:
    """Keep a divisor off zero."""
    return value if abs(value) > TINY else TINY


def compute_t_share(t: float, freedom: float) -> float:
    """Compute the share of Student's distribution below t."""
    tail = 0.5 * compute_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t))
    return 1.0 - tail if t > 0.0 else tail


def find_t(share: float, freedom: float) -> float:
    """Find t with a given share, above one half, below it."""
    low, high = 0.0, 1.0
    while compute_t_share(high, freedom) < share:
        high *= 2.0
    while high - low > 1e-14 * high:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if compute_t_share(middle, freedom) < share else (low, middle)
    return 0.5 * (low + high)


def compute_binomial_share(hits: int, trials: int, p: float) -> float:
    """Compute the chance of at most `hits` hits in `trials` trials."""
    return 1.0 if hits >= trials else compute_beta(trials - hits, hits + 1.0, 1.0 - p)


def bound_mean(mean: float, deviation: float, n: int, confidence: float) -> tuple[float, float] | None:
    """Bound the mean of at least two values; the deviation is over n."""
    if n < 2:
        return None
    half = find_t((1.0 + confidence) / 2.0, n - 1) * deviation * math.sqrt(n / (n - 1)) / math.sqrt(n)
    return mean - half, mean + half


def bound_quantile(ordered: Sequence[float], p: float, confidence: float) -> tuple[float, float] | None:
    """Bound a quantile by two of the values; None where the sample is too small for it."""
    n, tail = len(ordered), (1.0 - confidence) / 2.0
    if n < 2 or compute_binomial_share(0, n, p) > tail or compute_binomial_share(n - 1, n, p) < 1.0 - tail:
        return None
    lower = find_first(n, lambda rank: compute_binomial_share(rank, n, p) > tail) - 1
    upper = find_first(n, lambda rank: compute_binomial_share(rank, n, p) >= 1.0 - tail)
    return ordered[lower], ordered[upper]


def find_first(n: int, holds: Callable[[int], bool]) -> int:
    """Find the first of 0 … n - 1 for which something holds that holds for all after it; n where it never does."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low
