"""Throughput and backlog: what was delivered in the window, and how many requests were in the system [A11, A22]."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from refsched.metrics.columns import MISSING, Columns
from refsched.metrics.window import NEVER_SENT, Window, get_window
from refsched.units import Ticks, Tokens

__all__ = ["Backlog", "Throughput", "Window", "compute_backlog", "compute_throughput", "count_peak", "get_window"]


@dataclass(frozen=True, slots=True)
class Throughput:
    """Give rates per second of a window; None where the window has no length, or tokens are not known.

    All are over completed requests, but for `delivered_tokens`: those reached the client whatever came after.
    """

    output_tokens: Fraction | None
    total_tokens: Fraction | None
    requests: Fraction | None
    delivered_tokens: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Backlog:
    """Count requests sent and not ended: at most, and when the last one was sent; and those without a first token."""

    peak: int
    at_last_send: int
    peak_without_first_token: int


def compute_throughput(columns: Columns, window: Window) -> Throughput:
    """Compute the rates of completed requests, of their output tokens, and of their input and output tokens."""
    completed = columns.select_completed()
    output, prompt = sum_tokens(completed, "tokens"), sum_tokens(completed, "prompt")
    seconds = window.seconds()
    if not seconds:
        return Throughput(None, None, None)
    total = None if output is None or prompt is None else output + prompt
    delivered = sum_tokens(columns, "delivered")
    return Throughput(
        divide(output, seconds), divide(total, seconds), len(completed) / seconds, divide(delivered, seconds)
    )


def sum_tokens(columns: Columns, name: str) -> Tokens | None:
    """Add up a column of tokens; None where a row does not know its count."""
    values = columns.get(name)
    return None if MISSING in values else sum(values)


def divide(count: int | None, seconds: Fraction) -> Fraction | None:
    """Divide a count that may be unknown."""
    return None if count is None else count / seconds


def compute_backlog(columns: Columns) -> Backlog:
    """Count how many requests were in the system; one that never ended stays in it."""
    rows = zip(columns.outcomes, columns.get("sent"), columns.get("first"), columns.get("ended"), strict=True)
    sent = [(start, first, stop) for code, start, first, stop in rows if start != MISSING and code != NEVER_SENT]
    last = max((start for start, _, _ in sent), default=0)
    at_last = sum(stop == MISSING or stop > last for _, _, stop in sent)
    waits = ((start, stop if first == MISSING else first) for start, first, stop in sent)
    return Backlog(count_peak((start, stop) for start, _, stop in sent), at_last, count_peak(waits))


def count_peak(stays: Iterable[tuple[Ticks, Ticks]]) -> int:
    """Count the most stays that overlap; one that ends when another begins does not overlap it."""
    changes: list[Ticks] = []
    for start, stop in stays:
        changes.append(start * 2 + 1)  # at one time, ends come before beginnings
        if stop != MISSING:
            changes.append(stop * 2)
    level = peak = 0
    for change in sorted(changes):
        if change & 1:
            level += 1
            peak = max(peak, level)
        else:
            level -= 1
    return peak
