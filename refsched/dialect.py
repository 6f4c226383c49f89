"""Dialects: the choice points at which published rules differ, as data.

Defaults stand in `spec/dialects/NAME.json` and nowhere else. A dialect offers only the options its file lists;
an option that it does not offer is refused, never ignored.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache

from refsched import spec
from refsched.errors import InputError
from refsched.model import check_count

Value = str | int | bool


@dataclass(frozen=True, slots=True)
class Dialect:
    """Fix every choice of one published rule; `offered` names the options that its rule looks at."""

    name: str
    rule: str
    offered: frozenset[str]
    policy: str
    order: str
    decode_limit: int
    admission_gate: str
    watermark_blocks: int
    watermark_percent: int
    slot_rounding: str
    chunk_cap_lifted_when_alone: bool
    decode_reserve: str
    decodes_counted: bool
    self_victim: str
    victim_reset: str
    prefix_cache: bool
    planning_rejects: str
    rejection_ends_step: bool
    impossible: str
    stop: str

    def options(self) -> dict[str, Value]:
        """Give the resulting set of options by name, as reports print it."""
        return {name: getattr(self, name) for name in OPTION_NAMES if name in self.offered}


OPTION_NAMES = tuple(field.name for field in fields(Dialect))[3:]


@cache
def read_option_values() -> Mapping[str, Mapping[str, object]]:
    """Read what each choice point means and may be."""
    table: Mapping[str, Mapping[str, object]] = json.loads(spec.read_text("dialects/options.json"))
    return table


@cache
def list_dialects() -> tuple[str, ...]:
    """List the names of the shipped dialects."""
    names = (name.removesuffix(".json") for name in spec.list_names("dialects"))
    return tuple(sorted(name for name in names if name != "options"))


def check_option(name: str, value: object) -> Value:
    """Return `value` if the choice point `name` may have it; raise InputError otherwise."""
    allowed = read_option_values()[name]["values"]
    if allowed == "count" and not isinstance(value, str):
        return check_count(value, name, least=0)
    words: list[str | bool] = allowed if isinstance(allowed, list) else []
    for word in words:
        if value == word and type(value) is type(word):
            return word
    raise InputError(f"{value!r} is not {' or '.join(map(json.dumps, words)) or 'a whole number'}", field=name)


def get_dialect(name: str, overrides: Mapping[str, object] | None = None) -> Dialect:
    """Make the dialect `name` with some options changed; raise InputError for an unknown name or option."""
    if name not in list_dialects():
        raise InputError(f"no dialect named {name!r}; there are {', '.join(list_dialects())}")
    page = json.loads(spec.read_text(f"dialects/{name}.json"))
    if "same_as" in page:
        return get_dialect(page["same_as"], overrides)
    neutral = {option: about["neutral"] for option, about in read_option_values().items()}
    offered = frozenset(page["options"])
    for option in overrides or {}:
        if option not in offered:
            raise InputError(f"dialect {name!r} has no option {option!r}; it has {', '.join(sorted(offered))}")
    changed = {option: check_option(option, value) for option, value in (overrides or {}).items()}
    chosen = neutral | page["options"] | changed
    return Dialect(name=page["name"], rule=page["rule"], offered=offered, **chosen)
