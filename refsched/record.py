"""Records: what a client saw of one request. The meter reads nothing else.

Deliveries that come from a simulation are not stored one by one: a request that emits in every iteration of a
range points into the shared list of iteration ends. Iterating a record's deliveries gives the same either way.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator, MutableSequence, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate, chain, islice
from typing import NamedTuple, Protocol

from refsched.units import Ticks, Tokens


class Outcome(Enum):
    """Say how a request ended, as the client knows it."""

    COMPLETED = "completed"
    ERROR = "error"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    REJECTED = "rejected"
    UNFINISHED = "unfinished"


class Delivery(NamedTuple):
    """Give the time at which something was received, the tokens in it (None: unknown), and its kind."""

    at: Ticks
    tokens: Tokens | None = 1
    kind: str = "content"  # content | reasoning | empty | usage | end


class Deliveries(Protocol):
    """Be iterated in order of time; a tuple of Delivery will do."""

    def __iter__(self) -> Iterator[Delivery]: ...
    def __len__(self) -> int: ...


class IterationEnds:
    """Hold the end of every iteration of a run in order of time, as arithmetic progressions; memory follows those.

    Iteration `firsts[r] + k` of progression r begins k iterations after `starts[r]`, which last `durations[r]`, then
    `growths[r]` longer each.
    """

    __slots__ = ("count", "durations", "firsts", "growths", "last", "starts")

    def __init__(self) -> None:
        self.firsts: MutableSequence[int] = array("i")
        self.starts: MutableSequence[Ticks] = array("q")
        self.durations: MutableSequence[Ticks] = array("q")
        self.growths: MutableSequence[Ticks] = array("i")
        self.count = 0
        self.last: Ticks = 0  # end of the last iteration

    def add(self, start: Ticks, duration: Ticks, growth: Ticks = 0, count: int = 1) -> Ticks:
        """Add `count` iterations from `start` on; return when the last of them ends."""
        try:
            self.firsts.append(self.count)
            self.starts.append(start)
            self.durations.append(duration)
            self.growths.append(growth)
        except OverflowError:
            self._append_wider(self.count, start, duration, growth)
        self.count += count
        self.last = start + count * duration + growth * (count * (count - 1) // 2)
        return self.last

    def _append_wider(self, *row: int) -> None:
        """Append what did not fit: columns go from 4 bytes to 8, and beyond those to a list."""
        names = ("firsts", "starts", "durations", "growths")
        known = min(len(getattr(self, name)) for name in names)
        for name, value in zip(names, row, strict=True):
            setattr(self, name, append_wider(getattr(self, name)[:known], value))

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> Ticks:
        return self.get_time(number, 1)

    def get_start(self, number: int) -> Ticks:
        """Give when an iteration began."""
        return self.get_time(number, 0)

    def get_time(self, number: int, done: int) -> Ticks:
        """Give when iteration `number` began (`done` 0) or ended (1); raise IndexError where there is none."""
        if not 0 <= number < self.count:
            raise IndexError(number)
        firsts = self.firsts
        place = len(firsts) - 1 if number >= firsts[-1] else bisect_right(firsts, number) - 1
        passed = number - firsts[place] + done
        return self.starts[place] + passed * self.durations[place] + self.growths[place] * (passed * (passed - 1) // 2)

    def count_ended_by(self, at: Ticks) -> int:
        """Count the iterations that ended at `at` or before."""
        place = bisect_right(self.starts, at) - 1
        if place < 0:
            return 0
        start, duration, growth = self.starts[place], self.durations[place], self.growths[place]
        after = self.firsts[place + 1] if place + 1 < len(self.firsts) else self.count
        inside = range(1, after - self.firsts[place] + 1)
        done = bisect_right(inside, at, key=lambda done: start + done * duration + growth * (done * (done - 1) // 2))
        return self.firsts[place] + done

    def progressions(self) -> Iterator[tuple[int, int, Ticks, Ticks, Ticks]]:
        """Give the first iteration of each progression and the one after its last, start, duration and growth."""
        afters = chain(islice(self.firsts, 1, None), (self.count,))
        return zip(self.firsts, afters, self.starts, self.durations, self.growths, strict=False)

    def __iter__(self) -> Iterator[Ticks]:
        for first, stop, start, duration, growth in self.progressions():
            yield from islice(
                accumulate((duration + growth * each for each in range(stop - first)), initial=start), 1, None
            )


def append_wider(column: MutableSequence[int], value: int) -> MutableSequence[int]:
    """Append to a column, or to one of wider numbers where it cannot hold the value; return that."""
    while True:
        try:
            column.append(value)
            return column
        except OverflowError:
            is_narrow = isinstance(column, array) and column.typecode == "i"
            column = array("q", column) if is_narrow else list(column)


@dataclass(frozen=True, slots=True)
class IterationRanges:
    """Deliver one token at the end of every iteration in each half-open range of iteration numbers."""

    ends: IterationEnds  # shared by all records of a run
    ranges: tuple[tuple[int, int], ...]

    def __iter__(self) -> Iterator[Delivery]:
        return (Delivery(self.ends[i]) for first, stop in self.ranges for i in range(first, stop))

    def __len__(self) -> int:
        return sum(stop - first for first, stop in self.ranges)


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Deliver what was received at each of `times`, kept as columns; without `kinds` all of it is content."""

    times: Sequence[Ticks]
    tokens: Sequence[Tokens | None]
    kinds: Sequence[str] | None = None

    def __iter__(self) -> Iterator[Delivery]:
        if self.kinds is None:
            return map(Delivery, self.times, self.tokens)
        return map(Delivery, self.times, self.tokens, self.kinds)

    def __len__(self) -> int:
        return len(self.times)


@dataclass(frozen=True, slots=True)
class Server:
    """Give the server's own clock for a request, where it is known [A7]."""

    queued: Ticks | None = None
    scheduled: Ticks | None = None
    first_token: Ticks | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """Hold what a client saw of one request; a time that is not known is None and stays undefined."""

    id: str
    prompt_tokens: Tokens | None
    outcome: Outcome
    planned: Ticks | None = None
    sent: Ticks | None = None
    deliveries: Deliveries = ()
    ended: Ticks | None = None
    group: str = ""
    server: Server = Server()
    reason: str | None = None  # why it was rejected or could not finish
    clock: str = "run"  # "request": times count from this request's own send; nothing is computed across requests
    output_tokens: Tokens | None = None  # a total given apart from the deliveries
    token_source: str | None = None  # where that total comes from: usage | retokenised | chunks | requested
    timeout: Ticks | None = None  # how long the client would have waited, from its send
