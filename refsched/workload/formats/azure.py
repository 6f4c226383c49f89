"""Azure LLM inference traces: 2023 (seven fractional digits, no zone) and 2024 (six, with an offset), one reader.

Stamps are exact: `2023-11-16 18:17:03.9799600`, `2024-05-10 00:00:00.009930+00:00`. Only their differences are used.
"""

import re
from datetime import date
from functools import lru_cache

from refsched.errors import InputError
from refsched.units import TICKS_PER_SECOND, Ticks
from refsched.workload.formats.cells import Record, get_value, read_count, show
from refsched.workload.formats.layout import Layout, Row

_STAMP = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,12}))?(Z|[+-][0-9]{2}:[0-9]{2})?"
)


def read_azure(record: Record) -> Row:
    """Read one row; raise InputError naming the field."""
    at = parse_stamp(str(get_value(record, "TIMESTAMP")))
    return Row(at, read_count(record, "ContextTokens"), read_count(record, "GeneratedTokens"))


def parse_stamp(text: str) -> Ticks:
    """Give the ticks since the year 1 of a stamp with up to twelve fractional digits; raise InputError otherwise."""
    match = _STAMP.fullmatch(text.strip())
    if match is None:
        raise InputError(f"{show(text)} is not a time stamp such as 2023-11-16 18:17:03.9799600", field="TIMESTAMP")
    day, hour, minute, second, fraction, zone = match.groups()
    if int(hour) > 23 or int(minute) > 59 or int(second) > 59:
        raise InputError(f"{show(text)} has an hour, minute or second that does not exist", field="TIMESTAMP")
    seconds = _get_midnight(day) + int(hour) * 3600 + int(minute) * 60 + int(second) - _get_offset(zone or "Z")
    return seconds * TICKS_PER_SECOND + int((fraction or "").ljust(12, "0"))


@lru_cache(maxsize=64)
def _get_midnight(day: str) -> int:
    try:
        return date.fromisoformat(day).toordinal() * 86400
    except ValueError:
        raise InputError(f"{day} is not a day of the calendar", field="TIMESTAMP") from None


@lru_cache(maxsize=64)
def _get_offset(zone: str) -> int:
    if zone == "Z":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    if hours > 23 or minutes > 59:
        raise InputError(f"{zone} is not an offset from UTC", field="TIMESTAMP")
    return (hours * 3600 + minutes * 60) * (-1 if zone[0] == "-" else 1)


LAYOUTS = (Layout("azure-csv", "csv", ("TIMESTAMP", "ContextTokens", "GeneratedTokens"), "TIMESTAMP", read_azure),)
