"""Engines that the suite was not made with: right ones pass, ones with one wrong rule are rejected by that rule."""

import json
import shutil
from pathlib import Path

import pytest

from refsched.cli import main
from tests.interop.unseen import RIGHT, WRONG

FOLDER = Path(__file__).parent
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not there")
JAVASCRIPT = {
    "budget-off-by-one": "SCH-BUD-1",
    "waits-for-room": "SCH-PRE-3",
    "leaks-on-finish": "KV-FREE-1",
    "head-skipped": "SCH-ADM-4",
}


def check(engine: str, folder: Path) -> tuple[int, dict]:
    code = main(["check", engine, "--json", str(folder / "out.json")])
    return code, json.loads((folder / "out.json").read_text(encoding="utf-8").splitlines()[-1])


@pytest.mark.parametrize("name", RIGHT)
def test_that_a_right_engine_passes(name: str, tmp_path: Path) -> None:
    code, page = check(f"python:tests.interop.unseen:{name}", tmp_path)
    assert (code, page["broken"], page["liveness"]) == (0, [], "live")
    assert page["relation"] == ("safe" if page["dialect"] is None else "exact")
    assert page["outcomes"]["pass"] + page["outcomes"]["xfail"] > 300


@pytest.mark.parametrize("name", WRONG)
def test_that_a_wrong_engine_is_rejected_by_the_right_clause(name: str, tmp_path: Path) -> None:
    code, page = check(f"python:tests.interop.unseen:{name}", tmp_path)
    assert (code, page["broken"][0]["clause"]) == (1, WRONG[name])
    assert len(page["broken"][0]["offered"]["arrivals"]) <= 3


@needs_node
def test_that_the_engine_in_javascript_is_exact(tmp_path: Path) -> None:
    code, page = check(f"cmd:node {FOLDER / 'engine.js'}", tmp_path)
    assert (code, page["relation"], page["engine"]) == (0, "exact", "js-fcfs 1")
    assert page["outcomes"]["pass"] > 300


@needs_node
@pytest.mark.parametrize("name", JAVASCRIPT)
def test_that_a_wrong_engine_in_javascript_is_rejected(name: str, tmp_path: Path) -> None:
    code, page = check(f"cmd:node {FOLDER / 'wrong.js'} {name}", tmp_path)
    assert (code, page["broken"][0]["clause"]) == (1, JAVASCRIPT[name])
