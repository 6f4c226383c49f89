"""Every example in the README runs and says what the README says."""

import json
import re
import shlex
from decimal import Decimal
from pathlib import Path

import pytest

from refsched.results.records import read_records
from refsched.simulation.cost import get_cost_model
from refsched.workload.load import load_workload
from scripts.compare_policies import POLICIES, make_command, make_row
from tests.cli.conftest import shell  # noqa: F401
from tests.cli.running import Shell
from tests.shared import SHARED, needs_shared

README = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)
COMMANDS = [
    line.removeprefix("$ ")
    for kind, text in BLOCKS
    if kind == "console"
    for line in text.splitlines()
    if line.startswith("$ ")
]
OURS = [command for command in COMMANDS if command.startswith("python3 -m refsched ")]


@pytest.mark.parametrize("command", OURS)
def test_a_command_of_the_readme_runs(shell: Shell, command: str) -> None:  # noqa: F811
    code, out, err = shell.run(*shlex.split(command)[3:])
    assert (code, err) == (0, "") and out


def test_the_first_command_prints_the_documents_numbers(shell: Shell) -> None:  # noqa: F811
    _, out, _ = shell.run(*shlex.split(OURS[0])[3:])
    for number in ("68.5", "20.5", "8.5", "82", "136", "20.125", "86.5"):
        assert f" {number} " in out


def test_every_other_command_is_a_script_that_exists() -> None:
    others = [command for command in COMMANDS if command not in OURS]
    assert others == ["scripts/test"]
    assert (Path(__file__).resolve().parents[1] / "scripts" / "test").is_file()


@pytest.mark.parametrize("text", [text for kind, text in BLOCKS if kind == "python"])
def test_python_of_the_readme_runs(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(text, "README.md", "exec"), {})
    assert capsys.readouterr().out.strip()


def test_json_of_the_readme_is_what_it_says(tmp_path: Path) -> None:
    workload, cost, records = [text for kind, text in BLOCKS if kind == "json"]
    (tmp_path / "records.jsonl").write_text(records)
    assert sum(len(record.deliveries) for record in read_records(str(tmp_path / "records.jsonl"))) == 2
    (tmp_path / "w.jsonl").write_text(workload)
    (tmp_path / "cost.json").write_text(cost)
    assert len(load_workload(str(tmp_path / "w.jsonl")).offers) == 2
    assert get_cost_model(str(tmp_path / "cost.json")).name == json.loads(cost)["name"]


@needs_shared("data", "traces", "azure2023")
def test_the_table_of_policies_is_what_its_commands_give(shell: Shell) -> None:  # noqa: F811
    workload = str(SHARED / "data" / "traces" / "azure2023" / "AzureLLMInferenceTrace_conv.csv")
    shown = [line.split() for line in README.split("\n") if line.startswith(POLICIES)]
    for policy in POLICIES:
        code, out, _ = shell.run(*make_command(workload, policy), "--json", "-")
        assert code == (1 if policy == "document-a" else 0)
        expected = " ".join(make_row(policy, json.loads(out, parse_float=Decimal))).split()
        assert expected in shown
