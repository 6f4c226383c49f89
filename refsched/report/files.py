"""Writing files: whole or not at all."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from refsched.errors import InputError


@contextmanager
def open_for_writing(path: str) -> Iterator[TextIO]:
    """Open a text file that appears under `path` only when it is complete; "-" is standard output.

    Raise InputError where it cannot be written.
    """
    if path == "-":
        yield sys.stdout
        return
    target = Path(path)
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=path) from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            yield file
        os.chmod(temporary, 0o666 & ~get_umask())
        os.replace(temporary, target)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=path) from None
    finally:
        Path(temporary).unlink(missing_ok=True)


def get_umask() -> int:
    """Read the process's file mode mask, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_text(path: str, text: str) -> None:
    """Write a whole text to a file or, for "-", to standard output."""
    with open_for_writing(path) as file:
        file.write(text)
