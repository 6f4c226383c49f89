"""Windows: which time is counted, and which requests and tokens are attributed to it, by explicit rules [A19, B16].

A request is sent in a window when start <= sent < stop, and ends in it when start < ended <= stop; so windows side by
side share nothing and leave nothing out.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

from refsched.errors import InputError
from refsched.metrics.columns import OUTCOMES, Columns
from refsched.metrics.compact import MISSING, sort_packed, to_array
from refsched.record import Outcome
from refsched.units import Ticks, Tokens, parse_decimal, parse_time, to_seconds

RULES = ("start-in", "end-in", "overlap")
NEVER_SENT = OUTCOMES.index(Outcome.REJECTED)


@dataclass(frozen=True, slots=True)
class Window:
    """Bound a measurement in time."""

    start: Ticks
    stop: Ticks

    def seconds(self) -> Fraction:
        """Give its length in seconds."""
        return to_seconds(self.stop - self.start)


@dataclass(frozen=True, slots=True)
class Choice:
    """Say which time to count, and by which rule requests are attributed to it.

    The time is between ramp and drain (`steady`), the longest at a share of the peak, or from … to, counted from the
    first send.
    """

    kind: str  # steady | level | between
    share: Fraction = Fraction(1)
    start: Ticks = 0
    stop: Ticks = 0
    rule: str = "start-in"


def parse_choice(text: str, rule: str) -> Choice:
    """Read "steady", "level=0.8" or "10s..60s"; raise InputError for anything else."""
    kind, _, share = text.partition("=")
    start, dots, stop = text.partition("..")
    try:
        if text == "steady":
            return Choice("steady", rule=rule)
        if kind == "level" and 0 < parse_decimal(share) <= 1:
            return Choice("level", Fraction(parse_decimal(share)), rule=rule)
        if dots and 0 <= parse_time(start).ticks < parse_time(stop).ticks:
            return Choice("between", start=parse_time(start).ticks, stop=parse_time(stop).ticks, rule=rule)
    except InputError as error:
        raise error.at(field="--window") from None
    raise InputError(f"{text!r} is not steady, level=SHARE or START..STOP", field="--window")


def choose_window(columns: Columns, choice: Choice) -> Window:
    """Find the chosen window in a run; raise InputError where it has none."""
    if choice.kind == "between":
        first = min(columns.known("sent"), default=0)
        return Window(first + choice.start, first + choice.stop)
    found = (
        get_steady_window(find_edges(columns)) if choice.kind == "steady" else get_level_window(columns, choice.share)
    )
    if found is None:
        raise InputError(
            "there is no such window: nothing is between the first end and the last send", field="--window"
        )
    return found


def get_window(columns: Columns) -> Window:
    """Find the window of a whole run: from the first send to the last end, delivery or expired timeout [B16]."""
    start = min(columns.known("sent"), default=0)
    stops = (max(columns.known(name), default=start) for name in ("ended", "last", "usage"))
    return Window(start, max(start, *stops, *list_expired(columns)))


def list_expired(columns: Columns) -> list[Ticks]:
    """Give when the timeouts of requests that ran into one expired."""
    code = OUTCOMES.index(Outcome.TIMEOUT)
    if code not in columns.outcomes:
        return []
    rows = zip(columns.outcomes, columns.get("sent"), columns.get("timeout"), strict=True)
    return [sent + timeout for each, sent, timeout in rows if each == code and MISSING not in (sent, timeout)]


def get_level_window(columns: Columns, share: Fraction) -> Window | None:
    """Find the longest time in which at least `share` of the peak was in the system: SGLang's steady-state rule."""
    levels = list_levels(columns)
    wanted = -(-share.numerator * max((level for _, level in levels), default=0) // share.denominator)
    best: Window | None = None
    start: Ticks | None = None
    for at, level in levels:
        if level >= wanted:
            start = at if start is None else start
        elif start is not None:
            if best is None or at - start > best.stop - best.start:
                best = Window(start, at)
            start = None
    return best


def list_levels(columns: Columns) -> list[tuple[Ticks, int]]:
    """Give how many requests were in the system from each time on at which that changed."""
    changes: dict[Ticks, int] = {}
    for code, sent, ended in zip(columns.outcomes, columns.get("sent"), columns.get("ended"), strict=True):
        if sent != MISSING and code != NEVER_SENT:
            changes[sent] = changes.get(sent, 0) + 1
            if ended != MISSING:
                changes[ended] = changes.get(ended, 0) - 1
    times = sorted(changes)
    return list(zip(times, accumulate(map(changes.__getitem__, times)), strict=True))


def find_rows(columns: Columns, window: Window, rule: str) -> Sequence[int]:
    """Number the rows that a rule attributes to a window; raise InputError for an unknown rule."""
    pairs = enumerate(zip(columns.get("sent"), columns.get("ended"), strict=True))
    start, stop = window.start, window.stop
    if rule == "start-in":
        return [row for row, (sent, _) in pairs if start <= sent < stop and sent != MISSING]
    if rule == "end-in":
        return [row for row, (_, ended) in pairs if start < ended <= stop and ended != MISSING]
    if rule == "overlap":
        return [row for row, (sent, ended) in pairs if MISSING != sent < stop and (ended == MISSING or ended > start)]
    raise InputError(f"{rule!r} is not one of {', '.join(RULES)}", field="--attribute")


@dataclass(frozen=True, slots=True)
class Edges:
    """Hold when requests were sent and ended, each in order, to count quickly what lies in a window."""

    sent: Sequence[Ticks]
    ended: Sequence[Ticks]
    ended_after_send: Sequence[Ticks]  # of those whose send is known

    def count(self, window: Window) -> dict[str, int]:
        """Count the requests that each rule attributes to a window."""
        before_stop = bisect_left(self.sent, window.stop)
        return {
            "start-in": max(before_stop - bisect_left(self.sent, window.start), 0),
            "end-in": max(bisect_right(self.ended, window.stop) - bisect_right(self.ended, window.start), 0),
            "overlap": max(before_stop - bisect_right(self.ended_after_send, window.start), 0),
        }


def find_edges(columns: Columns) -> Edges:
    """Put the sends and the ends of all requests in order."""
    sent, ended = columns.sort_known("sent"), columns.sort_known("ended")
    if len(sent) == len(columns):
        return Edges(sent, ended, ended)
    pairs = zip(columns.get("sent"), columns.get("ended"), strict=True)
    return Edges(sent, ended, sort_packed(to_array(end for send, end in pairs if MISSING not in (send, end))))


def get_steady_window(edges: Edges) -> Window | None:
    """Find the time between ramp and drain: from the first end to the last send; None where there is none."""
    if not edges.sent or not edges.ended or edges.ended[0] >= edges.sent[-1]:
        return None
    return Window(edges.ended[0], edges.sent[-1])


def count_tokens_in(columns: Columns, window: Window) -> Tokens:
    """Count the tokens received in a window, whoever they belong to and however those requests ended.

    A record that does not say what its chunks hold counts with its total, where all of it lies inside.
    """
    total = 0
    rows = zip(columns.get("first"), columns.get("last"), columns.get("delivered"), columns.get("tokens"), strict=True)
    for row, (first, last, delivered, tokens) in enumerate(rows):
        if first == MISSING or last <= window.start or first > window.stop:
            continue
        if first > window.start and last <= window.stop:
            total += max(delivered if delivered != MISSING else tokens, 0)
        elif delivered != MISSING:
            total += count_crossing(columns, row, window)
    return total


def count_crossing(columns: Columns, row: int, window: Window) -> Tokens:
    """Count the tokens in a window of a record that reaches across an edge."""
    if row in columns.ranges:
        deliveries = columns.ranges[row]
        low, high = (deliveries.ends.count_ended_by(at) for at in (window.start, window.stop))
        return sum(max(0, min(stop, high) - max(first, low)) for first, stop in deliveries.ranges)
    at = columns.get("first")[row]
    count = columns.get("first_tokens")[row] if window.start < at else 0
    for place in range(columns.starts[row], columns.starts[row + 1]):
        at += columns.gaps[place]
        if window.start < at <= window.stop:
            count += columns.held[place]
    return count
