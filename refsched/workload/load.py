"""The one word for a workload on the command line: a scenario's name, a generator's text, or the path of a file."""

import os
import re
from dataclasses import replace

from refsched.errors import InputError
from refsched.model import check_count
from refsched.workload.formats import ReadOptions, read_workload
from refsched.workload.formats.servegen import is_servegen
from refsched.workload.generate import KINDS, generate
from refsched.workload.offer import Workload
from refsched.workload.scenarios import SCENARIOS, get_scenario
from refsched.workload.servegen import draw_servegen
from refsched.workload.settings import Settings

_GENERATOR = re.compile(r"\s*([A-Za-z][A-Za-z0-9_-]*):")


def load_workload(text: str, seed: int = 0, first: int | None = None, ties: str = "raw") -> Workload:
    """Make or read the workload that the text names; raise InputError if it names none.

    A scenario's name goes before a file's (write ./NAME for the file). `first` keeps that many requests; `ties` says
    what a file's equal times become: `raw`, `spread` or `scatter`.
    """
    options = ReadOptions(first, ties, seed)
    kind = split_kind(text)
    if text in SCENARIOS:
        return keep_first(get_scenario(text, seed), first)
    if kind in KINDS:
        return keep_first(generate(text, seed), first)
    if not is_file(text):
        raise InputError(_explain(text, kind))
    if is_servegen(text):
        return _draw_trace(text, seed, first)
    return read_workload(text, options)


def split_kind(text: str) -> str | None:
    """Give the word before a colon, which names a generator's kind if it is one."""
    kind = _GENERATOR.match(text)
    return kind[1] if kind else None


def is_file(text: str) -> bool:
    """Tell whether the text names a file, and neither a scenario nor a generator."""
    return text not in SCENARIOS and split_kind(text) not in KINDS and os.path.exists(text)


def keep_first(workload: Workload, first: int | None) -> Workload:
    """Keep the first requests of a workload, and say so where some are left out."""
    if first is None or first >= len(workload.offers):
        return workload
    check_count(first, "first")
    notes = (*workload.notes, f"Only the first {first} of {len(workload.offers)} requests are kept.")
    return replace(workload, offers=workload.offers[:first], notes=notes, source={**workload.source, "first": first})


def _draw_trace(path: str, seed: int, first: int | None) -> Workload:
    limit = {} if first is None else {"n": str(first)}
    try:
        return draw_servegen(path, Settings({"trace": path, **limit}), seed)
    except InputError as error:
        raise error.at(file=path) from None


def _explain(text: str, kind: str | None) -> str:
    shown = text if len(text) <= 80 else f"{text[:80]}…"
    if kind:
        return f"{shown!r}: {kind!r} is no kind of generator ({', '.join(KINDS)}), and there is no such file"
    return f"{shown!r} is no file, no scenario ({', '.join(SCENARIOS)}) and no generator (poisson:rate=4,n=1000,…)"
