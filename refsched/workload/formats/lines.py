"""The lines of a text file, one at a time and bounded, and the sha256 of the whole file."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import BinaryIO

from refsched.errors import InputError

LONGEST_LINE = 1 << 22  # bytes; a prompt of a million tokens in blocks of 16 needs about a tenth of it
_PIECE = 1 << 20


class Lines:
    """Give (row, text) for each line of an open file; rows count from 1, blank lines included."""

    def __init__(self, file: BinaryIO):
        self._file, self._digest, self._row = file, hashlib.sha256(), 0
        self._size, self._given = os.fstat(file.fileno()).st_size, 0  # bytes; the size of a pipe is 0

    def __iter__(self) -> Iterator[tuple[int, str]]:
        while raw := self._file.readline(LONGEST_LINE + 1):
            self._row += 1
            self._given += len(raw)
            self._digest.update(raw)
            yield self._row, decode_line(raw, self._row)

    def get_share(self) -> Fraction | None:
        """Give the share of the file's bytes that was given in lines; None where its size is not known."""
        return Fraction(self._given, self._size) if self._size else None

    def compute_sha256(self) -> str:
        """Read what is left of the file, unparsed, and give the sha256 of all of it."""
        while piece := self._file.read(_PIECE):
            self._digest.update(piece)
        return self._digest.hexdigest()


@contextmanager
def open_lines(path: str) -> Iterator[Lines]:
    """Open a file for reading by lines; raise InputError naming it where it cannot be read."""
    with open_bytes(path) as file:
        try:
            yield Lines(file)
        except InputError as error:
            raise error.at(file=path) from None


@contextmanager
def open_bytes(path: str) -> Iterator[BinaryIO]:
    """Open a file for reading; raise InputError naming it where it cannot be read."""
    if "\0" in path:
        raise InputError("cannot be read: no file has a NUL in its name", file=path.replace("\0", "?"))
    try:
        with open(path, "rb") as file:
            yield file
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from None


def decode_line(raw: bytes, row: int) -> str:
    """Decode one line without its end; raise InputError if it is too long, not UTF-8, or holds a NUL or a bare CR."""
    if len(raw) > LONGEST_LINE:
        raise InputError(f"the line is longer than {LONGEST_LINE} bytes", row=row)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"byte 0x{raw[error.start]:02x} at place {error.start + 1} is not UTF-8", row=row) from None
    text = text.removesuffix("\n").removesuffix("\r")
    if row == 1:
        text = text.removeprefix("\ufeff")
    for character, name in (("\0", "NUL byte"), ("\r", "carriage return")):
        if character in text:
            raise InputError(f"a {name} inside the line", row=row)
    return text


def read_text(path: str, limit: int) -> tuple[str, str]:
    """Read a whole file of at most `limit` bytes and its sha256; raise InputError naming the file."""
    with open_bytes(path) as file:
        raw = file.read(limit + 1)
    if len(raw) > limit:
        raise InputError(f"is larger than {limit} bytes", file=path)
    try:
        return raw.decode("utf-8-sig"), hashlib.sha256(raw).hexdigest()
    except UnicodeDecodeError as error:
        raise InputError(f"byte 0x{raw[error.start]:02x} at place {error.start + 1} is not UTF-8", file=path) from None
