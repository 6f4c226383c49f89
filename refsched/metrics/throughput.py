"""Throughput and backlog: what was delivered in the window, and how many requests were in the system [A11, A22]."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from refsched.metrics.latency import count_tokens, get_first
from refsched.record import Outcome, Record
from refsched.units import Ticks, to_seconds


@dataclass(frozen=True, slots=True)
class Window:
    """Bound a measurement in time: from the first send to the last end or delivery."""

    start: Ticks
    stop: Ticks

    def seconds(self) -> Fraction:
        """Give its length in seconds."""
        return to_seconds(self.stop - self.start)


@dataclass(frozen=True, slots=True)
class Throughput:
    """Give rates per second of a window; None where the window has no length."""

    output_tokens: Fraction | None
    total_tokens: Fraction | None
    requests: Fraction | None


@dataclass(frozen=True, slots=True)
class Backlog:
    """Count requests sent and not ended: at most, and when the last one was sent; and those without a first token."""

    peak: int
    at_last_send: int
    peak_without_first_token: int


def get_window(records: Sequence[Record]) -> Window:
    """Find the window of a whole run: from the first send to the last end."""
    sent = [record.sent for record in records if record.sent is not None]
    ended = [record.ended for record in records if record.ended is not None]
    start = min(sent, default=0)
    return Window(start, max(ended, default=start))


def compute_throughput(records: Iterable[Record], window: Window) -> Throughput:
    """Compute the rates of completed requests, of their output tokens, and of their input and output tokens."""
    completed = [record for record in records if record.outcome is Outcome.COMPLETED]
    output = sum(count_tokens(record) or 0 for record in completed)
    total = output + sum(record.prompt_tokens or 0 for record in completed)
    seconds = window.seconds()
    if not seconds:
        return Throughput(None, None, None)
    return Throughput(Fraction(output) / seconds, Fraction(total) / seconds, Fraction(len(completed)) / seconds)


def compute_backlog(records: Sequence[Record]) -> Backlog:
    """Count how many requests were in the system; one that never ended stays in it."""
    sent = [record for record in records if record.sent is not None and record.outcome is not Outcome.REJECTED]
    last = max((record.sent for record in sent if record.sent is not None), default=0)
    at_last = sum(record.ended is None or record.ended > last for record in sent)
    stays = [(record.sent or 0, record.ended) for record in sent]
    waits = [(record.sent or 0, get_first(record) or record.ended) for record in sent]
    return Backlog(count_peak(stays), at_last, count_peak(waits))


def count_peak(stays: Iterable[tuple[Ticks, Ticks | None]]) -> int:
    """Count the most stays that overlap; one that ends when another begins does not overlap it."""
    changes: list[tuple[Ticks, int]] = []
    for start, stop in stays:
        changes.append((start, 1))
        if stop is not None:
            changes.append((stop, -1))
    level = peak = 0
    for _, change in sorted(changes):
        level += change
        peak = max(peak, level)
    return peak
