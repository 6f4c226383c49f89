"""ServeGen's per-client files: windows of rates (a CSV without a header) and tables of lengths (JSON).

A window is: start in seconds, requests a second, CV, family (`Gamma`, `Weibull`, or empty where idle), shape, scale.
The tables are JSON, window start -> field -> a Python dict written as a string; it is parsed here as
`{tokens: weight, …}` and nothing else, and never evaluated.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from refsched.errors import InputError
from refsched.units import TICKS_PER_SECOND, Ticks, Tokens
from refsched.workload.formats.cells import Record, get_number, parse_number, read_count, read_time, show
from refsched.workload.formats.lines import open_lines, read_text
from refsched.workload.formats.recognise import is_window
from refsched.workload.formats.rows import find_first, skip_blank
from refsched.workload.formats.syntax import parse_object, split_csv
from refsched.workload.formats.tally import Tally

FIELDS = ("start", "rate", "cv", "family", "shape", "scale")
FAMILIES = ("Gamma", "Weibull")
FASTEST = 10**6  # requests a second
LEAST_SHAPE = Fraction(1, 1000)
LARGEST_DOCUMENT = 1 << 26  # bytes
WINDOW: Ticks = 600 * TICKS_PER_SECOND  # the length of a window that has no other after it


@dataclass(frozen=True, slots=True)
class Window:
    """Hold one window: when it is, how many requests a second, and the family and shape of their gaps."""

    start: Ticks
    end: Ticks
    rate: Fraction
    family: str
    shape: Fraction


@dataclass(frozen=True, slots=True)
class Table:
    """Hold the lengths of requests from `start` on, as (tokens, weight)."""

    start: Ticks
    prompt: tuple[tuple[Tokens, float], ...]
    output: tuple[tuple[Tokens, float], ...]


def is_servegen(path: str) -> bool:
    """Say whether a file begins with a ServeGen window; raise InputError if it cannot be read or is empty."""
    with open_lines(path) as lines:
        return is_window(find_first(iter(lines))[1])


def read_windows(path: str) -> tuple[tuple[Window, ...], str]:
    """Read the windows of a trace, in order, and the file's sha256; raise InputError naming file, row and field."""
    with open_lines(path) as lines:
        rows = list(_read_window_rows(skip_blank(iter(lines), Tally())))
        sha256 = lines.compute_sha256()
        if not rows:
            raise InputError("is empty")
    ends = [after.start for after in rows[1:]]
    last = rows[-1].start - rows[-2].start if len(rows) > 1 else WINDOW
    starts = zip(rows, (*ends, rows[-1].start + last), strict=True)
    return tuple(Window(row.start, end, row.rate, row.family, row.shape) for row, end in starts), sha256


def _read_window_rows(lines: Iterator[tuple[int, str]]) -> Iterator[Window]:
    last = -1
    for row, text in lines:
        try:
            window = parse_window(row, text)
            if window.start <= last:
                raise InputError("is not after the window above", field="start")
        except InputError as error:
            raise error.at(row=row) from None
        last = window.start
        yield window


def parse_window(row: int, text: str) -> Window:
    """Read one window, its end still open; raise InputError naming the field."""
    cells = split_csv(text)
    if len(cells) != len(FIELDS):
        raise InputError(f"has {len(cells)} cells where a window has {len(FIELDS)}")
    record = Record(row, dict(zip(FIELDS, cells, strict=True)), typed=False)
    start, rate = read_time(record, "start").ticks, Fraction(get_number(record, "rate"))
    if not 0 <= rate <= FASTEST:
        raise InputError(f"{show(cells[1])} is not from 0 to {FASTEST} requests/s", field="rate")
    if rate == 0:
        return Window(start, start, rate, "", Fraction(1))
    if cells[3] not in FAMILIES:
        raise InputError(f"{show(cells[3])} is not one of {', '.join(FAMILIES)}", field="family")
    shape = Fraction(get_number(record, "shape"))
    if not LEAST_SHAPE <= shape <= FASTEST:
        raise InputError(f"{show(cells[4])} is not from {float(LEAST_SHAPE)} to {FASTEST}", field="shape")
    return Window(start, start, rate, cells[3], shape)


def read_tables(path: str) -> tuple[tuple[Table, ...], str]:
    """Read the tables of lengths, in order of time, and the file's sha256; raise InputError naming file and field."""
    text, sha256 = read_text(path, LARGEST_DOCUMENT)
    try:
        tables = [_read_table(start, cells) for start, cells in parse_object(text).items()]
        if not tables:
            raise InputError("has no windows")
        for before, after in pairwise(tables):
            if after.start <= before.start:
                raise InputError("is not after the window above", field=str(after.start // TICKS_PER_SECOND))
    except InputError as error:
        raise error.at(file=path) from None
    return tuple(tables), sha256


def _read_table(start: str, cells: object) -> Table:
    record = Record(0, cells, typed=True) if isinstance(cells, dict) else Record(0, {}, typed=True)
    at = read_time(Record(0, {"window": start}, typed=False), "window").ticks
    prompt, output = (_parse_weights(record, f"{name}_tokens", show(start)) for name in ("input", "output"))
    return Table(at, prompt, output)


def _parse_weights(record: Record, name: str, start: str) -> tuple[tuple[Tokens, float], ...]:
    field = f"window {start}: {name}"
    text = record.cells.get(name)
    if not isinstance(text, str) or not text.startswith("{") or not text.endswith("}"):
        raise InputError(f"{show(text)} is not a dict written as text", field=field)
    pairs = [piece.split(":") for piece in text[1:-1].split(",") if piece.strip()]
    return tuple(_parse_weight(pair, field) for pair in pairs)


def _parse_weight(pair: list[str], field: str) -> tuple[Tokens, float]:
    if len(pair) != 2:
        raise InputError(f"{show(':'.join(pair))} is not tokens: weight", field=field)
    tokens = read_count(Record(0, {field: pair[0].strip()}, typed=False), field)
    weight = float(parse_number(pair[1].strip(), field))
    if not 0 <= weight < 1e9:
        raise InputError(f"{show(pair[1].strip())} is no weight", field=field)
    return tokens, weight
