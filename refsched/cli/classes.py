"""Reading --split: classes of work, each with limits of its own [A23]."""

from dataclasses import fields, replace

from refsched.cli.common import read_count
from refsched.errors import InputError
from refsched.model import Limits

FIELD = "--split"
LIMIT_NAMES = tuple(field.name for field in fields(Limits))


def parse_split(text: str, limits: Limits) -> dict[str, Limits]:
    """Read "group=chat:token_budget=512;report:token_budget=4096": what a class does not name it shares with all.

    Raise InputError for anything else, a class that is named twice included.
    """
    head, equals, rest = text.partition("=")
    if head != "group" or not equals:
        raise InputError("must begin with group=", field=FIELD)
    classes: dict[str, Limits] = {}
    for part in rest.split(";"):
        name, _, settings = part.partition(":")
        if not name or name in classes:
            raise InputError(f"{part!r} does not name one more group", field=FIELD)
        classes[name] = parse_limits(settings, limits)
    return classes


def parse_limits(text: str, limits: Limits) -> Limits:
    """Change some of the limits: "token_budget=512,max_seqs=8"."""
    changes: dict[str, int] = {}
    for pair in text.split(",") if text else ():
        name, equals, value = pair.partition("=")
        if not equals or name not in LIMIT_NAMES or name in changes:
            raise InputError(f"{pair!r} is not one more of {', '.join(LIMIT_NAMES)}, with its number", field=FIELD)
        changes[name] = read_count(value, f"{FIELD}: {name}")
    return replace(limits, **changes)
