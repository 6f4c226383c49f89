"""Progress of long work: a line that is rewritten on a terminal, nothing in a pipe."""

import sys
import time

from refsched.model import Event, Iteration
from refsched.simulation.observe import Observer

EVERY_ITERATIONS = 2000


class ProgressLine:
    """Show the share of requests that have ended, and the time left at the present pace."""

    def __init__(self, offered: int):
        self.offered = offered
        self.ended = 0
        self.began = time.monotonic()

    def on_event(self, event: Event) -> None:
        """Take no notice."""

    def on_iteration(self, iteration: Iteration) -> None:
        """Count who ended, and rewrite the line now and then."""
        self.ended += len(iteration.finished) + len(iteration.plan.rejected)
        if self.ended == self.offered:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        elif iteration.number % EVERY_ITERATIONS == EVERY_ITERATIONS - 1:
            print(f"\r\x1b[K{self.describe()}", end="", file=sys.stderr, flush=True)

    def describe(self) -> str:
        """Write the line."""
        elapsed = time.monotonic() - self.began
        left = f", about {elapsed * (self.offered - self.ended) / self.ended:.0f} s left" if self.ended else ""
        return f"{self.ended:,} of {self.offered:,} requests ended{left}"


def make_progress(offered: int) -> list[Observer]:
    """Give a progress line on a terminal, nothing elsewhere."""
    return [ProgressLine(offered)] if sys.stderr.isatty() else []
