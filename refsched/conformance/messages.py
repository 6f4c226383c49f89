"""The messages of protocol edition 1: each operation with its answer as an event.

A request has `op`, its answer has `ok`, both carry `seq`; on disk they stand in turn.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, NamedTuple

from refsched.conformance.wire import (
    Message,
    Names,
    check_int,
    shorten,
    take_counts,
    take_id,
    take_int,
    take_names,
    take_object,
    take_optional,
)
from refsched.errors import InputError
from refsched.model import Cancelled, Completed, Entry, Event, Failed, Limits, Plan, Planned, Request, State, Submitted

PROTOCOL = 1
LIMIT_NAMES = frozenset(field.name for field in fields(Limits))
COMPLETE = frozenset[str]()


class Claim(NamedTuple):
    """Hold what an engine that decides by itself says about emissions and ends; None where it says nothing."""

    emitted: Names | None
    finished: Names | None


class Told(NamedTuple):
    """Hold one event of a trace, the row of its answer, what was left out, and the engine's own claim."""

    row: int
    event: Event
    omitted: frozenset[str] = COMPLETE
    claim: Claim | None = None
    unsupported: bool = False


# READING


def describe_engine(hello: Message) -> str:
    """Name the engine and its version, as far as its hello tells."""
    engine = take_object(hello, "engine") if "engine" in hello else {}
    return " ".join(str(engine[key]) for key in ("name", "version") if key in engine) or "unknown"


def read_limits(page: Message) -> Limits:
    """Read the limits of a reset."""
    unknown = sorted(page.keys() - LIMIT_NAMES)
    if unknown:
        raise InputError("is not a limit", field=f"limits.{unknown[0]}")
    missing = sorted({"token_budget", "max_seqs"} - page.keys())
    if missing:
        raise InputError("is missing", field=f"limits.{missing[0]}")
    return Limits(**page)


def read_event(row: int, request: Message, answer: Message) -> Told:
    """Read one operation and its answer; one that was not granted is the engine's failure."""
    op = request["op"]
    if not answer["ok"]:
        unsupported = "unsupported" in answer
        return Told(
            row, Failed(op, str(answer["unsupported"] if unsupported else answer.get("error"))), unsupported=unsupported
        )
    return READERS[op](row, request, answer)


def read_submit(row: int, request: Message, answer: Message) -> Told:
    """Read a submission, and the reason if it was refused."""
    prefix, outputs = (take_optional(request, name, take_numbers, ()) for name in ("prefix", "output_blocks"))
    priority = take_optional(request, "priority", take_int, 0)
    asked = Request(
        take_id(request), take_int(request, "prompt"), take_int(request, "output"), priority, prefix, outputs
    )
    return Told(row, Submitted(asked, take_optional(answer, "rejected", take_text)))


def take_numbers(message: Message, name: str) -> tuple[int, ...]:
    """Take a list of integers that stand for the contents of blocks."""
    value = message[name]
    if not isinstance(value, list) or not all(type(each) is int for each in value):
        raise InputError(f"{shorten(value)} is not a list of whole numbers", field=name)
    return tuple(value)


def take_text(message: Message, name: str) -> str:
    """Take a text."""
    if not isinstance(message[name], str):
        raise InputError(f"{shorten(message[name])} is not a text", field=name)
    return str(message[name])


def read_plan(row: int, request: Message, answer: Message) -> Told:
    """Read a plan and the state told with it."""
    page = take_object(answer, "plan")
    unknown = page.keys() - {"entries", "preempted", "rejected", "cached"}
    if unknown:
        raise InputError("is not a field of a plan", field=f"plan.{min(unknown)}")
    if not isinstance(page.get("entries"), list):
        raise InputError("is not a list of entries", field="plan.entries")
    entries = tuple([read_entry(entry) for entry in page["entries"]])
    preempted, rejected = (take_optional(page, name, take_names, ()) for name in ("preempted", "rejected"))
    cached = take_optional(answer if "cached" in answer else page, "cached", take_counts)
    omitted = [name for name in ("preempted", "rejected") if name not in page] + ["cached"] * (cached is None)
    plan = Plan(entries, preempted, rejected, tuple((cached or {}).items()))
    return Told(row, Planned(plan, read_state(answer)), frozenset(omitted) if omitted else COMPLETE)


def read_entry(entry: Any) -> Entry:
    """Read one [id, start, count]; a wrong count is for the judge to name, a wrong type is not."""
    if not isinstance(entry, list) or len(entry) != 3 or not isinstance(entry[0], str):
        raise InputError(f"{shorten(entry)} is not [id, start, count]", field="plan.entries")
    return Entry(entry[0], check_int(entry[1], "plan.entries"), check_int(entry[2], "plan.entries"))


def read_state(answer: Message) -> State:
    """Read queues and blocks as far as they are told."""
    free, held = read_blocks(answer)
    running, waiting = (take_optional(answer, name, take_names) for name in ("running", "waiting"))
    return State(running, waiting, None, held, free)


def read_blocks(answer: Message) -> tuple[int | None, Mapping[str, int] | None]:
    """Read free and held blocks as far as they are told."""
    kv = take_optional(answer, "kv", take_object)
    if kv is None:
        return None, None
    unknown = kv.keys() - {"free", "held"}
    if unknown:
        raise InputError("is not told of the pool", field=f"kv.{min(unknown)}")
    return take_optional(kv, "free", take_int), take_optional(kv, "held", take_counts)


def read_complete(row: int, request: Message, answer: Message) -> Told:
    """Read who emitted and who ended, and what the engine itself says about it."""
    emitted, finished, own_emitted, own_finished = (
        take_optional(message, name, take_names) for message in (request, answer) for name in ("emitted", "finished")
    )
    omitted = frozenset(name for name, ids in (("emitted", emitted), ("finished", finished)) if ids is None)
    claim = None if own_emitted is None and own_finished is None else Claim(own_emitted, own_finished)
    return Told(row, Completed(emitted or (), finished or (), read_blocks(answer)[0]), omitted, claim)


def read_cancel(row: int, request: Message, answer: Message) -> Told:
    """Read whom the client gave up."""
    return Told(row, Cancelled(take_id(request)))


READERS: Mapping[str, Callable[[int, Message, Message], Told]] = {
    "submit": read_submit,
    "plan": read_plan,
    "complete": read_complete,
    "cancel": read_cancel,
}
