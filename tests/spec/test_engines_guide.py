"""The guide for engine authors: its templates run, its scenario is one, its dialogue is the protocol."""

import json
import re
from pathlib import Path

import pytest

from refsched.conformance.recording import ASKED, TOLD
from refsched.conformance.scenario_file import parse_scenario
from tests.cli.conftest import shell  # noqa: F401
from tests.cli.running import Shell

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "spec" / "61-engines.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"```(\w+)\n(.*?)```", GUIDE, re.DOTALL))


def test_that_the_template_in_python_is_safe(
    shell: Shell,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "guide_engine.py").write_text(BLOCKS["python"], encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    code, out, _ = shell.run("check", "python:guide_engine:OneAtATime")
    assert code in (0, 1) and out.startswith("safe, live (conforms)"), out


def test_that_the_template_in_javascript_is_the_tested_one() -> None:
    assert BLOCKS["js"].strip() in (ROOT / "tests" / "interop" / "engine.js").read_text(encoding="utf-8")


def test_that_the_scenario_of_the_guide_is_one() -> None:
    assert len(parse_scenario(BLOCKS["json"]).arrivals) == 2


def test_that_the_dialogue_of_the_guide_keeps_the_protocol() -> None:
    asked, told = (
        [json.loads(line[3:]) for line in BLOCKS["text"].splitlines() if line.startswith(way)] for way in ("->", "<-")
    )
    assert [each["seq"] for each in asked] == [each["seq"] for each in told] == list(range(1, 8))
    for question, answer in zip(asked, told):
        assert question.keys() - {"seq"} <= ASKED[question["op"]] and answer.keys() - {"seq"} <= TOLD[question["op"]]
