"""What several commands share: reading numbers and engines from arguments, and saying where numbers come from."""

import argparse
import json
import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict

from refsched import __version__
from refsched.dialect import Dialect, get_dialect, list_dialects
from refsched.errors import InputError
from refsched.model import Limits, check_count
from refsched.report.files import write_text
from refsched.report.json_text import to_json_text
from refsched.scheduling.engine import ReferenceEngine
from refsched.units import Ticks, parse_time

EDITION = 1
LONGEST_QUOTE = 60
OUTSIDE = ("python:", "cmd:", "trace:")


def read_count(text: str, name: str, least: int = 1) -> int:
    """Read a whole number of at least `least`; raise InputError naming the argument."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 20:
        raise InputError(f"{shorten(repr(text))} is not a whole number", field=name)
    return check_count(int(text), name, least)


def read_duration(text: str, name: str, unit: str | None = None) -> Ticks:
    """Read a time that is not negative, exactly; raise InputError naming the argument otherwise.

    `unit` is that of a bare number.
    """
    try:
        ticks, rounded = parse_time(text, unit)
    except InputError as error:
        raise error.at(field=name) from None
    if ticks < 0 or rounded:
        raise InputError(f"{text!r} is {'negative' if ticks < 0 else 'finer than a picosecond'}", field=name)
    return ticks


def shorten(text: str) -> str:
    """Cut what a user gave to what is worth repeating in an error."""
    return text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE] + "…"


def count_argument(name: str, least: int = 1) -> Callable[[str], int]:
    """Make a reader of one counting argument for argparse, which names the argument itself."""

    def read(text: str) -> int:
        try:
            return read_count(text, name, least)
        except InputError as error:
            raise argparse.ArgumentTypeError(error.problem) from None

    return read


def parse_dialect(text: str) -> Dialect:
    """Read `NAME` or `NAME,option=value,…`; raise InputError for an unknown name, option or value."""
    name, *pairs = text.split(",")
    options: dict[str, object] = {}
    for pair in pairs:
        option, equals, value = pair.partition("=")
        if not equals or not option or option in options:
            raise InputError(f"{pair!r} is not one more option=value", field="--engine")
        options[option] = parse_value(value)
    try:
        return get_dialect(name, options)
    except InputError as error:
        raise InputError(str(error), field="--engine") from None


def parse_value(text: str) -> object:
    """Read true, false or a whole number as such, anything else as a word."""
    words: dict[str, object] = {"true": True, "false": False}
    return words.get(text, int(text) if text.isascii() and text.isdigit() and len(text) < 20 else text)


def make_engine(text: str, limits: Limits) -> tuple[ReferenceEngine, Dialect]:
    """Make the reference engine that an ENGINE argument names; raise InputError for what cannot be run here."""
    if text.startswith(OUTSIDE):
        raise InputError(f"{text!r} cannot be simulated; give a policy: {', '.join(list_dialects())}", field="--engine")
    dialect = parse_dialect(text)
    return ReferenceEngine(dialect, limits), dialect


def get_provenance(how: str) -> dict[str, object]:
    """Say what made the numbers, and whether they were worked by hand, simulated or measured [B22]."""
    return {
        "refsched": __version__,
        "edition": EDITION,
        "python": platform.python_version(),
        "how": how,
        "command": ["refsched", *sys.argv[1:]],
    }


def limits_to_json(limits: Limits) -> Mapping[str, object]:
    """Give limits under the names of the protocol."""
    return asdict(limits)


def write_json(path: str | None, page: Mapping[str, object]) -> None:
    """Write a JSON object where the user asked for it, if at all."""
    if path is not None:
        write_text(path, to_json_text(page) + "\n")


def quote(value: object) -> str:
    """Write an option's value as the command line takes it."""
    return value if isinstance(value, str) else json.dumps(value)
