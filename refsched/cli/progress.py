"""Progress of long work: a line that is rewritten on a terminal, nothing in a pipe."""

import sys
import time
from collections.abc import Callable

EVERY = 200  # requests


class ProgressLine:
    """Show how many requests have ended and, where it is known how many come, the time left at the present pace."""

    def __init__(self, offered: int | None):
        self.offered = offered
        self.ended = 0
        self.began = time.monotonic()

    def __call__(self) -> None:
        """Count one more that ended, and rewrite the line now and then."""
        self.ended += 1
        if self.ended == self.offered:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        elif self.ended % EVERY == 0:
            print(f"\r\x1b[K{self.describe()}", end="", file=sys.stderr, flush=True)

    def describe(self) -> str:
        """Write the line."""
        elapsed = time.monotonic() - self.began
        if self.offered is None:
            return f"{self.ended:,} requests ended, {self.ended / elapsed:,.0f} a second"
        left = elapsed * (self.offered - self.ended) / self.ended
        return f"{self.ended:,} of {self.offered:,} requests ended, about {left:.0f} s left"


def make_progress(offered: int | None) -> Callable[[], None] | None:
    """Give a progress line on a terminal, nothing elsewhere."""
    return ProgressLine(offered) if sys.stderr.isatty() else None


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
            print(f"\r\x1b[K{self.seen:,} of {self.most:,} {self.noun}", end="", file=sys.stderr, flush=True)

    def finish(self) -> None:
        """Wipe the line."""
        if self.shows:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
