"""Making Records from what result files hold: seconds as decimals become ticks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate

from refsched.record import Arrivals, Deliveries, Outcome, Record, Server
from refsched.results.run import CUT
from refsched.units import LONGEST, TICKS_PER_SECOND, Ticks, round_to_ticks

Number = Decimal | None


def to_ticks(seconds: Number) -> Ticks | None:
    """Turn seconds into ticks, rounding what is finer than a picosecond half to even."""
    return None if seconds is None else count_ticks(seconds)


def count_ticks(seconds: Decimal) -> Ticks:
    """Turn seconds into ticks; raise InputError for a time beyond 31 years."""
    ticks = (seconds * TICKS_PER_SECOND).to_integral_value()
    return int(ticks) if abs(ticks) <= LONGEST else round_to_ticks(seconds).ticks


def to_milliseconds(seconds: Number) -> Number:
    """Turn seconds into milliseconds."""
    return None if seconds is None else seconds * 1000


@dataclass(frozen=True, slots=True)
class Row:
    """Hold one request as a result file has it; times are seconds, those of chunks since the request's own send."""

    id: str
    ok: bool  # what the tool counts as success
    prompt: int | None = None
    output: int | None = None
    start: Number = None  # on the run's clock; None where the file stores no start
    wait: Number = None  # in the client, before the send
    first: Number = None
    gaps: Sequence[Decimal] | None = None  # between chunks; None where the file does not store them
    latency: Number = None
    reason: str | None = None
    server_wait: Number = None  # on the server's own clock: from arrival to being scheduled
    server_first: Number = None  # and to its first output

    def decode(self) -> Number:
        """Give the time from the first token to the end."""
        return None if self.latency is None or self.first is None else self.latency - self.first

    def tpot(self) -> Number:
        """Give (end - first) / (n - 1), for two tokens or more."""
        decode = self.decode()
        return None if decode is None or self.output is None or self.output < 2 else decode / (self.output - 1)


def make_record(row: Row, origin: Number, source: str | None, is_whole: bool | None = None) -> Record:
    """Make the Record of a row; `is_whole` False turns a counted success whose stream was cut into an error."""
    start = Decimal(0) if row.start is None or origin is None else row.start - origin
    ended = row.ok and is_whole is not False
    return Record(
        id=row.id,
        prompt_tokens=row.prompt,
        outcome=Outcome.COMPLETED if ended else Outcome.ERROR,
        planned=None if row.wait is None or row.start is None else to_ticks(start - row.wait),
        sent=to_ticks(start),
        deliveries=make_deliveries(row, start),
        ended=to_ticks(None if row.latency is None else start + row.latency),
        reason=row.reason if not row.ok else None if ended else CUT,
        clock="run" if row.start is not None else "request",
        output_tokens=row.output,
        token_source=None if row.output is None else source,
        server=make_server(row),
    )


def make_server(row: Row) -> Server:
    """Give the server's own times, counted from the arrival of the request there."""
    if row.server_wait is None and row.server_first is None:
        return Server()
    return Server(queued=0, scheduled=to_ticks(row.server_wait), first_token=to_ticks(row.server_first))


def make_deliveries(row: Row, start: Decimal) -> Deliveries:
    """Give the chunks of a row; how many tokens are in each is not known."""
    if row.first is None:
        return ()
    times = tuple(map(count_ticks, accumulate([start + row.first, *(row.gaps or ())])))
    return Arrivals(times, (None,) * len(times))


def find_origin(rows: Iterable[Row]) -> Number:
    """Give the earliest start, from which the run's clock counts."""
    return min((row.start for row in rows if row.start is not None), default=None)


def count_by_second(rows: Sequence[Row]) -> tuple[int, int]:
    """Count, over one-second buckets from the first start, the most chunks in one and the most requests touching one.

    Both are what `vllm bench serve` prints as peaks: chunks are not tokens, and requests that touch the same second
    need not overlap.
    """
    origin = find_origin(rows) or Decimal(0)
    chunks: dict[int, int] = {}
    changes: dict[int, int] = {}  # of the number of requests that touch a second
    for row in rows:
        start = (row.start or Decimal(0)) - origin
        for at in accumulate([start + (row.first or 0), *(row.gaps or ())]):
            chunks[int(at)] = chunks.get(int(at), 0) + 1
        for second, change in ((int(start), 1), (int(start + (row.latency or 0)) + 1, -1)):
            changes[second] = changes.get(second, 0) + change
    touching = accumulate(changes[second] for second in sorted(changes))
    return max(chunks.values(), default=0), max(touching, default=0)
