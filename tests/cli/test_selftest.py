"""refsched selftest: every planted fault with what found it, and a no where one is missed."""

import json

import pytest

from refsched.conformance import selftest
from refsched.conformance.faults import FAULTS, V1, Fault, change
from refsched.conformance.vectors import select_scenarios
from tests.cli.running import Shell


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command plant three faults only, and run few vectors."""
    monkeypatch.setattr("refsched.conformance.selftest.FAULTS", FAULTS[:3])
    monkeypatch.setattr("refsched.cli.selftest.select_scenarios", lambda: select_scenarios("found/*"))


def test_that_the_json_names_fault_clause_vector_and_size(shell: Shell, few: None) -> None:
    code, out, _ = shell.run("selftest", "--cases", "300", "--json", "-")
    page = json.loads(out)
    assert (code, page["conforms"], page["wrong_verdicts"], len(page["faults"])) == (0, True, [], 3)
    for fault, planted in zip(page["faults"], FAULTS):
        assert (fault["name"], fault["clause"]) == (planted.name, planted.clause)
        assert fault["killed_by"].startswith("found/") and 1 <= fault["requests"] <= 3 and fault["events"] > 1
        assert fault["drawn"]["case"] < 300


def test_that_a_fault_that_nobody_finds_makes_a_no(shell: Shell, few: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest, "FAULTS", (Fault("harmless", "SCH-BUD-1", "does nothing wrong", V1, change()),))
    code, out, _ = shell.run("selftest")
    assert code == 1 and "0 of 1 planted faults found" in out and "harmless [SCH-BUD-1]: NOT FOUND" in out
