"""Reading JSON of any size: plain or gzipped, one value, several one after the other, or one a line.

Numbers are exact decimals. NaN and Infinity are kept as Odd, so that a reader can say where one stands and refuse it.
"""

import gzip
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import BinaryIO

from refsched.errors import InputError

Json = object
LONGEST_VALUE = 128 * 2**20  # bytes of one JSON value; above it a file is junk or needs splitting
GZIP, MARK = b"\x1f\x8b", b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Odd:
    """Hold a word that is no JSON number but that some tools write as one: NaN, Infinity, -Infinity."""

    word: str


DECODER = json.JSONDecoder(parse_float=Decimal, parse_constant=Odd)


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """Open a file, unpacking it where its first bytes say it is gzipped; raise InputError where that fails."""
    name = str(path)
    try:
        with path.open("rb") as raw:
            packed = raw.peek(2)[:2] == GZIP
            if path.suffix == ".gz" and not packed:
                raise InputError("is named .gz but is not gzipped", file=name)
            with gzip.open(raw) if packed else raw as file:
                yield file  # type: ignore[misc]
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InputError("is not a whole gzip file", file=name) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=name) from None


def read_text(path: Path) -> str:
    """Read a whole file of one or a few JSON values as text; raise InputError for what is no such text."""
    with open_bytes(path) as file:
        data = file.read(LONGEST_VALUE + 1)
    if len(data) > LONGEST_VALUE:
        raise InputError(f"holds one value of more than {LONGEST_VALUE >> 20} MiB", file=str(path))
    return decode(data, str(path), None)


def decode(data: bytes, file: str, row: int | None) -> str:
    """Read bytes as UTF-8 text without a byte order mark."""
    if data.startswith(MARK):
        raise InputError("begins with a byte order mark; JSON is UTF-8 without one", file=file, row=row)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 text (byte {error.start})", file=file, row=row) from None


def read_values(path: Path) -> list[Json]:
    """Read all JSON values of a file, one after the other; raise InputError for an empty or a broken one."""
    text, values, place = read_text(path), [], 0
    while (place := skip_space(text, place)) < len(text):
        value, place = decode_value(text, place, str(path))
        values.append(value)
    if not values:
        raise InputError("is empty", file=str(path))
    return values


def skip_space(text: str, place: int) -> int:
    """Move past white space."""
    while place < len(text) and text[place] in " \t\r\n":
        place += 1
    return place


def decode_value(text: str, place: int, file: str, row: int | None = None) -> tuple[Json, int]:
    """Read the JSON value that starts at `place`; return it and where it ends."""
    try:
        return DECODER.raw_decode(text, place)
    except json.JSONDecodeError as error:
        line = row if row is not None else error.lineno
        cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated")
        why = f"{error.msg.removesuffix(' at')} at column {error.colno}"
        what = "ends in the middle of a value" if cut else f"is not JSON ({why})"
        raise InputError(what, file=file, row=line) from None
    except RecursionError:
        raise InputError("is nested too deeply", file=file, row=row) from None
    except ValueError:
        raise InputError("holds a number of too many digits", file=file, row=row) from None


def read_lines(path: Path) -> Iterator[tuple[int, Json]]:
    """Read one JSON value a line, in a stream; raise InputError naming the line that is not one."""
    with open_bytes(path) as file:
        row = 0
        while line := file.readline(LONGEST_VALUE + 1):
            row += 1
            if len(line) > LONGEST_VALUE:
                raise InputError(f"is a line of more than {LONGEST_VALUE >> 20} MiB", file=str(path), row=row)
            text = decode(line, str(path), row).strip()
            if text:
                yield row, read_line(text, str(path), row)


def read_line(text: str, file: str, row: int) -> Json:
    """Read the one value of a line."""
    value, stop = decode_value(text, 0, file, row)
    if stop != len(text):
        raise InputError("holds more than one value", file=file, row=row)
    return value
