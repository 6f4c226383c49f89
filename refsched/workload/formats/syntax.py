"""A line of CSV or JSON becomes cells; whatever is not exactly one such line is refused."""

import csv
import json
from decimal import Decimal, InvalidOperation
from typing import NoReturn

from refsched.errors import InputError
from refsched.workload.formats.cells import show


def split_csv(text: str) -> list[str]:
    """Split one line of CSV; raise InputError for a quote that is not closed."""
    if '"' not in text:
        return text.split(",")
    try:
        return next(csv.reader([text], strict=True))
    except csv.Error as error:
        raise InputError(f"is not CSV: {error}") from None


def parse_object(text: str) -> dict[str, object]:
    """Read one JSON object with exact numbers; raise InputError for anything else, a key given twice included."""
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise InputError(f"is not one JSON object: {error.msg.removesuffix(' at')} at place {error.colno}") from None
    except RecursionError:
        raise InputError("is nested too deeply") from None
    except InputError:
        raise
    except ValueError:
        raise InputError("holds a number that is too long") from None
    if not isinstance(value, dict):
        raise InputError("is not a JSON object")
    return value


def _pair(pairs: list[tuple[str, object]]) -> dict[str, object]:
    cells = dict(pairs)
    if len(cells) < len(pairs):
        twice = next(name for index, (name, _) in enumerate(pairs) if name in dict(pairs[:index]))
        raise InputError(f"{show(twice)} is given twice")
    return cells


def _parse_float(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise InputError(f"{show(text)} is out of range") from None


def _refuse_constant(text: str) -> NoReturn:
    raise InputError(f"{text} is not a number")


_DECODER = json.JSONDecoder(parse_float=_parse_float, parse_constant=_refuse_constant, object_pairs_hook=_pair)
