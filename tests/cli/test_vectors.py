"""refsched vectors: list, show, export; and the manifest that goes with them."""

import json
from hashlib import sha256
from pathlib import Path

import pytest

from refsched import spec
from refsched.conformance.choice import choose_dialect
from refsched.conformance.clauses import read_clauses
from refsched.conformance.corpus import get_vector, list_vectors
from refsched.conformance.drive import drive
from refsched.conformance.exact import NOT_OPTIONS
from refsched.conformance.inprocess import InProcess
from refsched.conformance.scenario_file import parse_scenario
from refsched.conformance.smoke import Recorder, greet
from refsched.conformance.vectors import get_scenario, read_manifest
from refsched.dialect import get_dialect
from refsched.model import Planned
from refsched.scheduling.engine import ReferenceEngine
from tests.cli.running import Shell

PLANS = [id for id in list_vectors() if id.startswith("plans/")]


def test_that_all_are_listed_with_what_they_are_about(shell: Shell) -> None:
    code, out, _ = shell.run("vectors", "list")
    assert code == 0 and [line.split("  ")[0] for line in out.splitlines()] == list_vectors()
    page = shell.json("vectors", "list", "preemption/*")
    assert {each["id"].split("/")[0] for each in page["vectors"]} == {"preemption"}
    assert shell.run("vectors", "list", "nothing/*")[0] == 5


def test_that_one_is_shown_as_a_scenario(shell: Shell) -> None:
    _, out, _ = shell.run("vectors", "show", "plans/vllm-0.33/preempt_basic")
    assert parse_scenario(out) == get_scenario("plans/vllm-0.33/preempt_basic")
    assert "no vector named" in shell.refuse("vectors", "show", "plans/nope")
    assert "show needs" in shell.refuse("vectors", "show")
    assert "export needs" in shell.refuse("vectors", "export")


def test_that_an_export_is_whole_and_names_what_it_holds(shell: Shell, tmp_path: Path) -> None:
    code, out, _ = shell.run("vectors", "export", str(tmp_path / "out"))
    assert code == 0 and f"{len(list_vectors())} vectors of edition 1" in out
    manifest = json.loads((tmp_path / "out" / "MANIFEST.json").read_text(encoding="utf-8"))
    assert sorted(manifest["vectors"]) == list_vectors()
    for id, digest in manifest["vectors"].items():
        data = (tmp_path / "out" / f"{id}.json").read_bytes()
        assert sha256(data).hexdigest() == digest and parse_scenario(data.decode()).id == id
    assert len(list((tmp_path / "out" / "plans").rglob("*.recorded.json"))) == len(PLANS) == 28


def test_that_the_manifest_has_the_sum_of_every_file() -> None:
    named = read_manifest()["vectors"]
    assert isinstance(named, dict) and sorted(named) == list_vectors()
    for id, digest in named.items():
        assert sha256(spec.read_text(f"vectors/{id}.json").encode()).hexdigest() == digest


def test_that_vectors_name_clauses_that_exist_and_every_kind_is_there() -> None:
    for id in list_vectors():
        assert set(get_scenario(id).clauses) <= read_clauses().keys(), id
    assert {"plans", "bugs", "clauses", "found", "drawn", "preemption"} <= {id.split("/")[0] for id in list_vectors()}


@pytest.mark.parametrize("id", PLANS)
def test_that_what_was_offered_in_a_recording_gives_its_plans_again(id: str) -> None:
    trace = get_vector(id)
    options = {name: value for name, value in trace.dialect.items() if name not in NOT_OPTIONS}
    dialect = get_dialect(str(trace.dialect["name"]), options)
    recorder = Recorder(
        InProcess(lambda limits: ReferenceEngine(dialect, limits), {"name": trace.dialect["name"], **options}, None)
    )
    opening = greet(recorder)
    drive(recorder, get_scenario(id), opening, choose_dialect(opening.dialect))
    driven = [answer["plan"]["entries"] for answer in recorder.answers if answer.get("plan", {}).get("entries")]
    recorded = [event.plan.entries for event in trace.events if isinstance(event, Planned) and event.plan.entries]
    shown = [sorted(map(list, entries)) for entries in recorded]
    assert [sorted(entries) for entries in driven[: len(shown)]] == shown[: len(driven)] and driven
