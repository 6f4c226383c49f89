"""The reference engine decides as the real schedulers did, in every recorded iteration."""

from dataclasses import replace
from pathlib import Path

import pytest

from refsched.conformance.corpus import format_vector, get_vector, list_vectors
from refsched.conformance.exact import find_difference, make_reference
from refsched.conformance.protocol import read_trace
from refsched.model import Entry, Planned, Trace
from refsched.scheduling.policies import POLICIES
from tests.shared import SHARED, needs_shared

PLANS = SHARED / "data" / "plans"
RECORDED = [id for id in list_vectors() if id.startswith("plans/")]
FOLDERS = {"vllm-0.29": 80, "vllm-0.33": 80, "vllm-0.29-priority": 36, "vllm-0.33-priority": 36}


def read(path: Path) -> Trace:
    with path.open(encoding="utf-8") as lines:
        return read_trace(lines)


@pytest.mark.parametrize("id", RECORDED)
def test_a_committed_recording_is_reproduced(id: str) -> None:
    trace = get_vector(id)
    assert find_difference(trace, make_reference(trace), trace.limits) is None


@needs_shared("data", "plans")
@pytest.mark.parametrize(("folder", "count"), FOLDERS.items())
def test_every_file_of_a_folder_is_reproduced_plan_for_plan(folder: str, count: int) -> None:
    files = sorted((PLANS / folder).glob("*.jsonl"))
    differences = {
        file.name: find_difference(trace, make_reference(trace), trace.limits)
        for file in files
        for trace in [read(file)]
    }
    assert {name: difference for name, difference in differences.items() if difference} == {}
    assert len(files) == count


@needs_shared("data", "plans")
@pytest.mark.parametrize("id", RECORDED)
def test_a_vector_says_the_same_as_the_file_it_was_made_from(id: str) -> None:
    recorded, vector = read(PLANS / f"{id.removeprefix('plans/')}.jsonl"), get_vector(id)
    assert recorded.events == vector.events and recorded.limits == vector.limits and recorded.dialect == vector.dialect


def test_another_decision_is_noticed() -> None:
    trace = get_vector("plans/vllm-0.33/preempt_basic")
    place = next(
        place for place, event in enumerate(trace.events) if isinstance(event, Planned) and event.plan.preempted
    )
    planned = trace.events[place]
    assert isinstance(planned, Planned)
    first = planned.plan.entries[0]
    changes = {
        "entries": replace(
            planned.plan, entries=(Entry(first.id, first.start, first.count + 1), *planned.plan.entries[1:])
        ),
        "preempted": replace(planned.plan, preempted=()),
        "number of entries": replace(planned.plan, entries=(*planned.plan.entries, first)),
    }
    for what, plan in changes.items():
        events = (*trace.events[:place], replace(planned, plan=plan), *trace.events[place + 1 :])
        assert what in (find_difference(replace(trace, events=events), make_reference(trace), trace.limits) or "")


def test_a_recording_of_another_rule_is_not_reproduced(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = get_vector("plans/vllm-0.33/preempt_basic")
    engine = make_reference(trace)
    engine.select_iteration = POLICIES["document-a"]
    assert find_difference(trace, engine, trace.limits) is not None


@pytest.mark.parametrize("id", RECORDED)
def test_vectors_are_canonical_and_say_where_they_come_from(id: str) -> None:
    trace = get_vector(id)
    assert str(trace.header["provenance"]).startswith("recorded by us: vllm ")
    assert format_vector(id, trace).endswith("]\n}\n")
