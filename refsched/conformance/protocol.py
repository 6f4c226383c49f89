"""Protocol edition 1: reading a recorded trace, and writing one while a run goes on.

`recording` reads message by message; here stands the reader of a whole file, and the writer.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from refsched.conformance.messages import PROTOCOL
from refsched.conformance.recording import TRACE_FORMAT, read_trace
from refsched.conformance.wire import Message
from refsched.model import Cancelled, Event, Limits, Plan, Planned, Request, Submitted

__all__ = ["PROTOCOL", "TRACE_FORMAT", "TraceWriter", "read_trace", "to_json"]


def to_json(message: Mapping[str, object]) -> str:
    """Write one message as one compact line."""
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def write_submit(request: Request, rejected: str | None) -> tuple[dict[str, object], dict[str, object]]:
    """Write a submission and its answer."""
    page: dict[str, object] = {"op": "submit", "id": request.id, "prompt": request.prompt, "output": request.output}
    optional = {
        "priority": request.priority,
        "prefix": list(request.prefix),
        "output_blocks": list(request.output_blocks),
    }
    page |= {name: value for name, value in optional.items() if value}
    return page, {"ok": True} if rejected is None else {"ok": True, "rejected": rejected}


def write_plan(plan: Plan) -> dict[str, object]:
    """Write the body of a plan."""
    page: dict[str, object] = {"entries": [list(entry) for entry in plan.entries]}
    page |= {"preempted": list(plan.preempted), "rejected": list(plan.rejected)}
    return page


class TraceWriter:
    """Write a run as a recorded trace while it goes on; `put` receives one line at a time, without its end."""

    def __init__(
        self, put: Any, engine: str, version: str, dialect: Mapping[str, object], limits: Limits, header: Message
    ):
        self.put = put
        self.seq = -1
        put(to_json({"format": TRACE_FORMAT, **header}))
        self.write(
            {"op": "hello", "protocol": PROTOCOL},
            {"ok": True, "engine": {"name": engine, "version": version}, "dialect": dict(dialect)},
        )
        self.write({"op": "reset", "limits": asdict(limits)}, {"ok": True})

    def write(self, request: Message, answer: Message) -> None:
        """Write a request and its answer under the next number."""
        self.seq += 1
        self.put(to_json({"seq": self.seq, **request}))
        self.put(to_json({"seq": self.seq, **answer}))

    def on_event(self, event: Event) -> None:
        """Write a submission, a cancellation, or the empty plan that a run got stuck with."""
        if isinstance(event, Submitted):
            self.write(*write_submit(event.request, event.rejected))
        elif isinstance(event, Cancelled):
            self.write({"op": "cancel", "id": event.id}, {"ok": True})
        elif isinstance(event, Planned):
            self.write_iteration(event.plan, (), ())

    def on_iteration(self, iteration: Any) -> None:
        """Write a plan and its completion."""
        self.write_iteration(iteration.plan, iteration.emitted, iteration.finished)

    def write_iteration(self, plan: Plan, emitted: Sequence[str], finished: Sequence[str]) -> None:
        """Write a plan, who got a token from it, and who ended with it."""
        cached = {"cached": dict(plan.cached)} if plan.cached else {}
        self.write({"op": "plan"}, {"ok": True, "plan": write_plan(plan), **cached})
        done = {"op": "complete", "plan": self.seq, "emitted": list(emitted), "finished": list(finished)}
        self.write(done, {"ok": True})

    def close(self) -> None:
        """Say goodbye."""
        self.write({"op": "bye"}, {"ok": True})
