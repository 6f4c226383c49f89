"""refsched check of an engine that can be asked: exit codes, the stream of events, reports, and what is refused."""

import json
import re
import shlex
import shutil
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from refsched.conformance.corpus import list_vectors
from refsched.conformance.scenario_file import format_scenario
from refsched.conformance.vectors import get_scenario
from tests.cli.running import Shell

ROOT = Path(__file__).resolve().parents[2]
WRONG = "python:tests.interop.unseen:wrong_budget"
SCRIPT = """
import json, sys
answers = {answers}
for line in sys.stdin:
    question = json.loads(line)
    answer = answers.get(question["op"], {{"ok": True}})
    print(json.dumps({{"seq": question["seq"], **answer}}), flush=True)
"""


def write_engine(folder: Path, answers: dict) -> str:
    """Write an engine that always answers the same, and return it as ENGINE."""
    (folder / "engine.py").write_text(SCRIPT.format(answers=repr(answers)), encoding="utf-8")
    return "cmd:" + shlex.join([sys.executable, str(folder / "engine.py")])


def read_events(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_that_a_policy_conforms_and_the_stream_ends_in_the_summary(shell: Shell, tmp_path: Path) -> None:
    code, out, err = shell.run("check", "vllm-v1", "--json", str(tmp_path / "out.jsonl"))
    assert (code, err) == (0, "") and out.startswith("exact, live (conforms)\n  refsched, dialect vllm-v1: ")
    start, *vectors, summary = read_events(tmp_path / "out.jsonl")
    assert (start["event"], summary["event"]) == ("start", "summary")
    assert [each["id"] for each in vectors] == list_vectors() and start["vectors"] == len(vectors)
    assert (summary["relation"], summary["liveness"], summary["broken"], summary["exit"]) == ("exact", "live", [], 0)
    assert summary["edition"] == 1 and summary["dialect"]["impossible"] == "reject"
    assert sum(summary["outcomes"].values()) == len(vectors) and summary["counts"]["preempted"] > 100
    assert summary["clauses"]["SCH-BUD-1"] == "passed" and summary["clauses"]["SCH-VIC-1"] == "passed"


def test_that_a_wrong_engine_gets_a_sentence_and_a_command_that_replays_it(shell: Shell, tmp_path: Path) -> None:
    code, out, _ = shell.run("check", WRONG, "--json", str(tmp_path / "out.jsonl"))
    assert code == 1 and "broken: iteration 0 plans 2 tokens (r0:2); the budget is 1 [SCH-BUD-1]" in out
    broken = read_events(tmp_path / "out.jsonl")[-1]["broken"][0]
    assert {"clause", "iteration", "because", "scenario", "vector", "offered", "replay"} <= broken.keys()
    replayed, again, _ = shell.run(*shlex.split(broken["replay"])[1:])
    assert replayed == 1 and broken["because"] in again
    (tmp_path / "offered.json").write_text(json.dumps(broken["offered"]), encoding="utf-8")
    replayed, again, _ = shell.run("check", WRONG, "--scenario", str(tmp_path / "offered.json"))
    assert replayed == 1 and broken["because"] in again


def test_that_json_on_standard_output_stands_alone(shell: Shell) -> None:
    code, out, _ = shell.run("check", "document-a", "--only", "rules/*", "--json", "-")
    events = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and events[-1]["outcomes"]["xfail"] >= 1


def test_that_junit_and_matrix_are_written(shell: Shell, tmp_path: Path) -> None:
    junit, matrix = tmp_path / "out.xml", tmp_path / "out.md"
    assert shell.run("check", WRONG, "--junit", str(junit), "--matrix", str(matrix))[0] == 1
    suite = ElementTree.parse(junit).getroot().find("testsuite")
    assert suite is not None and len(suite) == len(list_vectors()) == int(suite.get("tests", 0))
    assert int(suite.get("failures", 0)) > 20 and int(suite.get("skipped", 0)) > 10
    rows = [line.split(" | ") for line in matrix.read_text(encoding="utf-8").splitlines()]
    found = {row[0].removeprefix("| "): row[2] for row in rows[2:]}
    assert (found["SCH-BUD-1"], found["SCH-ENT-1"], found["SCH-STA-1"]) == ("broken", "passed", "not reached")


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ("* counts-wrong https://example.org/1", 4),
        ("budget/prompts-fill-it counts wrong https://example.org/1", 1),
        ("nothing/* counts wrong https://example.org/1", 1),
    ],
)
def test_that_expectations_hold_or_go_stale(shell: Shell, tmp_path: Path, rows: str, code: int) -> None:
    (tmp_path / "known.txt").write_text(rows, encoding="utf-8")
    assert shell.run("check", WRONG, "--expect", str(tmp_path / "known.txt"))[0] == code


def test_that_all_known_failures_make_a_yes_and_a_stale_one_a_4(shell: Shell, tmp_path: Path) -> None:
    shell.run("check", WRONG, "--json", str(tmp_path / "out.jsonl"))
    failing = [each["id"] for each in read_events(tmp_path / "out.jsonl")[1:-1] if each["outcome"] == "fail"]
    known = tmp_path / "known.txt"
    known.write_text("".join(f"{id} one token too many https://example.org/1\n" for id in failing), encoding="utf-8")
    assert shell.run("check", WRONG, "--expect", str(known))[0] == 0
    code, out, _ = shell.run("check", "no-evict", "--expect", str(known))
    assert code == 4 and "xpass: " in out and "stale: row 1" in out


def test_that_nothing_to_run_is_a_5(shell: Shell) -> None:
    code, out, _ = shell.run("check", "vllm-v1", "--only", "nothing/*")
    assert code == 5 and "nothing ran" in out
    assert shell.run("check", "vllm-v1", "--only", "cache/*")[0] == 5


