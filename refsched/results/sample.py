"""Statistics as the benchmark tools compute them, from exact decimals.

Decimals keep 28 digits, so a result differs from the exact one by less than 1e-20 of it; a tool's own rounding is
about 1e-13. Where a tool's floats decide more than the last digits, `to_binary` gives the number it worked with.
"""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate
from math import floor

ZERO, ONE, THOUSAND = Decimal(0), Decimal(1), Decimal(1000)


def to_binary(value: Decimal) -> Decimal:
    """Give the binary double nearest to a decimal: the number that the tool itself computed with."""
    return Decimal(float(value))


class Sample:
    """Hold a sorted sample of numbers."""

    def __init__(self, values: Iterable[Decimal]):
        self.values: Sequence[Decimal] = sorted(values)
        self.n = len(self.values)

    def total(self) -> Decimal:
        """Sum all values; 0 for none."""
        return sum(self.values, ZERO)

    def mean(self) -> Decimal | None:
        """Give the mean; None for an empty sample."""
        return self.total() / self.n if self.n else None

    def deviation(self, lost: int = 0) -> Decimal | None:
        """Give the standard deviation with n - `lost` below the line; None where that is not positive."""
        mean = self.mean()
        if mean is None or self.n <= lost:
            return None
        return (sum(((value - mean) ** 2 for value in self.values), ZERO) / (self.n - lost)).sqrt()

    def quantile(self, p: Fraction) -> Decimal | None:
        """Interpolate linearly between ranks, as numpy and pandas do (Hyndman and Fan's type 7)."""
        if not self.n:
            return None
        place = (self.n - 1) * p
        low = floor(place)
        share = place - low
        below, above = self.values[low], self.values[min(low + 1, self.n - 1)]
        return below + (above - below) * Decimal(share.numerator) / Decimal(share.denominator)

    def nearest(self, p: Fraction) -> Decimal | None:
        """Give the value whose index is nearest to (n - 1) * p, halves to the even index: numpy's "nearest"."""
        return self.values[round((self.n - 1) * p)] if self.n else None

    def least(self) -> Decimal | None:
        """Give the smallest value."""
        return self.values[0] if self.n else None

    def greatest(self) -> Decimal | None:
        """Give the largest value."""
        return self.values[-1] if self.n else None


class Weighted:
    """Hold values with weights that need not be whole, as a distribution."""

    def __init__(self, weights: Mapping[Decimal, Decimal]):
        self.values = sorted(weights)
        self.weights = [weights[value] for value in self.values]
        self.total_weight = sum(self.weights, ZERO)

    def mean(self) -> Decimal | None:
        """Give the weighted mean."""
        return self.total() / self.total_weight if self.total_weight else None

    def total(self) -> Decimal:
        """Sum value times weight."""
        return sum((value * weight for value, weight in zip(self.values, self.weights, strict=True)), ZERO)

    def variance(self) -> Decimal | None:
        """Give the weighted population variance."""
        mean = self.mean()
        if mean is None:
            return None
        squares = ((value - mean) ** 2 * weight for value, weight in zip(self.values, self.weights, strict=True))
        return sum(squares, ZERO) / self.total_weight

    def inverted_by_floats(self, p: float) -> Decimal | None:
        """Give the first value whose cumulative share, summed in binary doubles, reaches p: GuideLLM's rule."""
        if not self.total_weight:
            return None
        total = float(self.total_weight)
        shares = accumulate(float(weight) / total for weight in self.weights)
        at = next((place for place, share in enumerate(shares) if share >= p), len(self.values) - 1)
        return self.values[at]


def divide(part: Decimal | int | None, whole: Decimal | int | None) -> Decimal | None:
    """Divide, giving None where either is unknown or the divisor is 0."""
    return None if part is None or whole is None or not whole else Decimal(part) / Decimal(whole)
