"""Every malformed line of a trace is refused with file, row and field; what may be left out stays open."""

import json
from typing import Any

import pytest

from refsched.conformance.recording import Recording, read_trace
from refsched.conformance.wire import LONGEST_LINE
from refsched.errors import InputError
from refsched.model import Completed, Planned
from tests.conformance.judging import judge_lines

GOOD = [
    {"format": "refsched-trace/1", "name": "x"},
    {"seq": 0, "op": "hello", "protocol": 1},
    {"seq": 0, "ok": True, "engine": {"name": "e", "version": "1"}, "dialect": {"name": "vllm-v1"}},
    {"seq": 1, "op": "reset", "limits": {"token_budget": 8, "max_seqs": 2, "num_blocks": 4, "block_size": 2}},
    {"seq": 1, "ok": True},
    {"seq": 2, "op": "submit", "id": "r0", "prompt": 4, "output": 1},
    {"seq": 2, "ok": True},
    {"seq": 3, "op": "plan"},
    {
        "seq": 3,
        "ok": True,
        "plan": {"entries": [["r0", 0, 4]], "preempted": [], "rejected": []},
        "kv": {"free": 2, "held": {"r0": 2}},
        "running": ["r0"],
        "waiting": [],
    },
    {"seq": 4, "op": "complete", "plan": 3, "emitted": ["r0"], "finished": ["r0"]},
    {"seq": 4, "ok": True, "kv": {"free": 4}},
    {"seq": 5, "op": "bye"},
    {"seq": 5, "ok": True},
]


def write(messages: list[Any]) -> list[str]:
    return [json.dumps(message) for message in messages]


def changed(row: int, **fields: object) -> list[str]:
    """Change some fields of one row (counted from 1); None removes a field."""
    messages = [dict(message) for message in GOOD]
    messages[row - 1] = {name: value for name, value in (messages[row - 1] | fields).items() if value is not ...}
    return write(messages)


def raw(row: int, line: str) -> list[str]:
    lines = write(GOOD)
    lines[row - 1] = line
    return lines


