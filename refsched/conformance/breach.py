"""A breach: the clause that was broken, where, and why, in a sentence."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Breach:
    """Name the first place where a clause is broken; `because` is a whole sentence without its full stop."""

    clause: str
    iteration: int
    because: str

    def sentence(self) -> str:
        """Say it as reports print it."""
        return f"{self.because} [{self.clause}]"


def list_tokens(entries: object) -> str:
    """Show planned requests with their tokens, the first few of many."""
    shown = [f"{id}:{count}" for id, _, count in entries]  # type: ignore[attr-defined]
    return shorten_list(shown)


def shorten_list(shown: list[str], most: int = 8) -> str:
    """Join names, the first few of many."""
    return ", ".join(shown[:most]) + (f", … {len(shown) - most} more" if len(shown) > most else "")
