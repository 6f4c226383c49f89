"""The messages of protocol edition 1 as JSON lines, and the trace form: the same lines interleaved in a file.

A request has `op`, its answer has `ok`, both carry `seq`; a file begins with a header line.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from refsched.errors import InputError
from refsched.model import Cancelled, Completed, Entry, Event, Failed, Limits, Plan, Planned, Request, State, Submitted, Trace

TRACE_FORMAT = "refsched-trace/1"
PROTOCOL = 1
Message = Mapping[str, Any]


def parse_line(line: str, row: int) -> Message:
    """Read one JSON object; raise InputError naming the row."""
    try:
        message = json.loads(line, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not JSON: {error}", row=row) from None
    if not isinstance(message, dict):
        raise InputError("is not a JSON object", row=row)
    return message


def refuse_constant(name: str) -> float:
    """Refuse NaN and Infinity, which JSON does not have."""
    raise ValueError(f"{name} is not JSON")


def read_trace(lines: Iterable[str]) -> Trace:
    """Read a whole recorded trace; raise InputError naming row and field."""
    rows = enumerate(lines, 1)
    row, first = next(rows, (1, ""))
    header = parse_line(first, row)
    if header.get("format") != TRACE_FORMAT:
        raise InputError(f'"format" is not "{TRACE_FORMAT}"', row=row)
    pairs = pair_messages((row, parse_line(line, row)) for row, line in rows if line.strip())
    hello: Message = {}
    limits: Limits | None = None
    events: list[Event] = []
    for row, request, answer in pairs:
        try:
            if request["op"] == "hello":
                hello = answer
            elif request["op"] == "reset":
                limits = read_limits(request["limits"])
            elif request["op"] != "bye":
                events.append(read_event(request, answer))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise describe_bad_message(error, row) from None
    if limits is None:
        raise InputError('has no "reset" with limits')
    return Trace(describe_engine(hello), hello.get("dialect", {}), limits, tuple(events), header)


def describe_bad_message(error: Exception, row: int) -> InputError:
    """Turn what went wrong with one message into one line."""
    if isinstance(error, InputError):
        return error.at(row=row)
    problem = f"lacks {error}" if isinstance(error, KeyError) else f"is not a message of protocol {PROTOCOL}: {error}"
    return InputError(problem, row=row)


def describe_engine(hello: Message) -> str:
    """Name the engine and its version, as far as its hello tells."""
    engine = hello.get("engine") or {}
    return " ".join(str(engine[key]) for key in ("name", "version") if key in engine) or "unknown"


def pair_messages(messages: Iterable[tuple[int, Message]]) -> Iterator[tuple[int, Message, Message]]:
    """Match each request with its answer by `seq`; raise InputError for one without the other."""
    waiting: tuple[int, Message] | None = None
    for row, message in messages:
        if "op" in message:
            if waiting is not None:
                raise InputError("has no answer", row=waiting[0])
            waiting = row, message
        elif waiting is None or message.get("seq") != waiting[1].get("seq"):
            raise InputError("answers no request", row=row)
        else:
            yield row, waiting[1], message
            waiting = None
    if waiting is not None:
        raise InputError("has no answer", row=waiting[0])


def read_limits(page: Message) -> Limits:
    """Read the limits of a reset."""
    unknown = sorted(page.keys() - asdict(Limits(None, None)).keys())
    if unknown:
        raise InputError("is not a limit", field=unknown[0])
    return Limits(**page)


def read_event(request: Message, answer: Message) -> Event:
    """Read one operation and its answer as an event; an answer that is not ok is the engine's failure."""
    op = request["op"]
    if not answer["ok"]:
        return Failed(op, str(answer.get("error") or answer.get("unsupported")))
    return READERS[op](request, answer)


