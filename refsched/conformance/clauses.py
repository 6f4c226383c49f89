"""The clauses as data: `spec/clauses.json`, which `scripts/clauses.py` writes from the chapters."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from refsched import spec
from refsched.errors import InputError

EDITION = 1


@dataclass(frozen=True, slots=True)
class Clause:
    """Hold one clause; `text` is the sentence that binds, `level` its one word in capitals."""

    id: str
    title: str
    level: str
    text: str
    chapter: str
    holds_for: str
    covers: tuple[str, ...]
    rationale: str
    examples: tuple[str, ...]


@cache
def read_clauses() -> Mapping[str, Clause]:
    """Read all clauses, in the order of the chapters."""
    pages = json.loads(spec.read_text("clauses.json"))["clauses"]
    return {page["id"]: Clause(**page | {name: tuple(page[name]) for name in ("covers", "examples")}) for page in pages}


def get_clause(id: str) -> Clause:
    """Find a clause; raise InputError naming the nearest ones if there is none."""
    clauses = read_clauses()
    if id in clauses:
        return clauses[id]
    chapter = id.partition("-")[0].upper()
    near = [each for each in clauses if each.startswith(f"{chapter}-")] or list(clauses)
    raise InputError(f"no clause {id!r}; there are {', '.join(near)}")
