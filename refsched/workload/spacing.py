"""How arrivals are spaced: mean gap, exact variance of the gaps, longest gap, ties."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from refsched.units import TICKS_PER_SECOND, Ticks, round_decimal


@dataclass(frozen=True, slots=True)
class Spacing:
    """Describe the gaps between neighbours; mean and squared CV are None where they are undefined."""

    mean_gap: Fraction | None  # ticks
    cv_squared: Fraction | None  # variance over n gaps, divided by the square of the mean
    longest_gap: Ticks
    ties: int  # gaps of 0


def compute_spacing(times: Iterable[Ticks]) -> Spacing:
    """Compute the spacing of arrivals in order of time."""
    spacer = Spacer()
    for at in times:
        spacer.add(at)
    return spacer.describe()


class Spacer:
    """Sum up the spacing of arrivals that come one at a time, in order."""

    def __init__(self) -> None:
        self.first: Ticks | None = None
        self.last: Ticks = 0
        self.gaps = self.squares = self.ties = 0
        self.longest: Ticks = 0

    def add(self, at: Ticks) -> None:
        """Take one arrival."""
        if self.first is None:
            self.first = self.last = at
            return
        gap = at - self.last
        self.gaps, self.squares, self.last = self.gaps + 1, self.squares + gap * gap, at
        self.ties += gap == 0
        self.longest = max(self.longest, gap)

    def count(self) -> int:
        """Count the arrivals that came."""
        return 0 if self.first is None else self.gaps + 1

    def describe(self) -> Spacing:
        """Describe what came so far."""
        if not self.gaps:
            return Spacing(None, None, 0, 0)
        total = self.last - (self.first or 0)
        cv_squared = Fraction(self.gaps * self.squares - total * total, total * total) if total else None
        return Spacing(Fraction(total, self.gaps), cv_squared, self.longest, self.ties)


def write_root(square: Fraction, places: int) -> str:
    """Write the square root of a rational, rounded to the nearest of `places` decimals, for printing only."""
    doubled = isqrt(4 * square.numerator * 100**places // square.denominator)
    return round_decimal(Fraction((doubled + 1) // 2, 10**places), places)


def write_rate_note(spacing: Spacing) -> tuple[str, ...]:
    """Say which rate and which CV of the gaps the arrivals came to; nothing where these are undefined."""
    if spacing.mean_gap is None or spacing.cv_squared is None:
        return ()
    rate = round_decimal(TICKS_PER_SECOND / spacing.mean_gap, 4)
    return (f"Achieved rate {rate} requests/s, CV of the gaps {write_root(spacing.cv_squared, 4)}.",)
