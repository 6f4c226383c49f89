"""Single edits of a recorded trace: each changes one thing, and says where."""

import copy
import random
from collections.abc import Iterator
from typing import Any

Message = dict[str, Any]
Place = tuple[int, tuple[str | int, ...]]
SKIPPED = {"seq", "note", "format", "name", "about", "recorded_from", "outcome", "engine", "protocol"}


def find_places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Give every value of a message with its path."""
    yield path, value
    if isinstance(value, dict):
        for name, each in value.items():
            if name not in SKIPPED:
                yield from find_places(each, (*path, name))
    elif isinstance(value, list):
        for place, each in enumerate(value):
            yield from find_places(each, (*path, place))


def edit(messages: list[Message], rng: random.Random) -> tuple[list[Message], str, str]:
    """Make one edit; return the messages, what was done, and where (without list positions)."""
    while True:
        kind = rng.choice(
            (
                "off by one",
                "off by one",
                "off by one",
                "swap",
                "drop",
                "duplicate",
                "shift",
                "drop pair",
                "duplicate pair",
                "swap pairs",
            )
        )
        edited = EDITS[kind](messages, rng)
        if edited is not None and edited[0] != messages:
            return edited[0], kind, edited[1]


def pick(messages: list[Message], rng: random.Random, wanted: type) -> tuple[int, tuple[str | int, ...]] | None:
    """Pick a value of a type anywhere after the header."""
    row = rng.randrange(1, len(messages))
    found = [path for path, value in find_places(messages[row]) if type(value) is wanted and path]
    return (row, rng.choice(found)) if found else None


def reach(messages: list[Message], row: int, path: tuple[str | int, ...]) -> tuple[list[Message], Any]:
    """Copy the one message and give the container that holds the place."""
    copied = list(messages)
    copied[row] = copy.deepcopy(messages[row])
    holder: Any = copied[row]
    for step in path[:-1]:
        holder = holder[step]
    return copied, holder


def name(messages: list[Message], row: int, path: tuple[str | int, ...]) -> str:
    """Name a place: operation or answer, and its path without list positions."""
    message = messages[row]
    return ".".join(
        [
            message.get("op", "answer"),
            *(str(step) for step in path if isinstance(step, str) and not step.startswith("r")),
        ]
    )


def off_by_one(messages: list[Message], rng: random.Random) -> tuple[list[Message], str] | None:
    """Change one number by one."""
    place = pick(messages, rng, int)
    if place is None:
        return None
    copied, holder = reach(messages, *place)
    holder[place[1][-1]] += rng.choice((-1, 1))
    return copied, name(messages, *place) + entry_field(place[1])


def entry_field(path: tuple[str | int, ...]) -> str:
    """Tell start from count in an entry."""
    return {1: ".start", 2: ".count"}.get(path[-1], "") if "entries" in path and isinstance(path[-1], int) else ""


def in_list(messages: list[Message], rng: random.Random, least: int) -> tuple[list[Message], list[Any], str] | None:
    """Pick a list of at least so many items that is no entry."""
    place = pick(messages, rng, list)
    if place is None or (len(place[1]) > 1 and place[1][-2] == "entries"):
        return None
    copied, holder = reach(messages, *place)
    items = holder[place[1][-1]]
    return (copied, items, name(messages, *place)) if len(items) >= least else None


def swap(messages: list[Message], rng: random.Random) -> tuple[list[Message], str] | None:
    """Swap two neighbours in a list."""
    found = in_list(messages, rng, 2)
    if found is None:
        return None
    copied, items, where = found
    place = rng.randrange(len(items) - 1)
    items[place], items[place + 1] = items[place + 1], items[place]
    return copied, where


def drop(messages: list[Message], rng: random.Random) -> tuple[list[Message], str] | None:
    """Drop an item of a list."""
    found = in_list(messages, rng, 1)
    if found is None:
        return None
    copied, items, where = found
    del items[rng.randrange(len(items))]
    return copied, where


def duplicate(messages: list[Message], rng: random.Random) -> tuple[list[Message], str] | None:
    """Put an item of a list there twice."""
    found = in_list(messages, rng, 1)
    if found is None:
        return None
    copied, items, where = found
    place = rng.randrange(len(items))
    items.insert(place, copy.deepcopy(items[place]))
    return copied, where


def shift(messages: list[Message], rng: random.Random) -> tuple[list[Message], str] | None:
    """Move an item of a list to another place or, for an entry, move its start with its end fixed."""
    place = pick(messages, rng, list)
    if place is None or len(place[1]) < 2 or place[1][-2] != "entries":
        return None
    copied, holder = reach(messages, *place)
    entry, by = holder[place[1][-1]], rng.choice((-1, 1))
    entry[1], entry[2] = entry[1] + by, entry[2] - by
    return copied, "answer.plan.entries"


def pairs(messages: list[Message]) -> range:
    """Give the rows of requests after hello and reset."""
    return range(5, len(messages) - 1, 2)


def drop_pair(messages: list[Message], rng: random.Random) -> tuple[list[Message], str]:
    """Drop a request and its answer."""
    row = rng.choice(pairs(messages))
    return messages[:row] + messages[row + 2 :], messages[row]["op"]


def duplicate_pair(messages: list[Message], rng: random.Random) -> tuple[list[Message], str]:
    """Put a request and its answer there twice."""
    row = rng.choice(pairs(messages))
    return renumber(messages[: row + 2] + messages[row:]), messages[row]["op"]


def swap_pairs(messages: list[Message], rng: random.Random) -> tuple[list[Message], str] | None:
    """Swap two neighbouring exchanges."""
    rows = pairs(messages)
    if len(rows) < 2:
        return None
    row = rng.choice(rows[:-1])
    moved = messages[:row] + messages[row + 2 : row + 4] + messages[row : row + 2] + messages[row + 4 :]
    return renumber(moved), f"{messages[row]['op']} and {messages[row + 2]['op']}"


def renumber(messages: list[Message]) -> list[Message]:
    """Give the exchanges numbers in order, so that only their order is wrong; results name the plan before them."""
    fixed, plan = [messages[0]], 0
    for place, message in enumerate(messages[1:]):
        seq = place // 2
        plan = seq if message.get("op") == "plan" else plan
        fixed.append({**message, "seq": seq, **({"plan": plan} if message.get("op") == "complete" else {})})
    return fixed


EDITS = {
    "off by one": off_by_one,
    "swap": swap,
    "drop": drop,
    "duplicate": duplicate,
    "shift": shift,
    "drop pair": drop_pair,
    "duplicate pair": duplicate_pair,
    "swap pairs": swap_pairs,
}
