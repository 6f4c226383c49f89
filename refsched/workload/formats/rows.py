"""The rows of a file in a known format, read one at a time."""

from collections.abc import Collection, Iterator
from itertools import chain
from typing import TypeAlias

from refsched.errors import InputError
from refsched.workload.formats.cells import Record, show
from refsched.workload.formats.layout import REFUSED, Layout, Row, Skip
from refsched.workload.formats.recognise import read_header
from refsched.workload.formats.syntax import parse_object, split_csv
from refsched.workload.formats.tally import Tally

Line: TypeAlias = tuple[int, str]


def read_rows(layout: Layout, first: Line, lines: Iterator[Line], tally: Tally) -> Iterator[tuple[int, Row | Skip]]:
    """Give (row, request or reason to leave it out) for every line that is not blank; raise InputError with the row."""
    read_records = _RECORDS[layout.syntax]
    read = layout.read
    for record in read_records(layout, first, skip_blank(lines, tally), tally):
        try:
            yield record.row, read(record)
        except InputError as error:
            raise error.at(row=record.row) from None


def find_first(lines: Iterator[Line]) -> Line:
    """Give the first line that is not blank; raise InputError if there is none."""
    for row, text in lines:
        if text.strip():
            return row, text
    raise InputError("is empty")


def skip_blank(lines: Iterator[Line], tally: Tally) -> Iterator[Line]:
    """Give the lines that are not blank, and count those that are."""
    for row, text in lines:
        if text and not text.isspace():
            yield row, text
        else:
            tally.add("blank lines, left out", row)


def _read_csv(layout: Layout, first: Line, lines: Iterator[Line], tally: Tally) -> Iterator[Record]:
    try:
        names = read_header(first[1])
        _check_fields(layout, names, first[0], tally)
    except InputError as error:
        raise error.at(row=first[0]) from None
    for row, text in lines:
        cells = _split(text, row)
        if len(cells) != len(names):
            raise InputError(f"has {len(cells)} cells where the header has {len(names)}", row=row)
        yield Record(row, dict(zip(names, cells, strict=True)), typed=False)


def _split(text: str, row: int) -> list[str]:
    try:
        return split_csv(text)
    except InputError as error:
        raise error.at(row=row) from None


def _read_jsonl(layout: Layout, first: Line, lines: Iterator[Line], tally: Tally) -> Iterator[Record]:
    for row, text in chain([first], lines):
        try:
            cells = parse_object(text)
            _check_fields(layout, cells, row, tally)
        except InputError as error:
            raise error.at(row=row) from None
        yield Record(row, cells, typed=True)


def _check_fields(layout: Layout, names: Collection[str], row: int, tally: Tally) -> None:
    for name in names:
        if name in layout.needs or name in layout.may:
            continue
        if layout.others == REFUSED:
            raise InputError(f"{show(name)} is no field of {layout.name}")
        tally.add(f"rows with a field {show(name)} that is not read", row)


_RECORDS = {"csv": _read_csv, "jsonl": _read_jsonl}
