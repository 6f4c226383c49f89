"""Seconds in a JSON text as ticks: exact, and fast enough for a hundred million of them.

The decoder hands a number with a point or an exponent over as bytes, so that it is told from a string and no float
is ever made of it.
"""

from collections.abc import Sequence
from itertools import repeat
from operator import sub

from refsched.errors import InputError
from refsched.units import TICKS_PER_SECOND, Ticks, parse_decimal, round_to_ticks

DECIMALS = 12  # of a picosecond in a second
SCALES = [10 ** (DECIMALS - places) for places in range(DECIMALS + 1)]
POINTS = repeat(b".")
LATEST = 10**10  # seconds; a clock that counts from 1970 stands at a sixth of it
MOST_DIGITS = 60


def read_ticks(value: object) -> tuple[Ticks, bool]:
    """Turn a number of seconds into ticks, and tell whether it had to be rounded, half to even.

    Raise InputError for what is no number, negative, or beyond the year 2286.
    """
    if type(value) is bytes:
        whole, _, part = value.partition(b".")
        if len(part) <= DECIMALS and part.isdigit() and len(whole) < DECIMALS:
            return check_ticks(int(whole + part) * SCALES[len(part)]), False
        return read_long(value, whole, part)
    if type(value) is not int:
        raise InputError("is not a number of seconds")
    if abs(value) > LATEST:
        raise InputError(f"is more than {LATEST} s")
    return check_ticks(value * TICKS_PER_SECOND), False


def read_long(value: bytes, whole: bytes, part: bytes) -> tuple[Ticks, bool]:
    """Turn a number with more decimals than a picosecond has, or with an exponent, into ticks."""
    if len(value) > MOST_DIGITS:
        raise InputError(f"has more than {MOST_DIGITS} digits")
    if not part.isdigit():
        ticks, rounded = round_to_ticks(parse_decimal(value.decode()))
        return check_ticks(ticks), rounded
    scale = 10 ** max(len(part) - DECIMALS, 0)
    ticks, rest = divmod(int(whole + part) * SCALES[min(len(part), DECIMALS)], scale)
    ticks += 2 * rest > scale or (2 * rest == scale and ticks % 2 == 1)
    return check_ticks(ticks), rest > 0


def check_ticks(ticks: Ticks) -> Ticks:
    """Return the ticks; raise InputError where they are negative or too many."""
    if ticks < 0:
        raise InputError("is negative")
    if ticks > LATEST * TICKS_PER_SECOND:
        raise InputError(f"is more than {LATEST} s")
    return ticks


def read_all_ticks(values: Sequence[object]) -> tuple[list[Ticks], int]:
    """Turn many numbers of seconds into ticks, and count those that had to be rounded."""
    quick = read_alike(values)
    if quick is not None:
        return quick, 0
    ticks: list[Ticks] = []
    add, rounded = ticks.append, 0
    for value in values:
        exact, is_rounded = read_ticks(value)
        add(exact)
        rounded += is_rounded
    return ticks, rounded


def read_alike(values: Sequence[object]) -> list[Ticks] | None:
    """Turn plain decimals of equally many places into ticks, without a step of Python for each; None for any others."""
    try:
        places = set(map(sub, map(len, values), map(bytes.find, values, POINTS)))  # type: ignore[arg-type]
        scale = SCALES[places.pop() - 1]
        ticks = [scale * each for each in map(int, b" ".join(values).replace(b".", b"").split())]  # type: ignore[arg-type]
    except (TypeError, ValueError, IndexError, KeyError):  # whole numbers, exponents, more places, or no values
        return None
    is_sound = not places and len(ticks) == len(values) and min(ticks) >= 0 and max(ticks) <= LATEST * TICKS_PER_SECOND
    return ticks if is_sound else None
