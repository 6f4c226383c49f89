"""Progress of long work: a line that is rewritten on a terminal, nothing in a pipe."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from refsched.record import Record

EVERY = 200  # requests


class ProgressLine:
    """Show how many requests have ended and, where it can be told how many come, the time left at the present pace."""

    def __init__(self, estimate_total: Callable[[], int | None]):
        self.estimate_total = estimate_total
        self.ended = 0
        self.began = time.monotonic()

    def __call__(self) -> None:
        """Count one more that ended, and rewrite the line now and then."""
        self.ended += 1
        if self.ended % EVERY == 0:
            show(self.describe())

    def describe(self) -> str:
        """Write the line."""
        elapsed, total = time.monotonic() - self.began, self.estimate_total()
        if total is None:
            return f"{self.ended:,} requests ended, {self.ended / max(elapsed, 1e-3):,.0f} a second"
        left = elapsed * max(total - self.ended, 0) / self.ended
        return f"{self.ended:,} of {total:,} requests ended, about {left:.0f} s left"


def show(text: str) -> None:
    """Rewrite the line; no text wipes it."""
    print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


@contextmanager
def follow_requests(estimate_total: Callable[[], int | None]) -> Iterator[ProgressLine | None]:
    """Give a progress line on a terminal, nothing elsewhere; wipe it in the end."""
    if not sys.stderr.isatty():
        yield None
        return
    try:
        yield ProgressLine(estimate_total)
    finally:
        show("")


def tell_when_over(records: Iterable[Record], line: ProgressLine | None) -> Iterator[Record]:
    """Pass records on; when all have come, say that they are now measured."""
    yield from records
    if line is not None:
        show(f"{line.ended:,} requests ended; measuring")


class ProgressCount:
    """Count things of one kind, and rewrite a line with their number on a terminal."""

    def __init__(self, most: int, noun: str):
        self.most, self.noun = most, noun
        self.seen = 0
        self.shows = sys.stderr.isatty()

    def __call__(self) -> None:
        """Count one more."""
        self.seen += 1
        if self.shows and self.seen % 20 == 0:
            show(f"{self.seen:,} of {self.most:,} {self.noun}")

    def finish(self) -> None:
        """Wipe the line."""
        if self.shows:
            show("")
