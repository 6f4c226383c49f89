"""Scenarios are read strictly, written in one form, and described by the schema that is published with them."""

import json

import pytest

from refsched import spec
from refsched.conformance.corpus import list_vectors
from refsched.conformance.fuzz import draw_scenarios
from refsched.conformance.scenario_file import FIELDS, MORE, format_scenario, parse_scenario, read_scenario
from refsched.conformance.vectors import read_vector_text
from refsched.errors import InputError

GOOD = {
    "format": "refsched-scenario/1",
    "limits": {"token_budget": 4, "max_seqs": None},
    "arrivals": [[0, "r0", 3, 2], [1, "r1", 2, 1, {"priority": -1, "prefix": [7], "inside": True}]],
    "cancels": [[2, "r0"], [2, "r1", {"inside": True}]],
}
SCHEMA = json.loads(spec.read_text("schema/refsched-scenario-1.json"))


def accepts(schema: dict, value: object) -> bool:
    """Check a value against the few words of JSON Schema that ours uses; written for this test only."""
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "null": type(None)}
    names = schema.get("type", list(kinds))
    names = [names] if isinstance(names, str) else names
    if not any(isinstance(value, kinds[name]) and (name != "integer" or type(value) is int) for name in names):
        return False
    if "const" in schema and value != schema["const"]:
        return False
    if isinstance(value, dict):
        known = schema.get("properties", {})
        if schema.get("additionalProperties") is False and value.keys() - known.keys():
            return False
        return set(schema.get("required", ())) <= value.keys() and all(
            accepts(known[name], each) for name, each in value.items() if name in known
        )
    if isinstance(value, list):
        first = schema.get("prefixItems", [])
        rest = schema.get("items", {}) if "items" in schema else {}
        long_enough = schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value))
        schemas = first[: len(value)] + [rest] * (len(value) - len(first))
        return long_enough and all(accepts(each, item) for each, item in zip(schemas, value))
    if type(value) is int:
        return schema.get("minimum", value) <= value <= schema.get("maximum", value)
    return not isinstance(value, str) or len(value) >= schema.get("minLength", 0)


def test_that_what_is_read_is_written_again() -> None:
    scenario = read_scenario(GOOD)
    assert parse_scenario(format_scenario(scenario)) == scenario
    assert json.loads(format_scenario(scenario))["arrivals"] == GOOD["arrivals"]
    for drawn in draw_scenarios(3, 200):
        assert parse_scenario(format_scenario(drawn)) == drawn


WRONG = (
    ({"format": "refsched-scenario/2"}, "format"),
    ({"limits": {"token_budget": 4}}, "limits.max_seqs"),
    ({"limits": {"token_budget": 4, "max_seqs": 2, "pages": 1}}, "limits.pages"),
    ({"limits": {"token_budget": 0, "max_seqs": 2}}, "token_budget"),
    ({"arrivals": []}, "arrivals"),
    ({"arrivals": {}}, "arrivals"),
    ({"arrivals": [[0, "r0", 3]]}, r"arrivals\[0\]"),
    ({"arrivals": [[-1, "r0", 3, 1]]}, r"arrivals\[0\]"),
    ({"arrivals": [[0, "r0", 3, 1], [0, "r1", 0, 1]]}, r"arrivals\[1\].prompt"),
    ({"arrivals": [[0, 7, 3, 1]]}, r"arrivals\[0\].id"),
    ({"arrivals": [[0, "r0", 3, 1, {"weight": 2}]]}, r"arrivals\[0\]"),
    ({"cancels": [[0, "r9"]]}, "cancels"),
    ({"cancels": [["r0"]]}, r"cancels\[0\]"),
    ({"requires": {"colour": "red"}}, "requires.colour"),
    ({"events": []}, "events"),
    ({"about": 7}, "about"),
)


@pytest.mark.parametrize(("change", "field"), WRONG)
def test_that_what_is_malformed_is_refused_by_its_field(change: dict, field: str) -> None:
    with pytest.raises(InputError, match=field):
        read_scenario(GOOD | change)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"format": 1.5}', '{"format": "a", "format": "b"}'])
def test_that_what_is_no_json_object_is_refused_with_its_file(text: str) -> None:
    with pytest.raises(InputError, match="some.json"):
        parse_scenario(text, "some.json")


def test_that_the_schema_accepts_every_vector_and_knows_every_field() -> None:
    texts = [json.loads(read_vector_text(id)) for id in list_vectors()]
    scenarios = [page for page in texts if page["format"] == "refsched-scenario/1"]
    assert len(scenarios) > 250 and all(accepts(SCHEMA, page) for page in scenarios)
    assert SCHEMA["properties"].keys() == FIELDS
    assert SCHEMA["properties"]["arrivals"]["items"]["prefixItems"][4]["properties"].keys() == MORE


@pytest.mark.parametrize("change", [each for each, field in WRONG if field not in ("requires.colour", "cancels")])
def test_that_the_schema_refuses_what_the_reader_refuses(change: dict) -> None:
    assert accepts(SCHEMA, GOOD) and not accepts(SCHEMA, GOOD | change)
