"""Stalls at the client: gaps above a threshold, playback that runs dry, and deadlines missed token by token [B15]."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import TypeAlias

from refsched.metrics.columns import Columns
from refsched.metrics.compact import MISSING
from refsched.metrics.steps import count_gaps
from refsched.units import TICKS_PER_SECOND, Ticks, Tokens

Chunk: TypeAlias = tuple[Ticks, Tokens]  # when it came, and the tokens in it


@dataclass(frozen=True, slots=True)
class Stalls:
    """Hold how many requests stalled, of those that have a gap, and how much of decode time the stalls took."""

    threshold: Ticks
    requests: int
    of: int
    gaps: int
    share_of_decode: Fraction | None


@dataclass(frozen=True, slots=True)
class Underrun:
    """Hold how often and for how long a reader at a steady rate waited for the next token, after starting."""

    times: int
    waited: Fraction


@dataclass(frozen=True, slots=True)
class Playback:
    """Hold how many readers had to wait, how often, and for how many ticks together and at most."""

    per_second: Fraction
    requests: int
    of: int
    waits: int
    waited: Fraction
    longest: Fraction


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Hold the tokens delivered by their deadline, and the deadlines that passed without one."""

    met: int
    missed: int

    @property
    def miss_rate(self) -> Fraction | None:
        """Give the share of deadlines missed; None of none."""
        total = self.met + self.missed
        return Fraction(self.missed, total) if total else None


def count_stalls(columns: Columns, threshold: Ticks) -> Stalls:
    """Count the gaps above a threshold, the requests that have one, and their share of all decode time."""
    gaps = [gap for gap in columns.gaps if gap > threshold]
    counted = [pair for counts in count_gaps(columns.ranges) for pair in counts.items() if pair[0] > threshold]
    stalled = sum(gaps) + sum(gap * weight for gap, weight in counted)
    pairs = zip(columns.get("first"), columns.get("last"), strict=True)
    decode = sum(last - first for first, last in pairs if first != MISSING)
    longest = columns.known("longest")
    return Stalls(
        threshold=threshold,
        requests=sum(gap > threshold for gap in longest),
        of=len(longest),
        gaps=len(gaps) + sum(weight for _, weight in counted),
        share_of_decode=Fraction(stalled, decode) if decode else None,
    )


def play_back(chunks: Iterable[Chunk], per_second: Fraction, buffered: Tokens = 1) -> Underrun:
    """Read tokens at a steady rate from the moment `buffered` of them are there, waiting where the next is not.

    Chunks are in order; waits are in ticks.
    """
    each = TICKS_PER_SECOND / per_second
    due: Fraction | None = None  # when the next token is to be there; None before the reader starts
    held = count = 0
    waited = Fraction(0)
    for at, tokens in chunks:
        held += tokens
        if due is None:
            due = at + held * each if held >= buffered else None
            continue
        if at > due:
            count, waited, due = count + 1, waited + at - due, Fraction(at)
        due += tokens * each
    return Underrun(count, waited)


def count_deadlines(sent: Ticks, chunks: Iterable[Chunk], first: Ticks, between: Ticks) -> Deadlines:
    """Count deadlines as etalon does: early tokens earn slack, a late one misses every deadline it passed.

    Chunks are in order. After a miss the deadlines start anew.
    """
    met = missed = slack = 0
    before, is_first = sent, True
    for at, tokens in chunks:
        gap, allowed = at - before, first if is_first else between
        if gap <= allowed + slack:
            met, slack = met + 1, slack + allowed - gap
        else:
            missed += 1 + (gap - slack - first) // between if is_first else (gap - slack) // between
            slack = 0
        met, slack = met + tokens - 1, slack + (tokens - 1) * between  # the rest of the chunk is early
        before, is_first = at, False
    return Deadlines(met, missed)


def list_chunks(columns: Columns, row: int) -> Iterable[Chunk] | None:
    """Give the chunks of a row; None where there is none, or where one does not say how many tokens it has."""
    if row in columns.ranges:
        return ((each.at, 1) for each in columns.ranges[row])
    first, begin, stop = columns.get("first")[row], columns.starts[row], columns.starts[row + 1]
    if MISSING in (first, columns.get("delivered")[row]):
        return None
    times = accumulate(columns.gaps[begin:stop], initial=first)
    return zip(times, [columns.get("first_tokens")[row], *columns.held[begin:stop]], strict=True)


def play_all(columns: Columns, per_second: Fraction) -> Playback:
    """Read every answer whose tokens are known at a steady rate, from its first token on."""
    every = (list_chunks(columns, row) for row in range(len(columns)))
    found = [play_back(chunks, per_second) for chunks in every if chunks is not None]
    return Playback(
        per_second=per_second,
        requests=sum(each.times > 0 for each in found),
        of=len(found),
        waits=sum(each.times for each in found),
        waited=sum((each.waited for each in found), Fraction(0)),
        longest=max((each.waited for each in found), default=Fraction(0)),
    )


def count_all_deadlines(columns: Columns, first: Ticks, between: Ticks) -> Deadlines:
    """Add up the deadlines of every request that knows its send and its tokens."""
    rows = ((sent, list_chunks(columns, row)) for row, sent in enumerate(columns.get("sent")) if sent != MISSING)
    parts = [count_deadlines(sent, chunks, first, between) for sent, chunks in rows if chunks is not None]
    return Deadlines(sum(part.met for part in parts), sum(part.missed for part in parts))
