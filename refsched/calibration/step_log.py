"""Step times from a CSV file: one row an iteration, from anybody's engine.

Columns: `tokens` (all tokens the iteration computed), `decodes`, `kv` (cached tokens those decodes read, summed), and
one of `time_s`, `time_ms`, `time_us`. Optional: `history` (tokens cached before the iteration's prefill chunk), or
`chunks` for one or several chunks written as "count@history", separated by blanks ("512@4096 64@0"), empty for none;
`use`, train or held_out. Without `chunks`, tokens - decodes are one chunk. Other columns are an error: a column
nobody reads is usually a misspelt one.
"""

import csv
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from refsched.calibration.samples import Sample, count_tokens
from refsched.errors import InputError
from refsched.model import Work, check_count

TIMES: Mapping[str, float] = {"time_s": 1.0, "time_ms": 1e-3, "time_us": 1e-6}
MUST = ("tokens", "decodes", "kv")
MAY = ("history", "chunks", "use")
USES = ("train", "held_out")
HELD_OUT_SHARE = 0.2
FEWEST = 12
Row = Mapping[str, str]


def read_step_log(path: str, seed: int = 0) -> tuple[list[Sample], list[Sample]]:
    """Read training and held-out iterations; without `use`, a fifth is held out. Raise InputError with the row."""
    used = list(read_rows(path))
    samples = [sample for sample, _ in used]
    if len(samples) < FEWEST:
        raise InputError(f"holds {len(samples)} iterations; a fit needs at least {FEWEST}", file=path)
    if any(use for _, use in used):
        parts = {use: [sample for sample, mark in used if (mark or USES[0]) == use] for use in USES}
        return parts["train"], parts["held_out"]
    return split_off(samples, HELD_OUT_SHARE, seed)


def split_off(samples: Sequence[Sample], share: float, seed: int) -> tuple[list[Sample], list[Sample]]:
    """Split off a random share of the samples, repeatably; give the rest and the share."""
    order = list(range(len(samples)))
    random.Random(seed).shuffle(order)
    held_out = set(order[: round(share * len(order))])
    rest = [sample for place, sample in enumerate(samples) if place not in held_out]
    return rest, [samples[place] for place in sorted(held_out)]


def read_rows(path: str) -> Iterator[tuple[Sample, str]]:
    """Give each row's iteration and its use; raise InputError naming file, row and field."""
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            unit = check_header(reader.fieldnames or (), path)
            for number, row in enumerate(reader, start=2):
                yield read_row(row, unit, path, number)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"cannot be read: {error}", file=path) from None


def check_header(names: Sequence[str], path: str) -> str:
    """Find the column of times; raise InputError where a column is missing, unknown or doubled."""
    missing = [name for name in MUST if name not in names]
    times = [name for name in names if name in TIMES]
    unknown = [name for name in names if name not in (*MUST, *MAY, *TIMES)]
    if missing or len(times) != 1:
        needed = f"{', '.join(MUST)} and one of {', '.join(TIMES)}"
        raise InputError(f"the first row must name the columns {needed}", file=path, row=1)
    if unknown or len(set(names)) != len(names):
        raise InputError("is no column of a step log, or is there twice", file=path, row=1, field=(unknown or names)[0])
    return times[0]


def read_row(row: Row, unit: str, path: str, number: int) -> tuple[Sample, str]:
    """Read one row."""
    try:
        if None in row or None in row.values():  # csv's sign for too many and too few cells
            raise InputError("has not as many cells as the first row")
        use = (row.get("use") or "").strip()
        if use and use not in USES:
            raise InputError(f"{use!r} is neither train nor held_out", field="use")
        return Sample(read_work(row), read_seconds(row[unit], unit)), use
    except InputError as error:
        raise error.at(file=path, row=number) from None


def read_work(row: Row) -> Work:
    """Read what the iteration computed."""
    tokens, decodes, kv = (read_whole(row[name], name) for name in MUST)
    if decodes > tokens or tokens == 0:
        raise InputError(f"{decodes} decodes do not fit {tokens} tokens", field="tokens")
    if "chunks" in row:
        chunks = tuple(read_chunk(text) for text in row["chunks"].split())
        work = Work(chunks, decodes, kv)
        if count_tokens(work) != tokens:
            raise InputError(f"chunks and decodes make {count_tokens(work)} tokens, not {tokens}", field="chunks")
        return work
    history = read_whole(row["history"], "history") if "history" in row else 0
    return Work(((history, tokens - decodes),) if tokens > decodes else (), decodes, kv)


def read_chunk(text: str) -> tuple[int, int]:
    """Read "count@history" as (start, count)."""
    count, at, start = text.partition("@")
    if not at:
        raise InputError(f"{text!r} is not a chunk such as 512@4096", field="chunks")
    return read_whole(start, "chunks"), check_count(read_whole(count, "chunks"), "chunks")


def read_whole(text: str, field: str) -> int:
    """Read a whole number of at least 0."""
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) < 14):
        raise InputError(f"{text!r} is not a whole number of at least 0", field=field)
    return int(digits)


def read_seconds(text: str, unit: str) -> float:
    """Read a positive time."""
    try:
        value = float(text)
    except ValueError:
        raise InputError(f"{text!r} is not a number", field=unit) from None
    if not math.isfinite(value) or value <= 0:
        raise InputError(f"{text!r} is not a positive time", field=unit)
    return value * TIMES[unit]
