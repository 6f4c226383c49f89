"""Scenarios: what is offered to an engine under which limits, so that everything it then decides can be judged.

A scenario tells nothing about the decisions; the judge knows which are right. Arrivals and cancellations come before
the plan of their iteration, or `inside` it: while that plan is outstanding.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from refsched.conformance.messages import read_limits
from refsched.conformance.wire import check_int, parse_line, shorten, take_object, take_optional
from refsched.dialect import OPTION_NAMES, Value
from refsched.errors import InputError
from refsched.model import Limits, Request

SCENARIO_FORMAT = "refsched-scenario/1"
EDITION = 1
LATEST = 100_000  # iterations; nothing comes later
FIELDS = frozenset(
    ("format", "id", "edition", "about", "origin", "clauses", "requires", "limits", "arrivals", "cancels")
)
MORE = frozenset(("priority", "prefix", "output_blocks", "inside"))
Page = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Arrival:
    """Offer a request in iteration `at`: before its plan, or inside it."""

    at: int
    request: Request
    inside: bool = False


@dataclass(frozen=True, slots=True)
class Cancel:
    """Give a request up in iteration `at`, if it is still live then: before its plan, or inside it."""

    at: int
    id: str
    inside: bool = False


@dataclass(frozen=True, slots=True)
class Scenario:
    """Hold one scenario; `requires` are the options of a dialect without which it shows nothing."""

    limits: Limits
    arrivals: tuple[Arrival, ...]
    cancels: tuple[Cancel, ...] = ()
    id: str = ""
    about: str = ""
    origin: str = ""
    clauses: tuple[str, ...] = ()
    requires: Mapping[str, Value] = field(default_factory=dict)
    edition: int = EDITION

    def count_tokens(self) -> int:
        """Count prompt and output tokens of all requests."""
        return sum(each.request.prompt + each.request.output for each in self.arrivals)

    def needs_prefixes(self) -> bool:
        """Tell whether a prompt has blocks of known content."""
        return any(each.request.prefix or each.request.output_blocks for each in self.arrivals)


# READING


def parse_scenario(text: str, file: str | None = None) -> Scenario:
    """Read a scenario from JSON text; raise InputError naming file and field where it is not one."""
    try:
        return read_scenario(parse_line(text))
    except InputError as error:
        raise error.at(file=file) from None


def read_scenario(page: Page) -> Scenario:
    """Read a scenario from its page; raise InputError naming the field where it is not one."""
    if page.get("format") != SCENARIO_FORMAT:
        raise InputError(f"is not {json.dumps(SCENARIO_FORMAT)}", field="format")
    unknown = page.keys() - FIELDS
    if unknown:
        raise InputError("is not a field of a scenario", field=min(unknown))
    limits = read_limits(take_object(page, "limits"))
    arrivals = tuple(read_arrival(each, place) for place, each in enumerate(take_list(page, "arrivals")))
    cancels = tuple(read_cancel(each, place) for place, each in enumerate(take_list(page, "cancels")))
    id, about, origin = (take_text(page, name) for name in ("id", "about", "origin"))
    clauses = tuple(str(each) for each in take_list(page, "clauses"))
    edition = take_optional(page, "edition", lambda page, name: check_int(page[name], name), EDITION)
    scenario = Scenario(limits, arrivals, cancels, id, about, origin, clauses, read_requires(page), edition)
    check_scenario(scenario)
    return scenario


def check_scenario(scenario: Scenario) -> None:
    """Refuse a scenario without requests, or with a cancellation of nobody; an id may come twice, as in MOD-REQ-1."""
    ids = [each.request.id for each in scenario.arrivals]
    if not ids:
        raise InputError("is empty", field="arrivals")
    for cancel in scenario.cancels:
        if cancel.id not in ids:
            raise InputError(f"{cancel.id!r} is not the id of an arrival", field="cancels")


def take_list(page: Page, name: str) -> list[Any]:
    """Take a list that may be absent."""
    value = page.get(name, [])
    if not isinstance(value, list):
        raise InputError(f"{shorten(value)} is not a list", field=name)
    return value


def take_text(page: Page, name: str) -> str:
    """Take a text that may be absent."""
    value = page.get(name, "")
    if not isinstance(value, str):
        raise InputError(f"{shorten(value)} is not a text", field=name)
    return value


def read_requires(page: Page) -> Mapping[str, Value]:
    """Read the options that a scenario needs."""
    requires: Mapping[str, Value] = take_object(page, "requires") if "requires" in page else {}
    unknown = requires.keys() - set(OPTION_NAMES)
    if unknown:
        raise InputError("is not an option of a dialect", field=f"requires.{min(unknown)}")
    return requires


def read_arrival(value: Any, place: int) -> Arrival:
    """Read [iteration, id, prompt, output, more?]."""
    name = f"arrivals[{place}]"
    if not isinstance(value, list) or len(value) not in (4, 5):
        raise InputError(f"{shorten(value)} is not [iteration, id, prompt, output, more?]", field=name)
    at, id, prompt, output = value[:4]
    more = read_more(value[4:], name, MORE)
    prefix, outputs = (
        tuple(check_int(each, name) for each in more.get(key, ())) for key in ("prefix", "output_blocks")
    )
    try:
        request = Request(id, prompt, output, more.get("priority", 0), prefix, outputs)
    except InputError as error:
        raise InputError(error.problem, field=f"{name}.{error.field}") from None
    return Arrival(read_at(at, name), request, bool(more.get("inside", False)))


def read_cancel(value: Any, place: int) -> Cancel:
    """Read [iteration, id, more?]."""
    name = f"cancels[{place}]"
    if not isinstance(value, list) or len(value) not in (2, 3) or not isinstance(value[1], str):
        raise InputError(f"{shorten(value)} is not [iteration, id, more?]", field=name)
    more = read_more(value[2:], name, frozenset(("inside",)))
    return Cancel(read_at(value[0], name), value[1], bool(more.get("inside", False)))


def read_more(rest: list[Any], name: str, known: frozenset[str]) -> Page:
    """Read the object in which stands what is rarely there."""
    more = rest[0] if rest else {}
    if not isinstance(more, dict) or more.keys() - known:
        raise InputError(f"{shorten(more)} is not an object of {', '.join(sorted(known))}", field=name)
    return more


def read_at(value: object, name: str) -> int:
    """Read the number of an iteration."""
    at = check_int(value, name)
    if not 0 <= at <= LATEST:
        raise InputError(f"{at} is not an iteration from 0 to {LATEST}", field=name)
    return at


# WRITING


def format_scenario(scenario: Scenario) -> str:
    """Write a scenario in canonical form: one line per field, and one per arrival and cancellation."""
    page = to_page(scenario)
    lines = [f"  {json.dumps(name)}: {format_value(value)}" for name, value in page.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def format_value(value: object) -> str:
    """Write a value on one line, or a list of lists with one line each."""
    if not isinstance(value, list) or not value or not isinstance(value[0], list):
        return json.dumps(value, ensure_ascii=False)
    return "[\n" + ",\n".join(f"    {json.dumps(each, ensure_ascii=False)}" for each in value) + "\n  ]"


def to_page(scenario: Scenario) -> dict[str, object]:
    """Give the page of a scenario; what is empty is left out."""
    texts = {"id": scenario.id, "edition": scenario.edition, "about": scenario.about, "origin": scenario.origin}
    lists = {"clauses": list(scenario.clauses), "requires": dict(scenario.requires)}
    named: dict[str, object] = {name: value for name, value in (texts | lists).items() if value}
    limits = {name: value for name, value in asdict(scenario.limits).items() if value is not None}
    limits = {"token_budget": scenario.limits.token_budget, "max_seqs": scenario.limits.max_seqs} | limits
    cancels = [[each.at, each.id, *([{"inside": True}] if each.inside else [])] for each in scenario.cancels]
    page = {"format": SCENARIO_FORMAT, **named, "limits": limits, "arrivals": [*map(write_arrival, scenario.arrivals)]}
    return page | ({"cancels": cancels} if cancels else {})


def write_arrival(arrival: Arrival) -> list[object]:
    """Write [iteration, id, prompt, output, more?]."""
    request = arrival.request
    lists = {"prefix": list(request.prefix), "output_blocks": list(request.output_blocks)}
    more = {"priority": request.priority, **lists, "inside": arrival.inside}
    kept = {name: value for name, value in more.items() if value}
    return [arrival.at, request.id, request.prompt, request.output, *([kept] if kept else [])]
