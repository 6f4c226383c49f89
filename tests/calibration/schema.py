"""As much of JSON Schema as the calibration file's schema uses; an unknown keyword fails, so that none is ignored."""

import json
from collections.abc import Iterator
from typing import Any

from refsched import spec

SCHEMA = json.loads(spec.read_text("schema/calibration-1.json"))
TYPES = {
    "object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float),
    "null": type(None),
}  # fmt: skip
SILENT = {"$schema", "$defs", "title", "description"}


def find_faults(value: Any, schema: Any = SCHEMA, place: str = "") -> Iterator[str]:
    """Name every place where a value breaks the schema."""
    for keyword, wanted in schema.items():
        if keyword not in SILENT:
            yield from RULES[keyword](value, wanted, schema, place)


def check_type(value: Any, wanted: Any, schema: Any, place: str) -> Iterator[str]:
    names = wanted if isinstance(wanted, list) else [wanted]
    kinds = tuple(TYPES[name] for name in names)
    if not isinstance(value, kinds) or (isinstance(value, bool) and "boolean" not in names):  # type: ignore[arg-type]
        yield f"{place}: {value!r} is no {wanted}"


def check_required(value: Any, wanted: Any, schema: Any, place: str) -> Iterator[str]:
    yield from (f"{place}.{name} is missing" for name in wanted if isinstance(value, dict) and name not in value)


def check_properties(value: Any, wanted: Any, schema: Any, place: str) -> Iterator[str]:
    for name, inner in wanted.items():
        if isinstance(value, dict) and name in value:
            yield from find_faults(value[name], inner, f"{place}.{name}")


def check_additional(value: Any, wanted: Any, schema: Any, place: str) -> Iterator[str]:
    assert wanted is False
    yield from (f"{place}.{name} is unknown" for name in value if name not in schema["properties"])


def check_items(value: Any, wanted: Any, schema: Any, place: str) -> Iterator[str]:
    for number, item in enumerate(value if isinstance(value, list) else []):
        yield from find_faults(item, wanted, f"{place}[{number}]")


def check_reference(value: Any, wanted: Any, schema: Any, place: str) -> Iterator[str]:
    yield from find_faults(value, SCHEMA["$defs"][wanted.removeprefix("#/$defs/")], place)


def check_value(value: Any, allowed: list[Any], place: str) -> Iterator[str]:
    if value not in allowed:
        yield f"{place}: {value!r} is none of {allowed}"


def check_minimum(value: Any, wanted: Any, schema: Any, place: str) -> Iterator[str]:
    if isinstance(value, int | float) and value < wanted:
        yield f"{place}: {value} is below {wanted}"


RULES = {
    "type": check_type,
    "required": check_required,
    "properties": check_properties,
    "additionalProperties": check_additional,
    "items": check_items,
    "$ref": check_reference,
    "const": lambda value, wanted, schema, place: check_value(value, [wanted], place),
    "enum": lambda value, wanted, schema, place: check_value(value, wanted, place),
    "minimum": check_minimum,
}