def read_submit(request: Message, answer: Message) -> Event:
    """Read a submission, and the reason if it was refused."""
    prefix, outputs = (tuple(request.get(name) or ()) for name in ("prefix", "output_blocks"))
    asked = Request(request["id"], request["prompt"], request["output"], request.get("priority") or 0, prefix, outputs)
    return Submitted(asked, answer.get("rejected"))


def read_plan(request: Message, answer: Message) -> Event:
    """Read a plan and the state told with it."""
    plan, kv = answer["plan"], answer.get("kv") or {}
    entries = tuple(Entry(*entry) for entry in plan["entries"])
    cached = answer.get("cached") or plan.get("cached") or {}
    decided = Plan(entries, tuple(plan.get("preempted", ())), tuple(plan.get("rejected", ())), tuple(cached.items()))
    running, waiting = (None if answer.get(name) is None else tuple(answer[name]) for name in ("running", "waiting"))
    return Planned(decided, State(running, waiting, None, kv.get("held"), kv.get("free")))


def read_complete(request: Message, answer: Message) -> Event:
    """Read who emitted and who ended."""
    free = (answer.get("kv") or {}).get("free")
    return Completed(tuple(request["emitted"]), tuple(request["finished"]), free)


def read_cancel(request: Message, answer: Message) -> Event:
    """Read whom the client gave up."""
    return Cancelled(request["id"])


READERS = {"submit": read_submit, "plan": read_plan, "complete": read_complete, "cancel": read_cancel}


# WRITING


def to_json(message: Mapping[str, object]) -> str:
    """Write one message as one compact line."""
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def write_submit(request: Request, rejected: str | None) -> tuple[dict[str, object], dict[str, object]]:
    """Write a submission and its answer."""
    page: dict[str, object] = {"op": "submit", "id": request.id, "prompt": request.prompt, "output": request.output}
    optional = {"priority": request.priority, "prefix": list(request.prefix), "output_blocks": list(request.output_blocks)}
    page |= {name: value for name, value in optional.items() if value}
    return page, {"ok": True} if rejected is None else {"ok": True, "rejected": rejected}


def write_plan(plan: Plan) -> dict[str, object]:
    """Write the answer to a plan: what was decided, and what came from a prefix cache."""
    page: dict[str, object] = {"entries": [list(entry) for entry in plan.entries]}
    page |= {"preempted": list(plan.preempted), "rejected": list(plan.rejected)}
    return {"ok": True, "plan": page, **({"cached": dict(plan.cached)} if plan.cached else {})}


class TraceWriter:
    """Write a run as a recorded trace while it goes on; `put` receives one line at a time, without its end."""

    def __init__(self, put: Any, engine: str, version: str, dialect: Mapping[str, object], limits: Limits, header: Message):
        self.put = put
        self.seq = -1
        put(to_json({"format": TRACE_FORMAT, **header}))
        self.write({"op": "hello", "protocol": PROTOCOL}, {"ok": True, "engine": {"name": engine, "version": version}, "dialect": dict(dialect)})
        self.write({"op": "reset", "limits": asdict(limits)}, {"ok": True})

    def write(self, request: Message, answer: Message) -> None:
        """Write a request and its answer under the next number."""
        self.seq += 1
        self.put(to_json({"seq": self.seq, **request}))
        self.put(to_json({"seq": self.seq, **answer}))

    def on_event(self, event: Event) -> None:
        """Write a submission or a cancellation."""
        if isinstance(event, Submitted):
            self.write(*write_submit(event.request, event.rejected))
        elif isinstance(event, Cancelled):
            self.write({"op": "cancel", "id": event.id}, {"ok": True})

    def on_iteration(self, iteration: Any) -> None:
        """Write a plan and its completion."""
        self.write({"op": "plan"}, write_plan(iteration.plan))
        done = {"op": "complete", "plan": self.seq, "emitted": list(iteration.emitted), "finished": list(iteration.finished)}
        self.write(done, {"ok": True})

    def close(self) -> None:
        """Say goodbye."""
        self.write({"op": "bye"}, {"ok": True})
