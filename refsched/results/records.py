"""The strict reader of RECORDS: JSON lines, one request each, in the form that `refsched simulate --records` writes.

Every line is checked before anything is made of it; the first that is wrong ends the reading with its row and field.
A file may be gzipped, and may begin with a byte order mark. Memory does not grow with the file, but for the ids.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from operator import le
from pathlib import Path
from typing import Any

from refsched.errors import InputError
from refsched.metrics.seen import KINDS
from refsched.record import Arrivals, Deliveries, Outcome, Record, Server
from refsched.results.load import MARK, open_bytes
from refsched.results.record_cells import SOURCES, Cells, parse_line, quote, read_text, read_tokens, read_word
from refsched.results.seconds import read_all_ticks, read_ticks
from refsched.units import TICKS_PER_SECOND, Ticks

LONGEST_LINE = 64 * 2**20  # bytes; a million deliveries fit
FAR_FROM_ZERO = 10**6 * TICKS_PER_SECOND  # a first time beyond it is on a clock that began long before the run
MOST_IN_A_CHUNK = 10**9
OUTCOMES: Mapping[str, Outcome] = {outcome.value: outcome for outcome in Outcome}
CLOCKS = {name: name for name in ("run", "request")}
NOTHING = Arrivals((), ())
SERVER = ("queued_s", "scheduled_s", "first_token_s")


class RecordsFile:
    """Read the records of a file, one after the other; `rounded` counts times finer than a picosecond.

    Times far from 0 are shifted by `origin`, a whole number of seconds that the first record gives.
    """

    def __init__(self, path: str):
        self.path = path
        self.begin()
        self.readers: Mapping[str, tuple[str, Callable[[object, str], object]]] = {
            "id": ("id", self.read_id),
            "outcome": ("outcome", partial(read_word, words=OUTCOMES)),
            "planned_s": ("planned", self.read_time),
            "sent_s": ("sent", self.read_time),
            "prompt_tokens": ("prompt_tokens", read_tokens),
            "deliveries": ("deliveries", self.read_deliveries),
            "ended_s": ("ended", self.read_time),
            "group": ("group", read_text),
            "clock": ("clock", partial(read_word, words=CLOCKS)),
            "output_tokens": ("output_tokens", read_tokens),
            "token_source": ("token_source", partial(read_word, words=SOURCES)),
            "timeout_s": ("timeout", self.read_time),
            "server": ("server", self.read_server),
            "reason": ("reason", read_text),
        }

    def begin(self) -> None:
        """Forget what was read before."""
        self.rounded = self.count = 0
        self.origin: Ticks | None = None
        self.clock = ""
        self.ids: set[str] = set()

    def __iter__(self) -> Iterator[Record]:
        self.begin()
        with open_bytes(Path(self.path)) as file:
            row = 0
            while line := file.readline(LONGEST_LINE + 1):
                row += 1
                if not line.isspace():
                    yield self.read_line(line, row)
        if not self.count:
            raise InputError("is empty", file=self.path)

    def read_line(self, line: bytes, row: int) -> Record:
        """Read one line; raise InputError naming file, row and field."""
        try:
            if len(line) > LONGEST_LINE:
                raise InputError(f"is a line of more than {LONGEST_LINE >> 20} MiB")
            record = self.read_record(parse_line(line.removeprefix(MARK) if row == 1 else line))
        except InputError as error:
            raise error.at(file=self.path, row=row) from None
        self.count += 1
        return record

    def read_record(self, cells: Cells) -> Record:
        """Make a record of the fields of one line; null is the same as leaving a field out."""
        readers = self.readers
        fields: dict[str, Any] = {"prompt_tokens": None}
        for name, value in cells.items():
            if name not in readers:
                raise InputError("is no field of a record", field=quote(name))
            if value is not None:
                attribute, read = readers[name]
                fields[attribute] = read(value, name)
        if "id" not in fields or "outcome" not in fields:
            raise InputError("is missing", field="outcome" if "id" in fields else "id")
        record = Record(**fields)
        self.check_clock(record.clock)
        check_order(record)
        return start_at_zero(record) if record.clock == "request" else self.shift(record)

    def read_id(self, value: object, name: str) -> str:
        """Read the id, which no record before had."""
        id = read_text(value, name)
        if not id:
            raise InputError("is empty", field=name)
        if id in self.ids:
            raise InputError(f"{quote(id)} stands in a record before", field=name)
        self.ids.add(id)
        return id

    def check_clock(self, clock: str) -> None:
        """Raise InputError where a record has another clock than those before it."""
        if clock != self.clock:
            if self.clock:
                raise InputError(f"is {clock!r} where the records before have {self.clock!r}", field="clock")
            self.clock = clock

    def read_time(self, value: object, name: str) -> Ticks:
        """Read a time."""
        try:
            ticks, rounded = read_ticks(value)
        except InputError as error:
            raise error.at(field=name) from None
        self.rounded += rounded
        return ticks

    def read_server(self, value: object, name: str) -> Server:
        """Read the server's own times, in order."""
        if not isinstance(value, dict) or not value.keys() <= set(SERVER):
            raise InputError(f"is not an object of {', '.join(SERVER)}", field=name)
        found = [value.get(each) for each in SERVER]
        times = [None if at is None else self.read_time(at, each) for at, each in zip(found, SERVER, strict=True)]
        known = [time for time in times if time is not None]
        if known != sorted(known):
            raise InputError("has times out of order", field=name)
        return Server(*times)

    def read_deliveries(self, value: object, name: str) -> Arrivals:
        """Read [time, tokens or null, kind?] lists whose times do not go back."""
        if value == []:
            return NOTHING
        if not isinstance(value, list):
            raise InputError("is not a list", field=name)
        try:
            times, tokens = zip(*value, strict=True)
        except (ValueError, TypeError):
            return self.check_deliveries(split_deliveries(value))
        return self.check_deliveries((times, tokens, ()))

    def check_deliveries(self, columns: tuple[Sequence[object], Sequence[object], Sequence[object]]) -> Arrivals:
        """Check the three columns of a list of deliveries; the kinds may be left out."""
        seconds, tokens, kinds = columns
        return Arrivals(self.read_times(seconds), check_tokens(tokens), check_kinds(kinds) if kinds else None)

    def read_times(self, seconds: Sequence[object]) -> list[Ticks]:
        """Read times that do not go back."""
        try:
            times, rounded = read_all_ticks(seconds)
        except InputError as error:
            place = next(index for index, each in enumerate(seconds) if not is_time(each))
            raise error.at(field=f"deliveries[{place}]") from None
        self.rounded += rounded
        if not all(map(le, times, times[1:])):
            place = next(index for index, (before, at) in enumerate(pairwise(times), 1) if at < before)
            raise InputError("is before the one before it", field=f"deliveries[{place}]")
        return times

    def shift(self, record: Record) -> Record:
        """Move a record to a clock that starts near the run, where its own does not."""
        arrivals = record.deliveries
        if self.origin is None:
            known = [
                time for time in (record.planned, record.sent, record.ended, *get_first(arrivals)) if time is not None
            ]
            if known:
                self.origin = min(known) // TICKS_PER_SECOND * TICKS_PER_SECOND if min(known) > FAR_FROM_ZERO else 0
        origin = self.origin
        if not origin:
            return record
        planned, sent, ended = (
            None if time is None else time - origin for time in (record.planned, record.sent, record.ended)
        )
        if isinstance(arrivals, Arrivals):
            arrivals = Arrivals([at - origin for at in arrivals.times], arrivals.tokens, arrivals.kinds)
        return replace(record, planned=planned, sent=sent, ended=ended, deliveries=arrivals)


