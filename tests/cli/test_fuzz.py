"""refsched fuzz: what it finds is small, is saved, and is found again by check."""

import json
from pathlib import Path

from tests.cli.running import Shell

WRONG = "python:tests.interop.unseen:wrong_victim"


def test_that_nothing_is_found_in_a_policy(shell: Shell) -> None:
    assert shell.run("fuzz", "sarathi", "--cases", "150") == (0, "150 cases of seed 1: no clause is broken\n", "")


def test_that_a_finding_is_shrunk_saved_and_replayed(shell: Shell, tmp_path: Path) -> None:
    code, out, _ = shell.run("fuzz", WRONG, "--save", str(tmp_path))
    saved = tmp_path / "SCH-VIC-1.json"
    assert code == 1 and "[SCH-VIC-1]" in out and f"--scenario {saved}" in out
    assert len(json.loads(saved.read_text(encoding="utf-8"))["arrivals"]) == 2
    code, again, _ = shell.run("check", WRONG, "--scenario", str(saved))
    assert code == 1 and "[SCH-VIC-1]" in again
    assert shell.run("check", "vllm-v1", "--scenario", str(saved))[0] == 0


def test_that_the_json_holds_case_and_scenario(shell: Shell) -> None:
    code, out, _ = shell.run("fuzz", WRONG, "--seed", "3", "--json", "-")
    page = json.loads(out)
    found = page["found"][0]
    assert (code, page["seed"], found["clause"]) == (1, 3, "SCH-VIC-1")
    assert found["requests"] == len(found["scenario"]["arrivals"]) and found["case"] < page["cases"]
    assert (
        shell.run("fuzz", WRONG, "--seed", "3", "--json", "-")[1] != ""
        and found == json.loads(shell.run("fuzz", WRONG, "--seed", "3", "--json", "-")[1])["found"][0]
    )


def test_that_an_engine_that_breaks_is_a_3_and_bad_usage_a_2(shell: Shell) -> None:
    assert shell.run("fuzz", "cmd:false")[0] == 3
    assert "trace" in shell.refuse("fuzz", "trace:run.jsonl")
    assert "is not a folder" in shell.refuse("fuzz", "vllm-v1", "--save", "/no/such/folder")
    assert "--cases" in shell.refuse("fuzz", "vllm-v1", "--cases", "0")
