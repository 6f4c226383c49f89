"""One value of one row: counts, exact times, names and hash ids, each refused with the field's name if it is wrong."""

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from refsched.errors import InputError
from refsched.model import LARGEST_COUNT
from refsched.units import TICKS_PER_SECOND, Reading, Ticks, Tokens, round_to_ticks

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_WHOLE = re.compile(r"[+-]?[0-9]+")
_SHOWN = 40  # characters of a wrong value that a message repeats
_DIGITS = 300  # a number with more characters is junk


class Record(NamedTuple):
    """Hold the values of one row by field; JSON tells numbers from text (`typed`), CSV has text only."""

    row: int
    cells: Mapping[str, object]
    typed: bool


def show(value: object) -> str:
    """Write a value for a message, cut where it is long."""
    text = str(value) if isinstance(value, int | Decimal) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def has(record: Record, field: str) -> bool:
    """Say whether the row gives the field at all: an empty cell or a JSON null does not."""
    return record.cells.get(field) not in (None, "")


def get_value(record: Record, field: str) -> object:
    """Give the value of a field as it stands; raise InputError if the row lacks it."""
    if not has(record, field):
        raise InputError("is missing", field=field)
    return record.cells[field]


def get_number(record: Record, field: str) -> int | Decimal:
    """Give an exact number; raise InputError for text that is none, for NaN and for infinities."""
    value = get_value(record, field)
    if isinstance(value, str) and not record.typed:
        return parse_number(value.strip(), field)
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise InputError(f"{show(value)} is not a number", field=field)
    return value


def parse_number(text: str, field: str) -> int | Decimal:
    """Read an integer or an exact decimal written in ASCII digits; raise InputError for anything else."""
    if len(text) > _DIGITS:
        raise InputError(f"{show(text)} is too long for a number", field=field)
    if _WHOLE.fullmatch(text):
        return int(text)
    if not _NUMBER.fullmatch(text):
        raise InputError(f"{show(text)} is not a number", field=field)
    try:
        return Decimal(text)
    except InvalidOperation:
        raise InputError(f"{show(text)} is out of range", field=field) from None


def read_count(record: Record, field: str, least: int = 1) -> Tokens:
    """Read a whole number from `least` to 10^12, written without a point or an exponent."""
    value = get_number(record, field)
    if not isinstance(value, int):
        raise InputError(f"{show(value)} is not a whole number", field=field)
    if value < least:
        raise InputError(f"{show(value)} is below {least}", field=field)
    if value > LARGEST_COUNT:
        raise InputError(f"{show(value)} is too large", field=field)
    return value


def read_time(record: Record, field: str, unit: Ticks = TICKS_PER_SECOND) -> Reading:
    """Read a time that is not negative, in units of `unit` ticks, exactly."""
    value = get_number(record, field)
    if value < 0:
        raise InputError(f"{show(value)} is before the start", field=field)
    try:
        return round_to_ticks(value, unit)
    except InputError:
        raise InputError(f"{show(value)} is too long a time", field=field) from None


def read_name(record: Record, field: str) -> str:
    """Read a name, "" where the row gives none; raise InputError unless it is printable text."""
    if not has(record, field):
        return ""
    value = record.cells[field]
    if not isinstance(value, str) or not value.isprintable():
        raise InputError(f"{show(value)} is not printable text", field=field)
    return value


def read_hashes(record: Record, field: str) -> tuple[int, ...]:
    """Read hash ids: a JSON list of integers, or in CSV integers with spaces between."""
    value = record.cells.get(field)
    if isinstance(value, str) and not record.typed:
        value = [parse_number(item, field) for item in value.split()]
    if not isinstance(value, list):
        raise InputError(f"{show(value)} is not a list of whole numbers", field=field)
    wrong = [item for item in value if type(item) is not int]
    if wrong:
        raise InputError(f"{show(wrong[0])} is not a whole number", field=field)
    return tuple(value)