def get_first(deliveries: Deliveries) -> list[Ticks]:
    """Give the first time of some deliveries, if there is one."""
    return [next(iter(deliveries)).at] if len(deliveries) else []


def split_deliveries(values: list[object]) -> tuple[list[object], list[object], list[object]]:
    """Split deliveries of which some name their kind; raise InputError for one that is no list of two or three."""
    for place, value in enumerate(values):
        if not isinstance(value, list) or len(value) not in (2, 3):
            raise InputError("is not [time, tokens] or [time, tokens, kind]", field=f"deliveries[{place}]")
    rows = [[*value, "content"][:3] for value in values if isinstance(value, list)]
    return [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]


def check_tokens(values: Sequence[object]) -> Sequence[int | None]:
    """Return counts of tokens; raise InputError for what is neither a whole number nor null."""
    if values.count(1) == len(values) and set(map(type, values)) == {int}:  # true counts as 1, but is no count
        return values  # type: ignore[return-value]
    for place, value in enumerate(values):
        if not is_count(value):
            raise InputError(
                "has no count of tokens (a whole number up to a billion, or null)", field=f"deliveries[{place}]"
            )
    return values  # type: ignore[return-value]


def is_count(value: object) -> bool:
    """Tell whether a value is a count, or null."""
    return value is None or (type(value) is int and 0 <= value <= MOST_IN_A_CHUNK)


def check_kinds(values: Sequence[object]) -> Sequence[str]:
    """Return the kinds of deliveries; raise InputError for an unknown one."""
    kinds = [value for value in values if isinstance(value, str) and value in KINDS]
    if len(kinds) < len(values):
        place = next(index for index, value in enumerate(values) if value not in KINDS)
        raise InputError(f"has no kind among {', '.join(KINDS)}", field=f"deliveries[{place}]")
    return kinds


def is_time(value: object) -> bool:
    """Tell whether a value can be read as a time."""
    try:
        read_ticks(value)
    except InputError:
        return False
    return True


def check_order(record: Record) -> None:
    """Raise InputError where a request is answered before it is sent, or ends before its last delivery."""
    deliveries, sent, ended = record.deliveries, record.sent, record.ended
    times = deliveries.times if isinstance(deliveries, Arrivals) else ()
    if record.clock == "request" and (record.planned is not None or sent):
        field = "sent_s" if sent else "planned_s"
        raise InputError("cannot be on a clock that starts at the request's own send", field=field)
    if sent is not None and times and times[0] < sent:
        raise InputError("is before the request was sent", field="deliveries[0]")
    latest = times[-1] if times else sent
    if ended is not None and latest is not None and ended < latest:
        raise InputError(f"is before the {'last delivery' if times else 'send'}", field="ended_s")
    if record.token_source is not None and record.output_tokens is None:
        raise InputError("is given without output_tokens", field="token_source")
    if record.timeout == 0:
        raise InputError("is not positive", field="timeout_s")


def start_at_zero(record: Record) -> Record:
    """Say that a request on its own clock was sent at 0."""
    return replace(record, sent=0)


def read_records(path: str) -> Iterator[Record]:
    """Read the records of a file; raise InputError naming file, row and field."""
    return iter(RecordsFile(path))
