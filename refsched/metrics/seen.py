"""What one record shows, in one pass over its deliveries: the times that every definition is made of.

Only chunks that carry tokens, content or reasoning, take part in tokens and gaps: a role-only chunk, a chunk of no
tokens, the usage chunk and the end of the stream do not [B14]. What a chunk of no tokens waited for is part of the
gap before the next that has some.
"""

from collections.abc import Sequence
from itertools import pairwise
from operator import sub
from typing import NamedTuple

from refsched.record import Arrivals, IterationRanges, Record
from refsched.units import Ticks, Tokens

KINDS = ("content", "reasoning", "empty", "usage", "end")
UNKNOWN = 0  # the tokens of a chunk that has some, but does not say how many


class Chunks(NamedTuple):
    """Hold the chunks of one record that carry tokens, and the times of those that do not."""

    times: Sequence[Ticks] = ()
    tokens: Sequence[int] = ()  # UNKNOWN where it is not told
    reasoning: Sequence[bool] = ()  # empty where there is none
    opened: Ticks | None = None  # the first chunk, tokens or not
    usage: Ticks | None = None
    end: Ticks | None = None

    def first_of(self, is_reasoning: bool) -> Ticks | None:
        """Give the time of the first chunk of content, or of reasoning."""
        if not self.reasoning:
            return None if is_reasoning or not self.times else self.times[0]
        found = (at for at, each in zip(self.times, self.reasoning, strict=True) if each is is_reasoning)
        return next(found, None)

    def count_tokens(self) -> Tokens | None:
        """Count the tokens; None where a chunk does not say how many it has."""
        return None if UNKNOWN in self.tokens else sum(self.tokens)


def get_chunks(record: Record) -> Chunks:
    """Find the chunks of a record whose deliveries are written out."""
    deliveries = record.deliveries
    if isinstance(deliveries, Arrivals):
        times, tokens, kinds = deliveries.times, deliveries.tokens, deliveries.kinds
        if kinds is None and times and all(tokens):
            return Chunks(times, tokens, (), times[0])  # type: ignore[arg-type]  # none of them is None or 0
    return sort_chunks(record)


def sort_chunks(record: Record) -> Chunks:
    """Sort deliveries by what they carry."""
    times: list[Ticks] = []
    tokens: list[int] = []
    reasoning: list[bool] = []
    last: dict[str, Ticks] = {}
    opened = None
    for at, count, kind in record.deliveries:
        if kind in ("usage", "end"):
            last[kind] = at
            continue
        opened = at if opened is None else opened
        if kind != "empty" and count != 0:
            times.append(at)
            tokens.append(UNKNOWN if count is None else count)
            reasoning.append(kind == "reasoning")
    return Chunks(times, tokens, reasoning if any(reasoning) else (), opened, last.get("usage"), last.get("end"))


class Seen(NamedTuple):
    """Hold the times of one record on its own clock, and its token counts; None is what it does not show."""

    planned: Ticks | None
    sent: Ticks | None
    ended: Ticks | None
    prompt: Tokens | None
    tokens: Tokens | None
    first_tokens: Tokens | None  # in the first chunk that carries tokens
    opened: Ticks | None
    first: Ticks | None
    first_content: Ticks | None
    first_reasoning: Ticks | None
    last: Ticks | None
    usage: Ticks | None
    stream_end: Ticks | None
    delivered: Tokens | None  # counted in the chunks, whatever `tokens` was taken from
    queued: Ticks | None
    scheduled: Ticks | None
    server_first: Ticks | None
    timeout: Ticks | None


def look_at(record: Record, chunks: Chunks) -> Seen:
    """Collect what a record shows."""
    times, server = chunks.times, record.server
    delivered = chunks.count_tokens()
    return Seen(
        record.planned,
        record.sent,
        record.ended,
        record.prompt_tokens,
        choose_tokens(record, delivered if times else 0),
        (chunks.tokens[0] or None) if times else None,
        chunks.opened,
        times[0] if times else None,
        chunks.first_of(False),
        chunks.first_of(True),
        times[-1] if times else None,
        chunks.usage,
        record.ended if chunks.end is None else chunks.end,
        delivered,
        server.queued,
        server.scheduled,
        server.first_token,
        record.timeout,
    )


def look_at_ranges(record: Record, deliveries: IterationRanges) -> Seen:
    """Collect what a simulated record shows, without writing out its deliveries."""
    ends, ranges, server = deliveries.ends, deliveries.ranges, record.server
    first = ends[ranges[0][0]] if ranges else None
    last = ends[ranges[-1][1] - 1] if ranges else None
    count = len(deliveries)
    return Seen(
        record.planned,
        record.sent,
        record.ended,
        record.prompt_tokens,
        choose_tokens(record, count),
        1 if ranges else None,
        first,
        first,
        first,
        None,
        last,
        None,
        record.ended,
        count,
        server.queued,
        server.scheduled,
        server.first_token,
        record.timeout,
    )


def choose_tokens(record: Record, delivered: Tokens | None) -> Tokens | None:
    """Choose the count of output tokens: a total that was told, unless it was only asked for, or the chunks' sum."""
    if record.output_tokens is not None and record.token_source != "requested":
        return record.output_tokens
    return delivered


def list_gaps(times: Sequence[Ticks]) -> list[Ticks]:
    """Give the time between each chunk and the next."""
    return list(map(sub, times[1:], times))


def list_range_gaps(deliveries: IterationRanges) -> list[Ticks]:
    """Give the gaps from the last delivery of each range to the first of the next."""
    ends, ranges = deliveries.ends, deliveries.ranges
    if len(ranges) < 2:
        return []
    return [ends[after[0]] - ends[before[1] - 1] for before, after in pairwise(ranges)]
