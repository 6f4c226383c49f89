"""The wire: one JSON object a line, and fields taken from it with every doubt named.

Nothing here knows what a message means. Numbers are integers; an object has no name twice; a line has a bounded length.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from refsched.errors import InputError
from refsched.model import LARGEST_COUNT

LONGEST_LINE = 1 << 24  # characters; a longer line is junk, not a message
Message = Mapping[str, Any]
Names = tuple[str, ...]
NOTE = frozenset({"seq", "note"})  # every message may carry them


# LINES


def parse_line(line: str | bytes, decoder: json.JSONDecoder | None = None) -> Message:
    """Read one JSON object; raise InputError for anything else."""
    if len(line) > LONGEST_LINE:
        raise InputError(f"is longer than {LONGEST_LINE} characters")
    try:
        text = line.decode() if isinstance(line, bytes) else line
        message = (decoder or DECODER).decode(text.strip())
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not JSON: {error}") from None
    if not isinstance(message, dict):
        raise InputError("is not a JSON object")
    return message


def refuse_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object, refusing a name that stands in it twice."""
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{max(names, key=names.count)!r} stands twice in one object")
    return made


def refuse_number(text: str) -> float:
    """Refuse floats, NaN and Infinity: every number of a trace is an integer."""
    raise ValueError(f"{text} is not an integer")


LOOSE = json.JSONDecoder(object_pairs_hook=refuse_repeats)  # for headers, which are description
DECODER = json.JSONDecoder(object_pairs_hook=refuse_repeats, parse_float=refuse_number, parse_constant=refuse_number)


def check_fields(message: Message, known: frozenset[str]) -> None:
    """Refuse a field that the message does not have."""
    unknown = message.keys() - known - NOTE
    if unknown:
        raise InputError("is not a field of this message", field=min(unknown))


# FIELDS


def take_int(message: Message, name: str) -> int:
    """Take an integer that is not absurdly large."""
    if name not in message:
        raise InputError("is missing", field=name)
    return check_int(message[name], name)


def check_int(value: object, name: str) -> int:
    """Return `value` if it is an integer that is not absurdly large."""
    if type(value) is not int or not -LARGEST_COUNT <= value <= LARGEST_COUNT:
        raise InputError(f"{shorten(value)} is not a whole number of at most {LARGEST_COUNT}", field=name)
    return value


def shorten(value: object) -> str:
    """Show a value in one short line."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def take_object(message: Message, name: str) -> Message:
    """Take an object."""
    if name not in message:
        raise InputError("is missing", field=name)
    if not isinstance(message[name], dict):
        raise InputError(f"{shorten(message[name])} is not an object", field=name)
    value: Message = message[name]
    return value


def take_names(message: Message, name: str) -> Names:
    """Take a list of request ids."""
    value = message[name]
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise InputError(f"{shorten(value)} is not a list of ids", field=name)
    return tuple(value)


def take_counts(message: Message, name: str) -> Mapping[str, int]:
    """Take a map from request ids to integers."""
    value = take_object(message, name)
    for id, count in value.items():
        check_int(count, f"{name}.{id}")
    return value


def take_id(message: Message) -> str:
    """Take the id of a request."""
    if not isinstance(message.get("id"), str):
        raise InputError("is missing" if "id" not in message else f"{shorten(message['id'])} is not an id", field="id")
    return str(message["id"])


def take_optional(message: Message, name: str, take: Callable[[Message, str], Any], default: Any = None) -> Any:
    """Take a field that may be absent or null."""
    return default if message.get(name) is None else take(message, name)
