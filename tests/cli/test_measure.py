"""refsched measure: from a file of records to text and JSON, and what `simulate` embeds of it."""

from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from tests.cli.running import Shell
from tests.results.test_records import BAD

NAMES = {
    *("ttft.any", "ttft.content", "ttft.reasoning", "e2e.last_token", "e2e.usage", "e2e.stream_end"),
    *("tpot.decode/(n-1)", "tpot.decode/(n-k1)", "tpot.e2e/n", "itl.chunk", "itl.even", "itl.burst"),
    *("longest_gap", "latency.from_schedule", "latency.from_send"),
}
RECORDS = (
    '{"id": "a", "planned_s": 0, "sent_s": 0.001, "prompt_tokens": 12, "outcome": "completed", '
    '"deliveries": [[0.2, 1], [0.25, 3]], "ended_s": 0.26, "group": "chat"}\n'
    '{"id": "b", "planned_s": 0.5, "sent_s": 0.5, "prompt_tokens": 8, "outcome": "completed", '
    '"deliveries": [[0.9, 1]], "ended_s": 1.0, "group": "report"}\n'
    '{"id": "c", "planned_s": 0.6, "sent_s": 0.6, "prompt_tokens": 8, "outcome": "timeout", '
    '"deliveries": [], "ended_s": 2.6, "group": "report"}\n'
)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "records.jsonl"
    path.write_text(RECORDS, encoding="utf-8")
    return str(path)


def test_the_json_form(shell: Shell, file: str) -> None:
    page = shell.json("measure", file, "--slo", "ttft=1s,longest-gap=100ms")
    assert page["counts"] == {
        "offered": 3,
        "completed": 2,
        "error": 0,
        "timeout": 1,
        "cancelled": 0,
        "rejected": 0,
        "unfinished": 0,
    }
    assert page["populations"].keys() >= NAMES
    for summary in page["populations"].values():
        assert {"n", "undefined", "mean", "p50", "p90", "p95", "p99", "max", "method"} <= summary.keys()
        assert summary["method"] == "nearest-rank"
    ttft = page["populations"]["ttft.any"]
    assert (ttft["n"], ttft["mean"], ttft["max"]) == (2, Decimal("0.2995"), Decimal("0.4"))
    tpot = page["populations"]["tpot.decode/(n-1)"]
    assert (tpot["n"], tpot["undefined"], tpot["exact"]["mean"]) == (1, 1, "1/60")
    assert page["populations"]["latency.from_schedule"]["max"] == Decimal("0.4")
    assert page["goodput"]["good"] == 2 and page["goodput"]["of"] == 3
    assert page["fidelity"]["verdict"] == "kept" and page["fidelity"]["lag_s"]["max"] == Decimal("0.001")
    assert set(page["groups"]) == {"chat", "report"}
    assert page["throughput"]["output_tokens_per_s"] is not None and page["throughput"]["window"]["stop_s"] == Decimal(
        "2.6"
    )
    assert page["with_failures"]["ttft.any"]["p99"] == {"at_least": 2, "at_most": None}
    assert page["provenance"]["how"].startswith("measured")


def test_the_policy_of_goodput(shell: Shell, file: str) -> None:
    slo = ("measure", file, "--slo", "tpot=100ms")
    assert shell.json(*slo)["goodput"]["good"] == 2
    assert shell.json(*slo, "--not-applicable", "fail")["goodput"]["good"] == 1
    assert shell.json(*slo, "--not-applicable", "exclude")["goodput"]["of"] == 2
    page = shell.json(*slo, "--denominator", "completed", "--failures", "drop")["goodput"]
    assert page["policy"] == {"not_applicable": "pass", "failures": "drop", "denominator": "completed", "joint": True}
    assert (page["of"], page["attainment"]) == (2, 1)
    assert shell.json("measure", file)["goodput"] is None


def test_the_definition_of_quantiles(shell: Shell, file: str) -> None:
    medians = {
        name: shell.json("measure", file, "--quantile", name)["populations"]["ttft.any"]["p50"]
        for name in ("nearest-rank", "linear", "hf7", "floor-index")
    }
    assert medians["linear"] == medians["hf7"] == Decimal("0.2995")
    assert (medians["nearest-rank"], medians["floor-index"]) == (Decimal("0.199"), Decimal("0.4"))


def test_the_text_names_definitions_policies_and_small_samples(shell: Shell, file: str) -> None:
    code, out, err = shell.run("measure", file, "--slo", "ttft=500s", "--stall", "20ms")
    assert (code, err) == (0, "")
    for words in (
        "3 requests offered: 2 completed, 1 timeout",
        "tpot.decode/(n-k1)",
        "longest_gap ",
        "quantiles: nearest-rank",
        "too few values for p99: 1, 2; a two-sided 95 % interval needs 368",
        "with failures in view, ttft.any: p50",
        "warning: every value is below a 300th of the threshold",
        "1 of 1 requests have a gap above 0.02 s",
        "sends      kept",
        "group chat",
    ):
        assert words in out, words


