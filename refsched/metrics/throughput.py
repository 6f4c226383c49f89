"""Throughput and backlog: what was delivered in the window, and how many requests were in the system [A11, A22]."""

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from refsched.metrics.columns import Columns
from refsched.metrics.compact import MISSING, sort_packed
from refsched.metrics.window import NEVER_SENT, Window, get_window
from refsched.units import Ticks, Tokens

FOREVER: Ticks = (1 << 63) - 1
Stays: TypeAlias = tuple[Sequence[Ticks], Sequence[Ticks], Sequence[Ticks]]

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


def compute_throughput(columns: Columns, window: Window, in_window: Tokens | None = None) -> Throughput:
    """Compute the rates of completed requests, of their output tokens, and of their input and output tokens.

    `in_window` is the number of tokens received in the window; without it, all that these requests received count.
    """
    completed = columns.select_completed()
    output, prompt = sum_tokens(completed, "tokens"), sum_tokens(completed, "prompt")
    seconds = window.seconds()
    if not seconds:
        return Throughput(None, None, None)
    total = None if output is None or prompt is None else output + prompt
    delivered = sum_delivered(columns) if in_window is None else in_window
    return Throughput(
        divide(output, seconds), divide(total, seconds), len(completed) / seconds, divide(delivered, seconds)
    )


def sum_tokens(columns: Columns, name: str) -> Tokens | None:
    """Add up a column of tokens; None where a row does not know its count."""
    values = columns.get(name)
    return None if MISSING in values else sum(values)


def sum_delivered(columns: Columns) -> Tokens | None:
    """Add up what the chunks held, or the total of a record that does not say it; None where that is not known."""
    pairs = zip(columns.get("delivered"), columns.get("tokens"), strict=True)
    counts = [tokens if delivered == MISSING else delivered for delivered, tokens in pairs]
    return None if MISSING in counts else sum(counts)


def divide(count: int | None, seconds: Fraction) -> Fraction | None:
    """Divide a count that may be unknown."""
    return None if count is None else count / seconds


def compute_backlog(columns: Columns) -> Backlog:
    """Count how many requests were in the system; one that never ended stays in it."""
    sent, answered, ended = map(sort_packed, list_stays(columns))
    at_last = len(ended) - bisect_right(ended, sent[-1]) if sent else 0
    return Backlog(count_peak(sent, ended), at_last, count_peak(sent, answered))


def list_stays(columns: Columns) -> Stays:
    """Give when each request that was sent was sent, got its first token and ended."""
    sent, first, ended = map(columns.get, ("sent", "first", "ended"))
    if NEVER_SENT not in columns.outcomes and all(MISSING not in column for column in (sent, first, ended)):
        return sent, first, ended
    stays = array("q"), array("q"), array("q")
    for code, start, token, stop in zip(columns.outcomes, sent, first, ended, strict=True):
        if start != MISSING and code != NEVER_SENT:
            left = FOREVER if stop == MISSING else stop
            for column, at in zip(stays, (start, left if token == MISSING else token, left), strict=True):
                column.append(at)
    return stays


def count_peak(starts: Sequence[Ticks], stops: Sequence[Ticks]) -> int:
    """Count the most stays that overlap, given their beginnings in order and their ends in order.

    One that ends when another begins does not overlap it.
    """
    peak = over = 0
    for begun, start in enumerate(starts, 1):
        while over < begun and stops[over] <= start:
            over += 1
        if begun - over > peak:
            peak = begun - over
    return peak
