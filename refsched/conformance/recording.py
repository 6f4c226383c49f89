"""Recorded traces, read strictly and one message at a time: memory does not grow with the file.

A trace is a header line, then requests and answers in turn: hello, reset, any number of operations, and bye. What an
answer may leave out is listed in `Told.omitted`, so that a rule which needs it stays open instead of passing.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from refsched.conformance.messages import Told, describe_engine, read_event, read_limits
from refsched.conformance.wire import LOOSE, Message, check_fields, parse_line, take_int, take_object
from refsched.errors import InputError
from refsched.model import Limits, Trace

TRACE_FORMAT = "refsched-trace/1"
REFUSED = frozenset({"ok", "error", "unsupported", "url"})
ASKED = {
    "hello": frozenset({"op", "protocol"}),
    "reset": frozenset({"op", "limits"}),
    "submit": frozenset({"op", "id", "prompt", "output", "priority", "prefix", "output_blocks"}),
    "plan": frozenset({"op"}),
    "complete": frozenset({"op", "plan", "emitted", "finished"}),
    "cancel": frozenset({"op", "id"}),
    "state": frozenset({"op"}),
    "bye": frozenset({"op"}),
}
TOLD = {
    "hello": frozenset({"ok", "engine", "dialect", "clauses"}),
    "reset": frozenset({"ok"}),
    "submit": frozenset({"ok", "rejected"}),
    "plan": frozenset({"ok", "plan", "cached", "kv", "running", "waiting"}),
    "complete": frozenset({"ok", "kv", "emitted", "finished"}),
    "cancel": frozenset({"ok", "kv"}),
    "state": frozenset({"ok", "kv", "running", "waiting", "computed"}),
    "bye": frozenset({"ok"}),
}


@dataclass(frozen=True, slots=True)
class Opening:
    """Hold what a trace says before its first event."""

    header: Message
    engine: str
    dialect: Message
    limits: Limits


class Recording:
    """Read a trace from its lines; raise InputError naming file, row and field for whatever is malformed."""

    def __init__(self, lines: Iterable[str | bytes], file: str | None = None):
        self.file = file
        self.row = 0  # the line last read
        self.asked_at = 0  # the line of the request last read
        self.lines = iter(lines)
        self.seq = -1
        self.outstanding: int | None = None
        self.closed = False  # whether the trace says goodbye
        try:
            self.opening = self.read_opening()
        except InputError as error:
            raise self.place(error) from None

    def events(self) -> Iterator[Told]:
        """Give the events one by one; `state` is checked for its form only."""
        while True:
            try:
                told = self.read_next()
            except InputError as error:
                raise self.place(error) from None
            if told is None:
                return
            yield told

    def place(self, error: InputError) -> InputError:
        """Name this file and the row last read."""
        return error.at(file=self.file, row=self.row)

    # WHAT COMES FIRST

    def read_opening(self) -> Opening:
        """Read header, hello and reset."""
        line = self.next_line()
        header = parse_line(line, LOOSE) if line is not None else {}
        if header.get("format") != TRACE_FORMAT:
            raise InputError(f"is not {json.dumps(TRACE_FORMAT)}", field="format")
        _, hello = self.take("hello")
        dialect = take_object(hello, "dialect") if "dialect" in hello else {}
        request, _ = self.take("reset")
        return Opening(header, describe_engine(hello), dialect, read_limits(take_object(request, "limits")))

    def take(self, op: str) -> tuple[Message, Message]:
        """Read the next exchange, which must be `op` and granted."""
        exchange = self.exchange()
        if exchange is None or exchange[0]["op"] != op:
            raise InputError(f'"{op}" must come here')
        if not exchange[1]["ok"]:
            raise InputError(f'"{op}" was not granted')
        return exchange

    # EXCHANGES

    def next_line(self) -> str | bytes | None:
        """Read one line; the row counts lines from 1."""
        line = next(self.lines, None)
        self.row += line is not None
        return line

    def read_next(self) -> Told | None:
        """Read up to the next event, or return None at the end."""
        while (exchange := self.exchange()) is not None:
            request, answer = exchange
            op = request["op"]
            try:
                self.take_turn(op, request, answer)
                if op not in ("state", "bye"):
                    return read_event(self.row, request, answer)
            except InputError as error:
                asked = op != "plan" and (error.field or "op").partition(".")[0] in ASKED[op]
                raise error.at(row=self.asked_at if asked else self.row) from None
        return None

    def exchange(self) -> tuple[Message, Message] | None:
        """Read a request and its answer, or return None at the end."""
        line = self.next_line()
        while line is not None and not line.strip():
            line = self.next_line()
        if line is None:
            return None
        self.asked_at = self.row
        request = self.read_request(parse_line(line))
        answer = self.next_line()
        if answer is None:
            raise InputError("has no answer")
        return request, read_answer(parse_line(answer), request)

    def read_request(self, request: Message) -> Message:
        """Check that a request is one, with the next number."""
        op = request.get("op")
        if not isinstance(op, str) or op not in ASKED:
            raise InputError("is not an operation of protocol 1" if "op" in request else "is missing", field="op")
        check_fields(request, ASKED[op])
        seq = take_int(request, "seq")
        if seq <= self.seq:
            raise InputError(f"{seq} does not follow {self.seq}", field="seq")
        self.seq = seq
        return request

    def take_turn(self, op: str, request: Message, answer: Message) -> None:
        """Hold operations to their turns: one plan is outstanding at a time, bye is the last [MOD-TURN-1]."""
        if self.closed:
            raise InputError('comes after "bye"')
        if op in ("hello", "reset"):
            raise InputError(f'a second "{op}"; a trace holds one run')
        if op == "plan" and self.outstanding is not None:
            raise InputError(f"plan {self.outstanding} is not complete yet")
        if op == "complete" and self.outstanding is None:
            raise InputError("completes no plan")
        if op == "complete" and request.get("plan", self.outstanding) != self.outstanding:
            raise InputError(f"is not {self.outstanding}, the plan that is outstanding", field="plan")
        if op in ("plan", "complete"):
            self.outstanding = request["seq"] if op == "plan" and answer["ok"] else None
        self.closed = op == "bye"


def read_answer(answer: Message, request: Message) -> Message:
    """Check that a message answers `request`."""
    if "op" in answer:
        raise InputError(f"the request before it (seq {request['seq']}) has no answer")
    if take_int(answer, "seq") != request["seq"]:
        raise InputError(f"answers {answer['seq']}, not {request['seq']}", field="seq")
    if not isinstance(answer.get("ok"), bool):
        raise InputError("is not true or false", field="ok")
    check_fields(answer, TOLD[request["op"]] if answer["ok"] else REFUSED)
    return answer


def read_trace(lines: Iterable[str | bytes], file: str | None = None) -> Trace:
    """Read a whole recorded trace into memory; raise InputError naming file, row and field."""
    recording = Recording(lines, file)
    opening, events = recording.opening, tuple(told.event for told in recording.events())
    return Trace(opening.engine, opening.dialect, opening.limits, events, opening.header)
