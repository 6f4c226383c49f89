"""Stalls at the client: gaps above a threshold, playback that runs dry, and deadlines missed token by token [B15]."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

from refsched.metrics.columns import MISSING, Columns
from refsched.metrics.seen import list_gaps
from refsched.units import Ticks


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
    counts = columns.steps.count_gaps(columns.ranges.values())
    above = {gap: weight for gap, weight in counts.items() if gap > threshold}
    stalled = sum(gaps) + sum(gap * weight for gap, weight in above.items())
    pairs = zip(columns.get("first"), columns.get("last"), strict=True)
    decode = sum(last - first for first, last in pairs if first != MISSING)
    longest = columns.known("longest")
    return Stalls(
        threshold=threshold,
        requests=sum(gap > threshold for gap in longest),
        of=len(longest),
        gaps=len(gaps) + sum(above.values()),
        share_of_decode=Fraction(stalled, decode) if decode else None,
    )


def play_back(times: Sequence[Ticks], per_second: Fraction, buffered: int = 1) -> Underrun:
    """Read tokens at a steady rate from the moment `buffered` of them are there, waiting where the next is not.

    `times` has one entry for each token; waits are in ticks.
    """
    if len(times) < buffered:
        return Underrun(0, Fraction(0))
    each = 10**12 / per_second
    due = Fraction(times[buffered - 1])
    count, waited = 0, Fraction(0)
    for at in times:
        if at > due:
            count, waited, due = count + 1, waited + at - due, Fraction(at)
        due += each
    return Underrun(count, waited)


def count_deadlines(sent: Ticks, times: Sequence[Ticks], first: Ticks, between: Ticks) -> Deadlines:
    """Count deadlines as etalon does: early tokens earn slack, a late one misses every deadline it passed.

    `times` has one entry for each token. After a miss the deadlines start anew.
    """
    if not times:
        return Deadlines(0, 0)
    met = missed = slack = 0
    for place, gap in enumerate([times[0] - sent, *list_gaps(times)]):
        allowed = between if place else first
        if gap <= allowed + slack:
            met, slack = met + 1, slack + allowed - gap
            continue
        missed += (gap - slack) // between if place else 1 + (gap - slack - first) // between
        slack = 0
    return Deadlines(met, missed)


def list_token_times(columns: Columns, row: int) -> list[Ticks] | None:
    """Give a time for each token of a row, that of its chunk; None where a chunk does not say how many it has."""
    if row in columns.ranges:
        return [each.at for each in columns.ranges[row]]
    if columns.get("delivered")[row] == MISSING:
        return None
    first, begin, stop = columns.get("first")[row], columns.starts[row], columns.starts[row + 1]
    if first == MISSING:
        return []
    times = accumulate(columns.gaps[begin:stop], initial=first)
    counts = [columns.get("first_tokens")[row], *columns.held[begin:stop]]
    return [at for at, count in zip(times, counts, strict=True) for _ in range(count)]


def play_all(columns: Columns, per_second: Fraction) -> Playback:
    """Read every answer whose tokens are known at a steady rate, from its first token on."""
    known = [times for row in range(len(columns)) if (times := list_token_times(columns, row))]
    found = [play_back(times, per_second) for times in known]
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
    parts = [
        count_deadlines(sent, times, first, between)
        for row, sent in enumerate(columns.get("sent"))
        if sent != MISSING and (times := list_token_times(columns, row))
    ]
    return Deadlines(sum(part.met for part in parts), sum(part.missed for part in parts))
