"""The strict reader of RECORDS: JSON lines, one request each, in the form that `refsched simulate --records` writes.

Every line is checked before anything is made of it; the first that is wrong ends the reading with its row and field.
A file may be gzipped, and may begin with a byte order mark. Memory does not grow with the file, but for the ids.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NoReturn, TypeVar

from refsched.errors import InputError
from refsched.metrics.seen import KINDS
from refsched.record import Arrivals, Outcome, Record, Server
from refsched.results.load import MARK, open_bytes
from refsched.results.seconds import read_all_ticks, read_ticks
from refsched.units import TICKS_PER_SECOND, Ticks

LONGEST_LINE = 64 * 2**20  # bytes; a million deliveries fit
FAR_FROM_ZERO = 10**6 * TICKS_PER_SECOND  # a first time beyond it is on a clock that began long before the run
OUTCOMES: Mapping[object, Outcome] = {outcome.value: outcome for outcome in Outcome}
SOURCES = ("usage", "retokenised", "chunks", "requested")
CLOCKS = ("run", "request")
TIMES = ("planned_s", "sent_s", "ended_s")
FIELDS = {
    *("id", "outcome", "planned_s", "sent_s", "prompt_tokens", "deliveries", "ended_s", "group", "clock"),
    *("output_tokens", "token_source", "server", "timeout_s", "reason"),
}
SERVER = ("queued_s", "scheduled_s", "first_token_s")
MOST_TOKENS = 10**12
LONGEST_QUOTE = 40
Cells = dict[str, object]
T = TypeVar("T")


def refuse_constant(word: str) -> NoReturn:
    """Refuse NaN and the infinities."""
    raise InputError(f"{word} is not a number")


def pair(pairs: list[tuple[str, object]]) -> Cells:
    """Make an object of its pairs; raise InputError where a name stands twice."""
    cells = dict(pairs)
    if len(cells) < len(pairs):
        names = [name for name, _ in pairs]
        raise InputError("is given twice", field=quote(next(name for name in names if names.count(name) > 1)))
    return cells


DECODER = json.JSONDecoder(parse_float=str.encode, parse_constant=refuse_constant, object_pairs_hook=pair)


class RecordsFile:
    """Read the records of a file, one after the other; `rounded` counts times finer than a picosecond.

    Times far from 0 are shifted by `origin`, a whole number of seconds that the first record gives.
    """

    def __init__(self, path: str):
        self.path = path
        self.rounded = self.count = 0
        self.origin: Ticks | None = None
        self.clock = ""
        self.ids: set[str] = set()

    def __iter__(self) -> Iterator[Record]:
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
        """Make a record of the fields of one line."""
        if not cells.keys() <= FIELDS:
            raise InputError("is no field of a record", field=quote(next(name for name in cells if name not in FIELDS)))
        get = cells.get
        clock = self.read_clock(get("clock"))
        sent, planned, ended = self.read_time(cells, "sent_s"), self.read_time(cells, "planned_s"), self.read_time(cells, "ended_s")
        deliveries = self.read_deliveries(get("deliveries"))
        record = Record(
            id=self.read_id(get("id")),
            prompt_tokens=read_tokens(get("prompt_tokens"), "prompt_tokens"),
            outcome=read_outcome(get("outcome")),
            planned=planned,
            sent=sent,
            deliveries=deliveries,
            ended=ended,
            group=read_text(get("group"), "group") or "",
            server=NO_SERVER if get("server") is None else self.read_server(get("server")),
            reason=read_text(get("reason"), "reason"),
            clock=clock,
            output_tokens=read_tokens(get("output_tokens"), "output_tokens"),
            token_source=read_source(cells),
            timeout=self.read_span(get("timeout_s")),
        )
        return check_order(self.shift(record) if clock == "run" else start_at_zero(record))
