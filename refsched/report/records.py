"""Records as JSON lines, one request each; what `refsched measure` reads."""

import json
from collections.abc import Iterable
from fractions import Fraction
from typing import TextIO

from refsched.record import Delivery, Record, Server
from refsched.report.json_text import format_number
from refsched.units import Ticks, to_seconds


def write_records(records: Iterable[Record], file: TextIO) -> None:
    """Write each record as one line; seconds are exact decimals."""
    for record in records:
        file.write(format_record(record) + "\n")


def format_record(record: Record) -> str:
    """Write one record, leaving out what is not known."""
    deliveries = ", ".join(map(format_delivery, record.deliveries))
    fields = {
        "id": json.dumps(record.id),
        "clock": "null" if record.clock == "run" else json.dumps(record.clock),
        "planned_s": seconds(record.planned),
        "sent_s": seconds(record.sent),
        "prompt_tokens": json.dumps(record.prompt_tokens),
        "outcome": json.dumps(record.outcome.value),
        "deliveries": f"[{deliveries}]",
        "ended_s": seconds(record.ended),
        "output_tokens": json.dumps(record.output_tokens),
        "token_source": json.dumps(record.token_source),
        "group": json.dumps(record.group) if record.group else "null",
        "timeout_s": seconds(record.timeout),
        "server": format_server(record.server),
        "reason": json.dumps(record.reason),
    }
    return "{" + ", ".join(f'"{name}": {text}' for name, text in fields.items() if text != "null") + "}"


def format_delivery(delivery: Delivery) -> str:
    """Write one delivery; its kind is left out where it is content."""
    kind = "" if delivery.kind == "content" else f", {json.dumps(delivery.kind)}"
    return f"[{seconds(delivery.at)}, {json.dumps(delivery.tokens)}{kind}]"


def format_server(server: Server) -> str:
    """Write the server's own times."""
    times = {"queued_s": server.queued, "scheduled_s": server.scheduled, "first_token_s": server.first_token}
    known = [f'"{name}": {seconds(ticks)}' for name, ticks in times.items() if ticks is not None]
    return "{" + ", ".join(known) + "}" if known else "null"


def seconds(ticks: Ticks | None) -> str:
    """Write a time as an exact number of seconds."""
    return "null" if ticks is None else format_number(Fraction(to_seconds(ticks)))
