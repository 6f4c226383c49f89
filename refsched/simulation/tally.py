"""Counting the maximal runs of repeating iterations, as a Timeline would hold them, without writing plans out."""

from collections.abc import Sequence
from typing import TypeAlias

from refsched.units import Ticks, Tokens

Chunk: TypeAlias = tuple[str, Tokens, Tokens]  # whose it is, its first token, their count


class RunTally:
    """Count runs of iterations that are told in order.

    `version` is raised whenever the membership changes. Two iterations belong to one run if they are back to back,
    have the same members, all or the same of them served, and chunks of which none reached the last known token and
    each goes on where it ended, with the same count.
    """

    def __init__(self) -> None:
        self.count = 0
        self.version = 0
        self.chunks: Sequence[Chunk] = ()  # of the last iteration
        self.last: tuple[Ticks, int, tuple[str, ...]] | None = (
            None  # its end, version and who was served, if it can repeat
        )

    def add(
        self, start: Ticks, end: Ticks, served: tuple[str, ...], chunks: Sequence[Chunk], emits: bool, plain: bool
    ) -> None:
        """Count an iteration (or several that repeat it) to the open run, or open another."""
        is_alike = plain and not emits and self.last == (start, self.version, served)
        self.count += not (is_alike and go_on(self.chunks, chunks))
        self.chunks = chunks
        self.last = (end, self.version, served) if plain and not emits else None


def go_on(before: Sequence[Chunk], after: Sequence[Chunk]) -> bool:
    """Tell whether each chunk goes on where it ended, with the same count."""
    if len(before) != len(after):
        return False
    pairs = zip(before, after, strict=True)
    return all((id, first + count, count) == chunk for (id, first, count), chunk in pairs)
