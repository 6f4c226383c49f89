"""The corpus: traces kept as vectors under `spec/vectors`, one JSON file each, in one canonical compact form.

A vector's events are short arrays: ["submit", id, prompt, output, more?], ["plan", entries, preempted, free, more?],
["complete", emitted, finished, free], ["cancel", id]; `more` holds what is rarely there. Only
`scripts/vectors.py` writes vectors.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from refsched import spec
from refsched.errors import InputError
from refsched.model import Cancelled, Completed, Entry, Event, Limits, Plan, Planned, Request, State, Submitted, Trace

VECTOR_FORMAT = "refsched-vector/1"
DESCRIPTION = ("about", "provenance", "outcome")
Compact = Sequence[Any]


def list_vectors(folder: str = "vectors") -> list[str]:
    """List the ids of all vectors, sorted; an id is a path below spec/vectors without its ending."""
    found: list[str] = []
    for item in spec.root().joinpath(*folder.split("/")).iterdir():
        path = f"{folder}/{item.name}"
        if item.name != "MANIFEST.json":
            found += list_vectors(path) if item.is_dir() else [path.removeprefix("vectors/").removesuffix(".json")]
    return sorted(found)


def get_vector(id: str) -> Trace:
    """Read the vector `id`; raise InputError if there is none."""
    try:
        return parse_vector(spec.read_text(f"vectors/{id}.json"))
    except FileNotFoundError:
        raise InputError(f"no vector named {id!r}") from None


def parse_vector(text: str) -> Trace:
    """Read a vector from JSON text; raise InputError where it is not one."""
    page = json.loads(text)
    if page.get("format") != VECTOR_FORMAT:
        raise InputError(f'"format" is not "{VECTOR_FORMAT}"')
    header = {name: page[name] for name in DESCRIPTION if name in page}
    events = tuple(READERS[event[0]](event) for event in page["events"])
    return Trace(page["engine"], page["dialect"], Limits(**page["limits"]), events, header)


def read_submit(event: Compact) -> Event:
    """Read ["submit", id, prompt, output, more?]."""
    more: Mapping[str, Any] = event[4] if len(event) > 4 else {}
    prefix, outputs = (tuple(more.get(name, ())) for name in ("prefix", "output_blocks"))
    return Submitted(
        Request(event[1], event[2], event[3], more.get("priority", 0), prefix, outputs), more.get("rejected")
    )


def read_plan(event: Compact) -> Event:
    """Read ["plan", entries, preempted, free, more?]."""
    more: Mapping[str, Any] = event[4] if len(event) > 4 else {}
    entries = tuple(Entry(*entry) for entry in event[1])
    plan = Plan(entries, tuple(event[2]), tuple(more.get("rejected", ())), tuple(more.get("cached", {}).items()))
    running, waiting = (None if name not in more else tuple(more[name]) for name in ("running", "waiting"))
    return Planned(plan, State(running, waiting, None, more.get("held"), event[3]))


def read_complete(event: Compact) -> Event:
    """Read ["complete", emitted, finished, free]."""
    return Completed(tuple(event[1]), tuple(event[2]), event[3])


def read_cancel(event: Compact) -> Event:
    """Read ["cancel", id]."""
    return Cancelled(event[1])


READERS: Mapping[str, Callable[[Compact], Event]] = {
    "submit": read_submit,
    "plan": read_plan,
    "complete": read_complete,
    "cancel": read_cancel,
}


# WRITING


def format_vector(id: str, trace: Trace) -> str:
    """Write a trace as a vector in canonical form: one line per event."""
    header = {"format": VECTOR_FORMAT, "id": id} | {
        name: trace.header[name] for name in DESCRIPTION if name in trace.header
    }
    page = header | {"engine": trace.engine, "dialect": dict(trace.dialect), "limits": asdict(trace.limits)}
    lines = [f"  {json.dumps(name)}: {to_line(value)}" for name, value in page.items()]
    events = ",\n".join(f"    {to_line(compact_event(event))}" for event in trace.events)
    return "{\n" + ",\n".join(lines) + f',\n  "events": [\n{events}\n  ]\n}}\n'


def to_line(value: object) -> str:
    """Write a JSON value on one line."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def compact_event(event: Event) -> list[object]:
    """Turn an event into its short array; raise InputError for one that a vector cannot hold."""
    match event:
        case Submitted(request, rejected):
            more = {
                "priority": request.priority,
                "prefix": request.prefix,
                "output_blocks": request.output_blocks,
                "rejected": rejected,
            }
            return ["submit", request.id, request.prompt, request.output, *keep(more)]
        case Planned(plan, state):
            more = {"rejected": plan.rejected, "cached": dict(plan.cached)}
            told = keep(more, held=state.held, running=state.running, waiting=state.waiting)
            return ["plan", [list(entry) for entry in plan.entries], list(plan.preempted), state.free, *told]
        case Completed(emitted, finished, free):
            return ["complete", list(emitted), list(finished), free]
        case Cancelled(id):
            return ["cancel", id]
    raise InputError(f"a vector cannot hold {event}")


def keep(more: Mapping[str, object], **told: object) -> list[dict[str, object]]:
    """Keep what is not empty of `more`, and what is told at all of `told`; nothing at all gives no object."""
    kept = {name: value for name, value in more.items() if value} | {
        name: value for name, value in told.items() if value is not None
    }
    return [kept] if kept else []
