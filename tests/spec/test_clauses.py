"""The chapters, clauses.json and the code say the same; examples come out as written."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from refsched.conformance.choice import choose_dialect
from refsched.conformance.clauses import Clause, get_clause, read_clauses
from refsched.conformance.recording import Recording
from refsched.conformance.verdict import judge
from refsched.conformance.witness import get_witnesses, judge_page, list_witnesses
from refsched.dialect import get_dialect
from refsched.errors import InputError
from refsched.model import Limits, Request
from refsched.scheduling.engine import ReferenceEngine
from refsched.scheduling.progress import Progress

ROOT = Path(__file__).resolve().parents[2]
CLAUSES = read_clauses()
BINDING = [clause for clause in CLAUSES.values() if clause.level in ("MUST", "MUST NOT")]
EXAMPLES = [(clause.id, json.loads(example)) for clause in CLAUSES.values() for example in clause.examples]


def run_script(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / name), *arguments], capture_output=True, text=True, check=False
    )


def test_that_clauses_json_and_the_table_of_labels_are_fresh() -> None:
    done = run_script("clauses.py", "--check")
    assert done.returncode == 0, done.stderr


def test_that_no_must_clause_lacks_a_witness_or_code() -> None:
    done = run_script("matrix.py")
    assert done.returncode == 0, done.stderr


def test_that_the_guide_explains_every_chapter_and_word() -> None:
    reading = (ROOT / "spec" / "00-reading.md").read_text(encoding="utf-8")
    for chapter in {clause.chapter for clause in CLAUSES.values()}:
        assert chapter in reading
    for level in {clause.level for clause in CLAUSES.values()}:
        assert re.search(rf"\b{level}\b", reading)


def test_that_an_unknown_clause_is_refused_with_its_neighbours() -> None:
    with pytest.raises(InputError, match="SCH-BUD-1"):
        get_clause("SCH-NOPE-1")


@pytest.mark.parametrize(("id", "page"), [each for each in EXAMPLES if "events" in each[1]])
def test_that_a_trace_in_the_text_is_judged_as_written(id: str, page: dict) -> None:
    verdict, expect = judge_page(page), page["expect"]
    assert verdict.relation == expect["relation"]
    assert verdict.liveness.kind == expect.get("liveness", verdict.liveness.kind)
    if "clause" in expect:
        breach = next(each for each in verdict.broken if each.clause == expect["clause"])
        assert breach.because == expect.get("because", breach.because)


@pytest.mark.parametrize(("id", "page"), [each for each in EXAMPLES if "arrivals" in each[1]])
def test_that_a_run_in_the_text_comes_out_as_written(id: str, page: dict) -> None:
    limits = Limits(**page["limits"])
    engine, progress, plans = ReferenceEngine(get_dialect(page["dialect"]["name"]), limits), Progress(limits), []
    for number in range(len(page["plans"])):
        for at, *request in page["arrivals"]:
            if at == number:
                assert engine.submit(Request(*request)) is None
                progress.start(Request(*request))
        plan = engine.plan()
        _, emitted, finished = progress.settle(plan)
        engine.complete(emitted, finished)
        for ended in finished:
            progress.end(ended)
        named = all(isinstance(each, str) for each in page["plans"][number])
        plans.append([entry.id if named else list(entry) for entry in plan.entries])
    assert plans == page["plans"]
    assert not progress.live


@pytest.mark.parametrize("clause", BINDING, ids=lambda clause: clause.id)
def test_that_witnesses_pass_and_are_rejected_in_the_name_of_their_clause(clause: Clause) -> None:
    page = get_witnesses(clause.id)
    for passing in page["pass"]:
        verdict = judge_page(passing)
        assert clause.id not in [breach.clause for breach in verdict.broken]
        assert verdict.relation in (("refines", "exact") if "dialect" in passing else ("safe",))
    for rejected in page["reject"]:
        verdict = judge_page(rejected)
        assert clause.id in [breach.clause for breach in verdict.broken]
        assert verdict.relation != "exact"


def test_that_every_witness_belongs_to_a_clause() -> None:
    assert set(list_witnesses()) == {clause.id for clause in BINDING}


def test_that_no_requirement_of_these_chapters_is_left_out() -> None:
    covered = {label for clause in CLAUSES.values() for label in clause.covers}
    wanted = {f"A{number}" for number in (*range(1, 7), *range(14, 18))} | {"A6b"}
    wanted |= {f"B{number}" for number in range(1, 8)} | {"B1b", "B4b", "B7b", "B21"}
    wanted |= {f"U{number}" for number in range(1, 16)} | {f"L{number}" for number in range(1, 6)}
    wanted |= {f"decision {number}" for number in range(1, 11)}
    assert wanted - covered == set()


LATER = re.compile(
    r"A(7|8|9|1[0-3]|1[89]|2\d)|B(8|9|1\d|2\d)|decision 11"
)  # labels of chapters on metrics, load and cost


def test_that_every_label_in_the_code_leads_to_a_clause() -> None:
    known = {label for clause in CLAUSES.values() for label in clause.covers} | set(CLAUSES)
    label = re.compile(r"[AB]\d+b?|[UL]\d+|decision \d+|[A-Z]+-[A-Z0-9]+-\d+")
    for folder in ("scheduling", "conformance"):
        for path in (ROOT / "refsched" / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
                    for cited in re.findall(r"\[([^\]]+)\]", ast.get_docstring(node) or ""):
                        for one in cited.split(", "):
                            if label.fullmatch(one) and not LATER.fullmatch(one):
                                assert one in known, f"{path.name} cites {one}"


def test_that_the_logger_of_the_guide_writes_a_trace_that_is_judged_as_promised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guide = (ROOT / "spec" / "60-recording.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec(compile("\n".join(re.findall(r"```python\n(.*?)```", guide, re.DOTALL)), "guide", "exec"), {})
    for name, relation in ((None, "safe"), ("vllm-v1", "exact")):
        with open("run.jsonl", "rb") as file:
            recording = Recording(file)
            choice = choose_dialect(recording.opening.dialect, name)
            verdict = judge(recording.opening, recording.events(), choice).conclude(recording.closed)
        assert (verdict.relation, verdict.liveness.kind) == (relation, "live")