def test_clocks_of_their_own_give_nothing_across_requests(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text('{"id": "a", "outcome": "completed", "clock": "request", "deliveries": [[0.5, 1]], "ended_s": 1}\n')
    page = shell.json("measure", str(path))
    assert page["populations"]["ttft.any"]["mean"] == Decimal("0.5")
    for name in ("throughput", "backlog", "fidelity", "steadiness", "windows"):
        assert page[name] is None
    assert "clock of its own" in shell.run("measure", str(path))[1]


def test_simulate_embeds_the_same_block(shell: Shell, tmp_path: Path) -> None:
    records = str(tmp_path / "records.jsonl")
    arguments = ("simulate", "research-assistant", "--token-budget", "512", "--max-seqs", "16")
    simulated = shell.json(*arguments, "--records", records)
    measured = shell.json("measure", records)
    for name in (
        "counts",
        "populations",
        "latency",
        "throughput",
        "goodput",
        "fidelity",
        "groups",
        "backlog",
        "windows",
    ):
        assert simulated[name] == measured[name], name
    assert simulated["populations"].keys() >= NAMES


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--slo", "ttft"), "ttft"),
        (("--slo", "ttft=1"), "unit of time"),
        (("--slo", "ttft=-1s"), "negative"),
        (("--slo", "speed=1s"), "speed=1s"),
        (("--slo", "ttft=1s,ttft.any=2s"), "two thresholds"),
        (("--stall", "soon"), "--stall"),
        (("--window", "steadily"), "--window"),
        (("--window", "level=2"), "--window"),
        (("--window", "2s..1s"), "--window"),
        (("--window", "1..2s"), "--window"),
        (("--attribute", "fair"), "--attribute"),
        (("--playback", "0"), "--playback"),
        (("--playback", "fast"), "--playback"),
        (("--deadlines", "1s"), "--deadlines"),
        (("--deadlines", "1s,0s"), "--deadlines"),
        (("--quantile", "p99"), "--quantile"),
        (("--not-applicable", "maybe"), "--not-applicable"),
        (("--json", "/no/such/folder/x.json"), "/no/such/folder/x.json"),
    ],
)
def test_bad_arguments(shell: Shell, file: str, arguments: tuple[str, ...], words: str) -> None:
    assert words in shell.refuse("measure", file, *arguments)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_one_line_and_exit_code_2(shell: Shell, name: str, tmp_path: Path) -> None:
    text, words = BAD[name]
    path = tmp_path / "records.jsonl"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    line = shell.refuse("measure", str(path))
    assert all(word in line for word in (str(path), *words))


def test_a_window_that_the_run_does_not_have_is_refused(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    line = '{"id": "a", "outcome": "completed", "sent_s": 0, "deliveries": [[1, 1]], "ended_s": 2%s}\n'
    path.write_text(line % "")
    assert "first end" in shell.refuse("measure", str(path), "--window", "steady")
    path.write_text((line % ', "clock": "request"').replace('"sent_s": 0, ', ""))
    assert "clock of its own" in shell.refuse("measure", str(path), "--window", "1s..2s")


def test_nothing_completed(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text('{"id": "a", "outcome": "error", "sent_s": 0, "ended_s": 2}\n')
    page = shell.json("measure", str(path), "--slo", "ttft=1s")
    assert page["populations"]["ttft.any"]["mean"] is None and page["throughput"]["requests_per_s"] == 0
    assert (page["goodput"]["good"], page["goodput"]["of"]) == (0, 1)
    assert Fraction(page["with_failures"]["e2e.last_token"]["p50"]["at_least"]) == 2


def test_a_window_takes_what_its_rule_attributes_to_it(shell: Shell, tmp_path: Path) -> None:
    """One sent each second, two seconds each, two tokens: from the first end at 2 to the last send at 10."""
    path = tmp_path / "records.jsonl"
    path.write_text(
        "".join(
            f'{{"id": "r{k}", "outcome": "completed", "sent_s": {k}, "prompt_tokens": 3, '
            f'"deliveries": [[{k}.5, 1], [{k + 2}, 1]], "ended_s": {k + 2}}}\n'
            for k in range(11)
        )
    )
    steady = shell.json("measure", str(path), "--window", "steady")
    assert steady["counts"]["offered"] == 8 and steady["populations"]["e2e.last_token"]["n"] == 8
    rates = steady["throughput"]
    assert rates["window"] == {"start_s": 2, "stop_s": 10, "rule": "start-in"}
    assert (rates["requests_per_s"], rates["delivered_tokens_per_s"]) == (1, 2)
    assert "tput.delivered/W" in rates["definitions"] and steady["steadiness"]["verdict"] == "steady"
    over = shell.json("measure", str(path), "--window", "1s..2s", "--attribute", "overlap")
    assert over["counts"]["offered"] == 2 and over["throughput"]["delivered_tokens_per_s"] == 2
    level = shell.json("measure", str(path), "--window", "level=1", "--attribute", "end-in")
    assert level["throughput"]["window"] == {"start_s": 1, "stop_s": 11, "rule": "end-in"}
    assert "from 2.0000 to 10.0000" in shell.run("measure", str(path), "--window", "steady")[1]


def test_readers_and_deadlines(shell: Shell, file: str) -> None:
    page = shell.json("measure", file, "--playback", "10", "--deadlines", "150ms,10ms")
    assert page["playback"]["of"] == 2 and page["playback"]["requests"] == 0
    deadlines = page["deadlines"]  # a: 0.199 s misses 5, 0.05 s misses 5, two more are met; b: 0.4 s misses 26
    assert (deadlines["met"], deadlines["missed"], deadlines["exact"]["miss_rate"]) == (2, 36, "18/19")
    slow = shell.json("measure", file, "--playback", "40")["playback"]
    assert (slow["requests"], slow["waits"]) == (1, 1)
    assert slow["times_s"] == {"waited_together": Decimal("0.025"), "waited_at_most": Decimal("0.025")}