def test_that_a_foreign_dialect_is_judged_by_its_own_rules(shell: Shell) -> None:
    code, out, _ = shell.run("check", "sarathi", "--dialect", "prefill-first")
    assert code == 1 and "SCH-MIX-1" in out


def test_that_an_engine_that_answers_with_an_error_breaks_a_clause(shell: Shell, tmp_path: Path) -> None:
    engine = write_engine(tmp_path, {"plan": {"ok": False, "error": "CUDA out of memory"}})
    code, out, _ = shell.run("check", engine, "--only", "budget/*")
    assert code == 1 and "the engine answers plan with an error: CUDA out of memory [MOD-ANS-1]" in out


def test_that_an_engine_that_claims_other_outputs_than_its_driver_breaks_a_clause(shell: Shell, tmp_path: Path) -> None:
    plan = {"ok": True, "plan": {"entries": [], "preempted": [], "rejected": []}}
    engine = write_engine(tmp_path, {"plan": plan, "complete": {"ok": True, "emitted": ["r0"]}})
    code, out, _ = shell.run("check", engine, "--only", "budget/*")
    assert code == 1 and "SCH-OUT-4" in out


@pytest.mark.parametrize("op", ["submit", "plan", "complete"])
def test_that_what_is_required_must_be_supported(shell: Shell, tmp_path: Path, op: str) -> None:
    plan = {"ok": True, "plan": {"entries": [], "preempted": [], "rejected": []}}
    engine = write_engine(tmp_path, {"plan": plan} | {op: {"ok": False, "unsupported": op}})
    code, out, err = shell.run("check", engine)
    assert (code, out) == (3, "") and f"{op} is unsupported" in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["cmd:"], "needs a command"),
        (["cmd:'"], "is not a command"),
        (["cmd:/no/such/engine"], "cannot be started"),
        (["python:nothing"], "is not module:factory"),
        (["python:no.such.module:make"], "no module named"),
        (["python:tests.interop.unseen:missing"], "has no 'missing'"),
        (["python:tests.interop.unseen:RIGHT"], "is not callable"),
        (["vllm-v9"], "no dialect named"),
        (["vllm-v1,speed=9"], "has no option"),
        (["vllm-v1", "--dialect", "nope"], "--dialect"),
        (["vllm-v1", "--expect", "/no/such/file"], "cannot be read"),
        (["vllm-v1", "--scenario", "/no/such/file"], "cannot be read"),
        (["vllm-v1", "--timeout", "0"], "--timeout"),
        (["vllm-v1", "--json", "-", "--junit", "-"], "only one of"),
        (["trace:/no/such/file", "--matrix", "x"], "--matrix"),
    ],
)
def test_that_bad_usage_is_one_line(shell: Shell, arguments: list[str], says: str) -> None:
    assert says in shell.refuse("check", *arguments)


def test_that_a_module_that_fails_is_a_broken_engine(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_adapter.py").write_text("raise RuntimeError('no GPU')", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    code, out, err = shell.run("check", "python:broken_adapter:make")
    assert (code, out) == (3, "") and "RuntimeError: no GPU" in err and err.count("\n") == 1


def test_that_what_an_engine_prints_does_not_spoil_the_report(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "from tests.interop.unseen import right_eager as quiet\n\ndef make(limits):\n    print(1)\n    return quiet(limits)"
    (tmp_path / "loud_adapter.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    code, out, _ = shell.run("check", "python:loud_adapter:make", "--only", "budget/*", "--json", "-")
    assert code == 0 and [json.loads(line) for line in out.splitlines()][-1]["relation"] == "safe"


def test_that_a_large_scenario_is_shown_in_a_small_form(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "large.json").write_text(format_scenario(get_scenario("plans/vllm-0.33/random_14")), encoding="utf-8")
    code, _, _ = shell.run(
        "check", WRONG, "--scenario", str(tmp_path / "large.json"), "--json", str(tmp_path / "out.jsonl")
    )
    broken = read_events(tmp_path / "out.jsonl")[-1]["broken"][0]
    assert code == 1 and len(broken["offered"]["arrivals"]) <= 3


def test_that_the_workflow_of_the_readme_checks_an_engine(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    workflow = re.findall(r"```yaml\n(.*?)```", readme, re.DOTALL)[0]
    assert [line.partition(":")[0] for line in workflow.splitlines() if line[:1].strip()] == ["name", "on", "jobs"]
    steps = re.findall(r"^      - (?:run|uses): (.*)$", workflow, re.MULTILINE)
    command = next(step for step in steps if step.startswith("refsched check"))
    if shutil.which("node") is None:
        pytest.skip("node is not there")
    for name in ("refsched.xml", "clauses.md"):
        command = command.replace(name, str(tmp_path / name))
    monkeypatch.chdir(ROOT)
    assert shell.run(*shlex.split(command)[1:])[0] == 0
    assert (tmp_path / "refsched.xml").exists() and "SCH-BUD-1" in (tmp_path / "clauses.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("mode", ["crash:2", "crash:300"])
def test_that_a_broken_engine_leaves_its_reports(shell: Shell, tmp_path: Path, mode: str) -> None:
    hostile = ROOT / "tests" / "interop" / "hostile.py"
    engine = "cmd:" + shlex.join([sys.executable, str(hostile), mode])
    reports = ["--json", str(tmp_path / "out.jsonl"), "--junit", str(tmp_path / "out.xml")]
    code, out, err = shell.run("check", engine, *reports)
    assert (code, out) == (3, "") and "exited with code 3" in err
    assert read_events(tmp_path / "out.jsonl")[-1]["exit"] == 3
    suite = ElementTree.parse(tmp_path / "out.xml").getroot().find("testsuite")
    assert suite is not None and suite.get("errors") == "1"
