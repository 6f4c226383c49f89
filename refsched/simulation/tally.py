"""Counting the maximal runs of repeating iterations, as a Timeline would hold them, without writing plans out."""

from refsched.model import Entry
from refsched.units import Ticks


class RunTally:
    """Count runs of iterations that are told in order.

    `version` is raised whenever the membership changes. Two iterations belong to one run if they are back to back,
    have the same members, all or the same of them served, and chunks of which none reached the last known token and
    each goes on where it ended, with the same count.
    """

    def __init__(self) -> None:
        self.count = 0
        self.version = 0
        self.last: tuple[Ticks, int, tuple[str, ...], tuple[Entry, ...]] | None = None

    def add(
        self, start: Ticks, end: Ticks, served: tuple[str, ...], chunks: tuple[Entry, ...], emits: bool, plain: bool
    ) -> None:
        """Count an iteration (or several that repeat it) to the open run, or open another."""
        goes_on = plain and not emits and self.last == (start, self.version, served, chunks)
        self.count += not goes_on
        moved = tuple([Entry(id, first + count, count) for id, first, count in chunks]) if chunks else ()
        self.last = (end, self.version, served, moved) if plain and not emits else None