MALFORMED = {
    "no header": (write(GOOD[1:]), 1, "format"),
    "empty file": ([], 0, "format"),
    "other format": (changed(1, format="refsched-trace/2"), 1, "format"),
    "not JSON": (raw(6, "{"), 6, None),
    "an array": (raw(6, "[]"), 6, None),
    "a float": (raw(6, '{"seq":2,"op":"submit","id":"r0","prompt":4.0,"output":1}'), 6, None),
    "NaN": (raw(6, '{"seq":2,"op":"submit","id":"r0","prompt":NaN,"output":1}'), 6, None),
    "a name twice": (raw(6, '{"seq":2,"op":"submit","id":"r0","prompt":4,"prompt":5,"output":1}'), 6, None),
    "a huge integer": (raw(6, '{"seq":2,"op":"submit","id":"r0","prompt":' + "9" * 5000 + ',"output":1}'), 6, None),
    "deep nesting": (raw(6, "[" * 100_000), 6, None),
    "a line without end": (raw(6, "x" * (LONGEST_LINE + 1)), 6, None),
    "no hello": (write([GOOD[0], *GOOD[3:]]), 3, None),
    "no reset": (write([*GOOD[:3], *GOOD[5:]]), 5, None),
    "an unknown limit": (
        changed(4, limits={"token_budget": 8, "max_seqs": 2, "max_nothing": 1}),
        5,
        "limits.max_nothing",
    ),
    "a missing limit": (changed(4, limits={"token_budget": 8}), 5, "limits.max_seqs"),
    "a limit of zero": (changed(4, limits={"token_budget": 0, "max_seqs": 2}), 5, "token_budget"),
    "an unknown operation": (changed(6, op="sumbit"), 6, "op"),
    "an unknown field": (changed(6, promt=4), 6, "promt"),
    "a missing prompt": (changed(6, prompt=...), 6, "prompt"),
    "a prompt of zero": (changed(6, prompt=0), 6, "prompt"),
    "a prompt in text": (changed(6, prompt="4"), 6, "prompt"),
    "a prompt that is true": (changed(6, prompt=True), 6, "prompt"),
    "an id that is a number": (changed(6, id=7), 6, "id"),
    "an empty id": (changed(6, id=""), 6, "id"),
    "a seq that goes back": (changed(6, seq=1), 6, "seq"),
    "an answer to another request": (changed(7, seq=3), 7, "seq"),
    "an answer without ok": (changed(7, ok=...), 7, "ok"),
    "two requests in a row": (write([*GOOD[:6], *GOOD[7:]]), 7, None),
    "the end before the answer": (write(GOOD[:6]), 6, None),
    "an entry of two": (changed(9, plan={"entries": [["r0", 0]]}), 9, "plan.entries"),
    "an entry in text": (changed(9, plan={"entries": [["r0", 0, "4"]]}), 9, "plan.entries"),
    "an unknown field of a plan": (changed(9, plan={"entries": [], "victims": []}), 9, "plan.victims"),
    "entries missing": (changed(9, plan={}), 9, "plan.entries"),
    "an unknown field of kv": (changed(9, kv={"used": 2}), 9, "kv.used"),
    "held blocks in text": (changed(9, kv={"held": {"r0": "2"}}), 9, "held.r0"),
    "a queue that is no list": (changed(9, running="r0"), 9, "running"),
    "the result of another plan": (changed(10, plan=2), 10, "plan"),
    "emissions that are no list": (changed(10, emitted="r0"), 10, "emitted"),
    "a result without a plan": (write([*GOOD[:7], *GOOD[9:]]), 8, None),
    "a plan while one is outstanding": (write([*GOOD[:9], {"seq": 4, "op": "plan"}, {**GOOD[8], "seq": 4}]), 11, None),
    "something after bye": (write([*GOOD, {"seq": 6, "op": "plan"}, {**GOOD[8], "seq": 6}]), 15, None),
    "a second reset": (write([*GOOD[:5], {**GOOD[3], "seq": 2}, {"seq": 2, "ok": True}]), 6, None),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_that_a_malformed_line_is_refused_with_its_place(name: str) -> None:
    lines, row, field = MALFORMED[name]
    with pytest.raises(InputError) as caught:
        list(Recording(lines, "run.jsonl").events())
    assert (caught.value.file, caught.value.row) == ("run.jsonl", row)
    assert caught.value.field == (field if field is not None else caught.value.field)
    assert "\n" not in str(caught.value)


def test_that_bytes_which_are_not_utf_8_are_refused() -> None:
    lines = [line.encode() for line in write(GOOD)]
    lines[5] = b'{"seq":2,"op":"submit","id":"\xff","prompt":4,"output":1}'
    with pytest.raises(InputError, match="row 6"):
        read_trace(lines)


def test_that_a_good_trace_is_read_and_judged() -> None:
    trace = read_trace(write(GOOD))
    assert [type(event).__name__ for event in trace.events] == ["Submitted", "Planned", "Completed"]
    verdict = judge_lines(write(GOOD))
    assert (verdict.relation, verdict.liveness.kind, verdict.inconclusive) == ("exact", "live", ())


def test_that_cached_tokens_are_read_beside_the_plan_and_inside_it() -> None:
    for place in ({"cached": {"r0": 0}}, {"plan": GOOD[8]["plan"] | {"cached": {"r0": 0}}}):  # type: ignore[operator]
        planned = read_trace(changed(9, **place)).events[1]
        assert isinstance(planned, Planned) and planned.plan.cached == (("r0", 0),)


def test_that_headers_are_free_and_blank_lines_between_exchanges_are_fine() -> None:
    lines = changed(1, rate=0.5)
    assert read_trace([*lines[:5], "", "  ", *lines[5:]]).header["rate"] == 0.5


# PARTIAL TRACES


@pytest.mark.parametrize(
    ("row", "fields", "opened"),
    [
        (9, {"kv": ...}, {"KV-CONS-1", "KV-HOLD-1", "KV-KEEP-1", "KV-FREE-1"}),
        (9, {"kv": {"free": 2}}, {"KV-CONS-1", "KV-HOLD-1", "KV-KEEP-1", "KV-FREE-1"}),
        (9, {"running": ...}, {"SCH-SEQ-2", "SCH-QUE-1"}),
        (9, {"waiting": ...}, {"SCH-QUE-1"}),
        (11, {"kv": ...}, {"KV-CONS-1", "KV-FREE-1", "KV-DRAIN-1"}),
        (10, {"emitted": ...}, {"SCH-OUT-1", "SCH-OUT-2", "SCH-OUT-3"}),
        (10, {"finished": ...}, {"SCH-OUT-3"}),
    ],
)
def test_that_what_is_not_told_opens_its_clauses_and_nothing_else(
    row: int, fields: dict[str, object], opened: set[str]
) -> None:
    verdict = judge_lines(changed(row, **fields))
    assert set(verdict.inconclusive) == opened and not opened & set(verdict.passed)
    assert (verdict.relation, verdict.liveness.kind) == ("exact", "live")


def test_that_nothing_beyond_safety_is_found_where_preemptions_are_not_told() -> None:
    verdict = judge_lines(changed(9, plan={"entries": [["r0", 0, 4]]}))
    assert verdict.relation == "safe" and not verdict.conforms() and "preempted" in str(verdict.unsupported)
    assert {"SCH-PRE-1", "SCH-RNG-2", "KV-KEEP-1"} <= set(verdict.inconclusive)


def test_that_refusals_not_told_open_the_queues_and_more_where_the_dialect_refuses_late() -> None:
    plan = {"entries": [["r0", 0, 4]], "preempted": []}
    verdict = judge_lines(changed(9, plan=plan))
    assert (verdict.relation, verdict.inconclusive) == ("exact", ("SCH-QUE-1",))
    lines = changed(9, plan=plan)
    lines[2] = lines[2].replace("vllm-v1", "vllm-v0")
    assert judge_lines(lines).relation == "safe"


def test_that_an_engine_that_cannot_cancel_is_not_blamed() -> None:
    messages = [*GOOD[:7], {"seq": 3, "op": "cancel", "id": "r0"}, {"seq": 3, "ok": False, "unsupported": "cancel"}]
    messages += [
        {**message, "seq": message["seq"] + 1} | ({"plan": 4} if message.get("op") == "complete" else {})
        for message in GOOD[7:]
    ]
    assert judge_lines(write(messages)).relation == "exact"


def test_that_results_left_out_are_supplied() -> None:
    trace = judge_lines(changed(10, emitted=..., finished=...))
    assert trace.totals.emitted == 1 and trace.totals.finished == 1
    told = next(told for told in Recording(changed(10, emitted=...)).events() if isinstance(told.event, Completed))
    assert told.omitted == {"emitted"}


def test_that_an_engine_that_cannot_plan_is_no_engine() -> None:
    messages = [*GOOD[:8], {"seq": 3, "ok": False, "unsupported": "plan"}]
    verdict = judge_lines(write(messages))
    assert [breach.clause for breach in verdict.broken] == ["MOD-ANS-1"] and verdict.liveness.kind == "unknown"
