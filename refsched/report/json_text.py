"""JSON with exact numbers: a rational that is a finite decimal is written in full, never through a float."""

import json
from collections.abc import Mapping
from decimal import Decimal, localcontext
from fractions import Fraction

from refsched.units import format_decimal

SIGNIFICANT_DIGITS = 17
LINE = 100
Json = object


def to_json_text(value: Json, indent: str = "") -> str:
    """Write a value of dicts, lists, strings, integers, rationals, booleans and None as JSON.

    What fits a line stands on one line; the rest is indented.
    """
    line = to_line(value)
    if len(line) <= LINE or not isinstance(value, Mapping | list | tuple):
        return line
    inner = indent + "  "
    if isinstance(value, Mapping):
        parts = [f"{inner}{json.dumps(str(key))}: {to_json_text(item, inner)}" for key, item in value.items()]
    else:
        parts = [inner + to_json_text(item, inner) for item in value]
    first, last = "{}" if isinstance(value, Mapping) else "[]"
    return f"{first}\n" + ",\n".join(parts) + f"\n{indent}{last}"


def to_line(value: Json) -> str:
    """Write a value on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(str(key))}: {to_line(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(to_line, value)) + "]"
    return format_number(value) if isinstance(value, Fraction) else json.dumps(value, allow_nan=False)


def format_number(value: Fraction) -> str:
    """Write a rational exactly where it is a finite decimal, rounded to 17 significant digits otherwise."""
    exact = format_decimal(value)
    if exact is not None:
        return exact
    with localcontext() as context:
        context.prec = SIGNIFICANT_DIGITS
        return f"{Decimal(value.numerator) / Decimal(value.denominator):f}"


def get_exact(values: Mapping[str, Fraction | None]) -> dict[str, str]:
    """Give, as text, the rationals among `values` that are no finite decimal and were therefore rounded."""
    return {name: str(value) for name, value in values.items() if value is not None and format_decimal(value) is None}
