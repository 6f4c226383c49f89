"""Small files written by hand, and what reading them gives."""

from pathlib import Path

import pytest

from refsched.errors import InputError
from refsched.workload.formats import ReadOptions, read_workload
from refsched.workload.offer import Workload


def write(folder: Path, content: str | bytes, name: str = "workload") -> str:
    """Write a file, exactly these bytes, and give its path."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def read(folder: Path, content: str | bytes, options: ReadOptions = ReadOptions()) -> Workload:
    """Read a workload from this content."""
    return read_workload(write(folder, content), options)


def refuse(folder: Path, content: str | bytes) -> InputError:
    """Give the error that this content is refused with; it is one line and names the file."""
    path = write(folder, content)
    with pytest.raises(InputError) as caught:
        read_workload(path)
    assert caught.value.file == path
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < len(path) + 250
    return caught.value


def rows_of(workload: Workload) -> list[tuple[int, str, int, int]]:
    """List (ticks, id, prompt, output)."""
    return [(offer.at, offer.request.id, offer.request.prompt, offer.request.output) for offer in workload.offers]
