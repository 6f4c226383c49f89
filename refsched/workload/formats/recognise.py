"""Which format a file has, told from its first line: header or keys, never the file's name."""

import re
from collections.abc import Iterable, Sequence

from refsched.errors import InputError
from refsched.workload.formats.layout import Layout
from refsched.workload.formats.syntax import parse_object, split_csv

_NUMERIC = re.compile(r"\s*[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?\s*")
SERVEGEN_CELLS = 6  # a ServeGen window has no header: start, rate, CV, family, two parameters


def is_window(text: str) -> bool:
    """Say whether a first line is a window of a ServeGen trace."""
    cells = text.split(",")
    return len(cells) == SERVEGEN_CELLS and all(_NUMERIC.fullmatch(cell) for cell in (*cells[:3], *cells[4:]))


def read_header(text: str) -> list[str]:
    """Read the column names of a CSV file; raise InputError for a name that is empty, a number, or given twice."""
    names = [name.strip() for name in split_csv(text)]
    for index, name in enumerate(names):
        if not name:
            raise InputError(f"column {index + 1} has no name")
        if _NUMERIC.fullmatch(name):
            raise InputError(f"the first line is not a header: {name!r} is a number")
        if name in names[:index]:
            raise InputError(f"column {name!r} is there twice")
    return names


def read_first_fields(text: str) -> tuple[str, list[str]]:
    """Give the syntax and the field names that the first line shows."""
    if text.lstrip().startswith("["):
        raise InputError("is a JSON list; JSON workloads have one object a line")
    if text.strip() == "{":
        raise InputError("is a JSON document over several lines; JSON workloads have one object a line")
    return ("jsonl", list(parse_object(text))) if text.lstrip().startswith("{") else ("csv", read_header(text))


def choose_layout(syntax: str, fields: Sequence[str], layouts: Iterable[Layout]) -> Layout:
    """Choose the most demanding format whose needs are met; raise InputError naming the nearest otherwise."""
    same = [layout for layout in layouts if layout.syntax == syntax]
    ranked = sorted(same, key=lambda layout: len(layout.needs), reverse=True)
    for layout in ranked:
        if set(layout.needs) <= set(fields):
            return layout
    nearest = max(ranked, key=lambda layout: len(set(layout.needs) & set(fields)) / len(layout.needs))
    if set(nearest.needs).isdisjoint(fields):
        known = ", ".join(sorted({layout.name for layout in ranked}))
        raise InputError(f"is no known workload file; known are {known}")
    missing = next(name for name in nearest.needs if name not in fields)
    raise InputError(f"is missing (nearest known format: {nearest.name})", field=missing)
