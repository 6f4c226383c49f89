"""What a format is: the fields that mark it, and the function that reads one of its rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from refsched.units import Ticks, Tokens
from refsched.workload.formats.cells import Record

REFUSED = "refused"
UNREAD = "unread"  # a note names them


class Row(NamedTuple):
    """Hold one request as its file gives it: times on the file's own clock, hash ids for all blocks of the prompt."""

    at: Ticks
    prompt: Tokens
    output: Tokens
    rounded: bool = False
    id: str = ""
    priority: int = 0
    group: str = ""
    cancel_at: Ticks | None = None
    hashes: tuple[int, ...] = ()
    block_tokens: Tokens = 0


class Skip(NamedTuple):
    """Say why a row is no request; such rows are counted in the notes."""

    reason: str


@dataclass(frozen=True, slots=True)
class Layout:
    """Name a format, its syntax, the fields it needs and may have, its field of time, and how a row is read."""

    name: str
    syntax: str  # csv or jsonl
    needs: tuple[str, ...]
    time: str  # "" where the format has lengths only
    read: Callable[[Record], Row | Skip]
    may: frozenset[str] = frozenset()
    others: str = UNREAD  # what becomes of all other fields: REFUSED or UNREAD
    note: str = ""
