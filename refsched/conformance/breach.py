"""A breach: the clause that was broken, where, and why, in a sentence."""

from collections.abc import Iterable
from dataclasses import dataclass

from refsched.model import Entry


@dataclass(frozen=True, slots=True)
class Breach:
    """Name the first place where a clause is broken; `because` is a whole sentence without its full stop."""

    clause: str
    iteration: int
    because: str

    def sentence(self) -> str:
        """Say it as reports print it."""
        return f"{self.because} [{self.clause}]"


def list_tokens(entries: Iterable[Entry]) -> str:
    """Show planned requests with their tokens, the first few of many."""
    return shorten_list([f"{id}:{tokens}" for id, _, tokens in entries])


def shorten_list(shown: list[str], most: int = 8) -> str:
    """Join names, the first few of many."""
    return ", ".join(shown[:most]) + (f", … {len(shown) - most} more" if len(shown) > most else "")


def count(number: int, noun: str) -> str:
    """Write a number with its noun, in the singular where it is one."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
