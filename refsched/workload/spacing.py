"""How arrivals are spaced: mean gap, exact variance of the gaps, longest gap, ties."""

from collections.abc import Sequence
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


def compute_spacing(times: Sequence[Ticks]) -> Spacing:
    """Compute the spacing of arrivals in order of time."""
    gaps = [after - before for before, after in zip(times, times[1:], strict=False)]
    if not gaps:
        return Spacing(None, None, 0, 0)
    total = times[-1] - times[0]
    squares = sum(gap * gap for gap in gaps)
    cv_squared = Fraction(len(gaps) * squares - total * total, total * total) if total else None
    return Spacing(Fraction(total, len(gaps)), cv_squared, max(gaps), gaps.count(0))


def write_root(square: Fraction, places: int) -> str:
    """Write the square root of a rational, rounded to the nearest of `places` decimals, for printing only."""
    doubled = isqrt(4 * square.numerator * 100**places // square.denominator)
    return round_decimal(Fraction((doubled + 1) // 2, 10**places), places)


def write_rate_note(times: Sequence[Ticks]) -> tuple[str, ...]:
    """Say which rate and which CV of the gaps the arrivals came to; nothing where these are undefined."""
    spacing = compute_spacing(times)
    if spacing.mean_gap is None or spacing.cv_squared is None:
        return ()
    rate = round_decimal(TICKS_PER_SECOND / spacing.mean_gap, 4)
    return (f"Achieved rate {rate} requests/s, CV of the gaps {write_root(spacing.cv_squared, 4)}.",)
