"""Units: tokens, blocks and ticks, and the exact reading of times written as text.

A tick is one picosecond and an integer [decision 9]. Text is read as an exact decimal; what is finer than a
picosecond is rounded half to even, and the reader is told, so that it can count such values.
"""

import re
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from fractions import Fraction
from typing import NamedTuple, TypeAlias

from refsched.errors import InputError

Tokens: TypeAlias = int
Blocks: TypeAlias = int
Ticks: TypeAlias = int

TICKS_PER_SECOND: Ticks = 10**12
UNIT_TICKS: dict[str, Ticks] = {
    "ps": 1,
    "ns": 10**3,
    "us": 10**6,
    "µs": 10**6,
    "μs": 10**6,
    "ms": 10**9,
    "s": 10**12,
    "min": 60 * 10**12,
    "h": 3600 * 10**12,
}
LONGEST: Ticks = 10**9 * TICKS_PER_SECOND  # about 31 years: beyond it a number is a mistake, not a time
UNLIMITED = 1 << 62  # stands for "no limit" where an integer is compared; never reported

_QUANTITY = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*([a-zµμ]*)\s*")


class Reading(NamedTuple):
    """Hold a time that was read, and whether it had to be rounded to a whole tick."""

    ticks: Ticks
    rounded: bool


def ceil_div(value: int, divisor: int) -> int:
    """Divide and round up (integers, divisor positive)."""
    return -(-value // divisor)


def round_to_ticks(seconds: Decimal | int, unit: Ticks = TICKS_PER_SECOND) -> Reading:
    """Turn an exact number of units into ticks; raise InputError for NaN, infinity or a time beyond 31 years."""
    value = Decimal(seconds)
    if not value.is_finite():
        raise InputError(f"{seconds} is not a time")
    if value and value.adjusted() > 30:
        raise InputError(f"{seconds} is longer than {LONGEST // TICKS_PER_SECOND} s")
    if value and value.adjusted() < -60:
        return Reading(0, True)
    exact = Fraction(value) * unit
    if abs(exact) > LONGEST:
        raise InputError(f"{seconds} is longer than {LONGEST // TICKS_PER_SECOND} s")
    ticks = round(exact)  # half to even
    return Reading(ticks, ticks != exact)


def parse_time(text: str, unit: str | None = None) -> Reading:
    """Read "0.5 ms", "15.625 us" or, where `unit` is given, a bare number of it; raise InputError otherwise."""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise InputError(f"{text!r} is not a time such as '0.5 ms'")
    number, name = match.groups()
    name = name or unit or ""
    if name not in UNIT_TICKS:
        known = ", ".join(sorted(UNIT_TICKS, key=UNIT_TICKS.__getitem__))
        raise InputError(f"{text!r} needs a unit of time ({known})" if not name else f"{name!r} is not one of {known}")
    return round_to_ticks(parse_decimal(number), UNIT_TICKS[name])


def parse_decimal(text: str) -> Decimal:
    """Read an exact decimal; raise InputError for anything else."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise InputError(f"{text!r} is not a number") from None
    if not value.is_finite():
        raise InputError(f"{text!r} is not a finite number")
    return value


def to_seconds(ticks: Ticks) -> Fraction:
    """Give ticks as an exact number of seconds."""
    return Fraction(ticks, TICKS_PER_SECOND)


def format_decimal(value: Fraction | int) -> str | None:
    """Write a rational as an exact decimal, or return None where it has no finite one."""
    exact = Fraction(value)
    twos, fives, rest = 0, 0, exact.denominator
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    if rest != 1:
        return None
    places = max(twos, fives)
    digits = str(abs(exact.numerator) * 10**places // exact.denominator).rjust(places + 1, "0")
    sign = "-" if exact < 0 else ""
    return sign + (f"{digits[:-places]}.{digits[-places:]}" if places else digits)


def round_decimal(value: Fraction | int, places: int) -> str:
    """Round a rational half to even to `places` decimals, for printing only."""
    exact = Fraction(value)
    scaled = Decimal(round(exact * 10**places))
    return str(scaled.scaleb(-places).quantize(Decimal(1).scaleb(-places), ROUND_HALF_EVEN))
