"""refsched check and refsched explain: exit codes, reports, JSON and JUnit."""

import argparse
import io
import json
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

from refsched.cli import check, explain
from refsched.conformance.clauses import read_clauses
from refsched.conformance.witness import expand
from refsched.errors import InputError

GOOD = {
    "dialect": {"name": "vllm-v1", "note": "as delivered"},
    "limits": {"token_budget": 4, "max_seqs": 2},
    "events": [
        ["submit", "r0", 6, 1],
        ["plan", [["r0", 0, 4]], [], None],
        ["complete", [], [], None],
        ["plan", [["r0", 4, 2]], [], None],
        ["complete", ["r0"], ["r0"], None],
    ],
}
OVER = {
    "limits": {"token_budget": 4, "max_seqs": 2},
    "events": [
        ["submit", "r0", 2, 1],
        ["submit", "r1", 3, 1],
        ["plan", [["r0", 0, 2], ["r1", 0, 3]], [], None],
        ["complete", ["r0", "r1"], ["r0", "r1"], None],
    ],
}
STUCK = {
    "limits": {"token_budget": 4, "max_seqs": 2},
    "events": [["submit", "r0", 6, 1], ["plan", [], [], None], ["complete", [], [], None]],
}


def write(path: Path, page: dict) -> str:
    path.write_text("\n".join(expand(page)) + "\n", encoding="utf-8")
    return f"trace:{path}"


def call(module: ModuleType, *arguments: str) -> int:
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    code: int = module.run(parser.parse_args(arguments))
    return code


def call_json(engine: str, *arguments: str, folder: Path) -> tuple[int, dict]:
    code = call(check, engine, *arguments, "--json", str(folder / "out.json"))
    return code, json.loads((folder / "out.json").read_text(encoding="utf-8"))


def test_that_a_conforming_trace_gives_0_and_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(check, write(tmp_path / "run.jsonl", GOOD)) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("exact, live (conforms; refines is asked)")
    assert "dialect vllm-v1: 2 iterations, 1 request, 1 output" in shown


def test_that_a_broken_clause_gives_1_and_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    engine = write(tmp_path / "run.jsonl", OVER)
    assert call(check, engine) == 1
    shown = capsys.readouterr().out
    assert "broken: iteration 0 plans 5 tokens (r0:2, r1:3); the budget is 4 [SCH-BUD-1]" in shown
    assert "scenario of SCH-BUD-1 (row 11): token_budget=4, max_seqs=2" in shown
    assert '  ["plan", [["r0", 0, 2], ["r1", 0, 3]], [], null]' in shown
    assert f"replay: refsched check {engine}" in shown


def test_that_the_json_holds_the_whole_verdict(tmp_path: Path) -> None:
    code, page = call_json(write(tmp_path / "run.jsonl", OVER), folder=tmp_path)
    assert code == 1
    assert (page["relation"], page["liveness"], page["edition"], page["asked"]) == ("none", "live", 1, "safe")
    assert page["dialect"] is None and "no dialect" in page["unsupported"]
    assert page["counts"]["iterations"] == 1 and page["engine"] == "unknown"
    broken = page["broken"][0]
    assert (broken["clause"], broken["iteration"]) == ("SCH-BUD-1", 0)
    again = write(tmp_path / "again.jsonl", broken["scenario"] | {"open": True})
    assert call_json(again, folder=tmp_path)[1]["broken"][0]["because"] == broken["because"]


def test_that_a_scenario_replays_a_breach_of_a_dialect(tmp_path: Path) -> None:
    slow = GOOD | {"events": [["submit", "r0", 6, 1], ["plan", [["r0", 0, 3]], [], None], ["complete", [], [], None]]}
    code, page = call_json(write(tmp_path / "run.jsonl", slow), folder=tmp_path)
    assert (code, page["relation"], page["broken"][0]["clause"]) == (1, "safe", "SCH-SHARE-1")
    assert page["dialect"]["name"] == "vllm-v1" and page["dialect"]["impossible"] == "reject"
    again = write(tmp_path / "again.jsonl", page["broken"][0]["scenario"] | {"open": True})
    assert call_json(again, folder=tmp_path)[1]["broken"][0]["because"] == page["broken"][0]["because"]


def test_that_a_stuck_run_does_not_conform(tmp_path: Path) -> None:
    code, page = call_json(write(tmp_path / "run.jsonl", STUCK), folder=tmp_path)
    assert (code, page["relation"], page["liveness"], page["broken"][0]["clause"]) == (1, "safe", "stuck", "LIV-END-1")


def test_that_what_is_asked_can_be_more_or_less(tmp_path: Path) -> None:
    engine = write(tmp_path / "run.jsonl", GOOD)
    assert call(check, engine, "--ask", "exact") == 0
    assert call(check, engine, "--dialect", "static", "--ask", "exact") == 0
    late = write(
        tmp_path / "late.jsonl",
        GOOD | {"events": [["submit", "r0", 6, 1], ["plan", [["r0", 0, 3]], [], None], ["complete", [], [], None]]},
    )
    assert call(check, late) == 1
    assert call(check, late, "--ask", "safe") == 0


def test_that_junit_has_one_case_per_clause_and_one_for_the_verdict(tmp_path: Path) -> None:
    assert call(check, write(tmp_path / "run.jsonl", OVER), "--junit", str(tmp_path / "out.xml")) == 1
    suite = ElementTree.parse(tmp_path / "out.xml").getroot().find("testsuite")
    assert suite is not None
    failed = {case.get("name"): case.find("failure") for case in suite if case.find("failure") is not None}
    assert set(failed) == {"SCH-BUD-1", "safe and live"}
    assert "the budget is 4" in str(failed["SCH-BUD-1"].get("message"))  # type: ignore[union-attr]
    assert int(suite.get("tests", 0)) == len(suite) and int(suite.get("skipped", 0)) > 0


def test_that_a_trace_can_come_from_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "run.jsonl", GOOD)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((tmp_path / "run.jsonl").read_bytes())))
    assert call(check, "trace:-") == 0


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("no-such-rule",), "no dialect named"),
        (("trace:/does/not/exist.jsonl",), "cannot be read"),
        (("trace:.",), "cannot be read"),
        (("trace:\0",), "cannot be read"),
        (("GOOD", "--dialect", "no-such"), "no dialect named"),
    ],
)
def test_that_bad_input_is_refused_in_one_line(tmp_path: Path, arguments: tuple[str, ...], problem: str) -> None:
    engine = write(tmp_path / "run.jsonl", GOOD)
    with pytest.raises(InputError, match=problem) as caught:
        call(check, *(engine if each == "GOOD" else each for each in arguments))
    assert "\n" not in str(caught.value)


def test_that_an_unknown_option_is_never_passed_over(tmp_path: Path) -> None:
    page = GOOD | {"dialect": {"name": "vllm-v1", "lookahead": 2}}
    code, verdict = call_json(write(tmp_path / "run.jsonl", page), folder=tmp_path)
    assert verdict["relation"] == "safe" and "lookahead" in verdict["unsupported"] and code == 1


@pytest.mark.parametrize("clause", read_clauses())
def test_that_every_clause_is_explained(clause: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(explain, clause) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(clause) and "holds for" in shown


def test_that_explaining_gives_json_with_witnesses(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(explain, "sch-bud-1", "--json", "-") == 0
    page = json.loads(capsys.readouterr().out)
    assert page["id"] == "SCH-BUD-1" and page["level"] == "MUST" and page["witnesses"]["reject"]
    with pytest.raises(InputError):
        call(explain, "SCH-XYZ-9")
