"""Witnesses and examples: short traces written as arrays, expanded into the lines of a recorded trace.

["submit", id, prompt, output, more?], ["plan", entries, preempted, free, more?], ["complete", emitted, finished, free,
more?], ["cancel", id], ["error", op, text]; null stands for what is not told.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from refsched import spec
from refsched.conformance.choice import choose_dialect
from refsched.conformance.recording import TRACE_FORMAT, Recording
from refsched.conformance.verdict import Verdict, judge

Page = Mapping[str, Any]
Event = Sequence[Any]
Exchange = tuple[dict[str, Any], dict[str, Any]]


def expand_submit(event: Event) -> Exchange:
    """Expand a submission."""
    more = dict(event[4]) if len(event) > 4 else {}
    answer = {"ok": True, **({"rejected": more.pop("rejected")} if "rejected" in more else {})}
    return {"op": "submit", "id": event[1], "prompt": event[2], "output": event[3], **more}, answer


def expand_plan(event: Event) -> Exchange:
    """Expand a plan; `preempted` null leaves out whom it preempted."""
    more = dict(event[4]) if len(event) > 4 else {}
    told = {"free": event[3], "held": more.pop("held", None)}
    kv = {name: value for name, value in told.items() if value is not None}
    plan = {
        "entries": event[1],
        **({} if event[2] is None else {"preempted": event[2]}),
        "rejected": more.pop("rejected", []),
    }
    return {"op": "plan"}, {"ok": True, "plan": plan, **({"kv": kv} if kv else {}), **more}


def expand_complete(event: Event) -> Exchange:
    """Expand a result; `emitted` or `finished` null leaves it out."""
    told = {name: ids for name, ids in (("emitted", event[1]), ("finished", event[2])) if ids is not None}
    kv = {} if len(event) < 4 or event[3] is None else {"kv": {"free": event[3]}}
    return {"op": "complete", **told}, {"ok": True, **kv, **(event[4] if len(event) > 4 else {})}


EXPANDERS: Mapping[str, Callable[[Event], Exchange]] = {
    "submit": expand_submit,
    "plan": expand_plan,
    "complete": expand_complete,
    "cancel": lambda event: ({"op": "cancel", "id": event[1]}, {"ok": True}),
    "error": lambda event: ({"op": event[1]}, {"ok": False, "error": event[2]}),
}


def expand(page: Page) -> Iterator[str]:
    """Give the lines of the recorded trace that a page stands for; "open": true leaves out the goodbye."""
    yield json.dumps({"format": TRACE_FORMAT, "name": page.get("about", "")})
    hello = {"ok": True, **({"dialect": page["dialect"]} if "dialect" in page else {})}
    exchanges: list[Exchange] = [
        ({"op": "hello", "protocol": 1}, hello),
        ({"op": "reset", "limits": page["limits"]}, {"ok": True}),
    ]
    exchanges += [EXPANDERS[event[0]](event) for event in page["events"]]
    exchanges += [] if page.get("open") else [({"op": "bye"}, {"ok": True})]
    for seq, (request, answer) in enumerate(exchanges):
        yield json.dumps({"seq": seq, **request})
        yield json.dumps({"seq": seq, **answer})


def judge_page(page: Page) -> Verdict:
    """Judge the trace that a page stands for."""
    recording = Recording(expand(page))
    choice = choose_dialect(recording.opening.dialect)
    return judge(recording.opening, recording.events(), choice).conclude(recording.closed)


def list_witnesses() -> list[str]:
    """List the clauses that have witnesses."""
    return [name.removesuffix(".json") for name in spec.list_names("witnesses")]


def get_witnesses(clause: str) -> Page:
    """Read the traces that pass and those that are rejected for a clause."""
    page: Page = json.loads(spec.read_text(f"witnesses/{clause}.json"))
    return page
