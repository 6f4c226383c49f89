"""refsched simulate: what it prints, writes and returns."""

import json
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from refsched.conformance.exact import find_difference, make_reference
from refsched.conformance.protocol import read_trace
from tests.cli.running import Shell
from tests.shared import SHARED, needs_shared

ROOT = Path(__file__).resolve().parents[2]
SMALL = ("--token-budget", "8", "--max-seqs", "2")
STUCK = ("--engine", "document-a", "--block-size", "1", "--num-blocks", "4", "--cost", "unit")


def write_jsonl(folder: Path, *rows: dict[str, object]) -> str:
    """Write a workload file of our own form."""
    path = folder / "w.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_the_timetable_through_the_front_door(shell: Shell) -> None:
    page = shell.json("simulate", "four-requests", "--token-budget", "2", "--max-seqs", "2", "--cost", "unit")
    assert page["counts"]["offered"] == page["counts"]["completed"] == 4
    assert (page["iterations"], page["makespan_s"], page["outcome"]["kind"]) == (5, 5, "done")
    assert page["latency"]["total_s"]["max"] == 4 and page["latency"]["tpot_s"]["undefined"] == 1


def test_the_json_form_holds_what_scripts_rely_on(shell: Shell) -> None:
    page = shell.json(
        "simulate", "research-assistant", "--token-budget", "2048", "--max-seqs", "64", "--num-blocks", "9999"
    )
    assert {
        "counts",
        "iterations",
        "events",
        "preemptions",
        "makespan_s",
        "outcome",
        "engine",
        "limits",
        "cost",
        "workload",
        "provenance",
        "latency",
        "throughput",
        "kv",
        "groups",
    } <= page.keys()
    assert {"offered", "completed", "rejected", "unfinished", "cancelled"} <= page["counts"].keys()
    assert {"quantile_method", "ttft_s", "tpot_s", "gap_s", "longest_gap_s", "total_s"} <= page["latency"].keys()
    assert {"n", "undefined", "mean", "p50", "p90", "p95", "p99", "max"} <= page["latency"]["gap_s"].keys()
    assert {"output_tokens_per_s", "total_tokens_per_s", "requests_per_s"} <= page["throughput"].keys()
    assert page["kv"]["peak_blocks"] > 0 and set(page["groups"]) == {"chat", "report"}
    assert page["events"] <= page["iterations"]
    assert sum(group["counts"]["offered"] for group in page["groups"].values()) == page["counts"]["offered"]
    assert page["provenance"]["how"] == "simulated under cost model a100-8b"


def test_numbers_are_exact_and_say_so_where_they_had_to_be_rounded(shell: Shell, tmp_path: Path) -> None:
    file = write_jsonl(tmp_path, *({"arrival_s": at, "prompt_tokens": 1, "output_tokens": 1} for at in (0, 0.1, 0.2)))
    ttft = shell.json("simulate", file, *SMALL, "--cost", "unit")["latency"]["ttft_s"]
    assert (ttft["p50"], ttft["max"]) == (Decimal("1.8"), Decimal("1.9"))
    assert ttft["mean"] == Decimal("1.5666666666666667") and ttft["exact"] == {"mean": "47/30"}


def test_each_definition_of_quantiles_is_named_and_used(shell: Shell) -> None:
    arguments = ("simulate", "four-requests", "--token-budget", "2", "--max-seqs", "2", "--cost", "unit")
    values = {}
    for method in ("nearest-rank", "linear", "inverted-cdf", "floor-index"):
        latency = shell.json(*arguments, "--quantile", method)["latency"]
        assert latency["quantile_method"] == method
        values[method] = latency["total_s"]["p50"]
    assert values == {"nearest-rank": 3, "linear": 3, "inverted-cdf": 3, "floor-index": 3}


def test_a_stuck_run_says_why_and_returns_1(shell: Shell, tmp_path: Path) -> None:
    rows = ({"arrival_s": 0, "prompt_tokens": 1, "output_tokens": 4, "id": id} for id in "ab")
    code, out, _ = shell.run("simulate", write_jsonl(tmp_path, *rows), *SMALL, *STUCK)
    assert code == 1
    assert "stuck" in out and "a holds 2 blocks" in out and "lacks 1 blocks" in out


def test_the_trace_of_a_stuck_run_is_judged_stuck(shell: Shell, tmp_path: Path) -> None:
    rows = ({"arrival_s": 0, "prompt_tokens": 1, "output_tokens": 4, "id": id} for id in "ab")
    path = str(tmp_path / "trace.jsonl")
    shell.run("simulate", write_jsonl(tmp_path, *rows), *SMALL, *STUCK, "--trace", path)
    code, out, _ = shell.run("check", f"trace:{path}", "--json", "-")
    verdict = json.loads(out)
    assert (code, verdict["relation"], verdict["liveness"]) == (1, "exact", "stuck")


def test_a_livelock_says_why_and_returns_1(shell: Shell, tmp_path: Path) -> None:
    file = write_jsonl(tmp_path, {"arrival_s": 0, "prompt_tokens": 10, "output_tokens": 1})
    engine = "vllm-v1,admission_gate=chunk,impossible=admit"
    code, out, _ = shell.run(
        "simulate", file, "--token-budget", "4", "--max-seqs", "2", *STUCK[2:], "--engine", engine, "--json", "-"
    )
    outcome = json.loads(out)["outcome"]
    assert (code, outcome["kind"], outcome["period"], outcome["unfinished"]) == (1, "livelock", 2, ["r0"])


def test_the_trace_it_writes_is_a_recorded_trace(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    code, _, _ = shell.run(
        "simulate",
        "research-assistant",
        "--first",
        "40",
        "--token-budget",
        "512",
        "--max-seqs",
        "8",
        "--num-blocks",
        "700",
        "--trace",
        str(path),
    )
    with path.open() as lines:
        trace = read_trace(lines)
    assert code == 0 and find_difference(trace, make_reference(trace), trace.limits) is None


def test_the_records_it_writes_are_exact(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    shell.run(
        "simulate", "four-requests", "--token-budget", "2", "--max-seqs", "2", "--cost", "unit", "--records", str(path)
    )
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert records[2] == {
        "id": "C",
        "planned_s": 1,
        "sent_s": 1,
        "prompt_tokens": 1,
        "outcome": "completed",
        "deliveries": [[3, 1], [4, 1]],
        "ended_s": 4,
        "server": {"queued_s": 1, "scheduled_s": 2, "first_token_s": 3},
    }


def test_a_file_that_cannot_be_written_is_one_line_and_nothing_is_left(shell: Shell, tmp_path: Path) -> None:
    assert "nowhere" in shell.refuse(
        "simulate", "four-requests", *SMALL, "--records", str(tmp_path / "nowhere" / "r.jsonl")
    )
    assert list(tmp_path.iterdir()) == []


def test_only_one_output_can_be_standard_output(shell: Shell) -> None:
    shell.refuse("simulate", "four-requests", *SMALL, "--json", "-", "--records", "-")


def test_the_same_seed_gives_the_same_run_and_another_another(shell: Shell) -> None:
    arguments = ("simulate", "poisson:rate=4,n=50,prompt=100,output=20", *SMALL)
    spans = [shell.json(*arguments, "--seed", seed)["makespan_s"] for seed in ("1", "1", "2")]
    assert spans[0] == spans[1] != spans[2]


@needs_shared("data", "traces", "azure2023")
def test_every_request_of_a_real_workload_is_accounted_for(shell: Shell) -> None:
    file = SHARED / "data" / "traces" / "azure2023" / "AzureLLMInferenceTrace_conv.csv"
    arguments = (
        "--engine",
        "vllm-v1",
        "--token-budget",
        "2048",
        "--max-seqs",
        "256",
        "--block-size",
        "16",
        "--num-blocks",
        "4000",
    )
    page = shell.json("simulate", str(file), *arguments, "--cost", "a100-8b")
    counts = page["counts"]
    assert counts["offered"] == 19_366
    assert sum(count for name, count in counts.items() if name != "offered") == 19_366
    assert page["outcome"]["kind"] == "done" and page["preemptions"] > 0
    assert page["latency"]["gap_s"]["n"] == 4_088_665 - 19_366  # output tokens in the file, less one a request


def test_leap_and_step_print_the_same(shell: Shell) -> None:
    arguments = ("simulate", "research-assistant", "--token-budget", "512", "--max-seqs", "6", "--num-blocks", "900")
    pages = [dict(shell.json(*arguments, "--method", method)) for method in ("leap", "step")]
    for page in pages:
        del page["provenance"], page["method"]
    assert pages[0] == pages[1] and pages[0]["preemptions"] > 0


def test_classes_have_limits_of_their_own(shell: Shell) -> None:
    split = "group=chat:token_budget=512;report:token_budget=4096,max_seqs=2"
    page = shell.json("simulate", "research-assistant", "--token-budget", "2048", "--max-seqs", "64", "--split", split)
    shown = {each["name"]: (each["limits"]["token_budget"], each["limits"]["max_seqs"]) for each in page["engines"]}
    assert shown == {"chat": (512, 64), "report": (4096, 2)}
    assert sum(each["offered"] for each in page["engines"]) == page["counts"]["completed"]


def test_replicas_share_the_requests(shell: Shell) -> None:
    arguments = ("simulate", "research-assistant", *SMALL, "--token-budget", "2048", "--replicas", "3")
    for router in ("round-robin", "least-outstanding"):
        page = shell.json(*arguments, "--router", router)
        assert len(page["engines"]) == 3 and page["counts"]["completed"] == page["counts"]["offered"]
    assert [each["offered"] for each in shell.json(*arguments)["engines"]] == [126, 126, 126]


def test_a_dry_run_says_what_is_in_a_file(shell: Shell, tmp_path: Path) -> None:
    rows = [{"arrival_s": at, "prompt_tokens": 9000, "output_tokens": out} for at, out in ((0, 1), (0, 5), (4, 3))]
    page = shell.json("simulate", write_jsonl(tmp_path, *rows), *SMALL, "--dry-run", "--max-len", "9003")
    assert (page["rows"], page["span_s"], page["rate_per_s"], page["gap_s"]["ties"]) == (3, 4, Decimal("0.75"), 1)
    assert page["output_tokens"] == {"min": 1, "mean": 3, "p50": 3, "max": 5, "total": 9, "single": 1}
    assert page["above"]["8192"] == {"prompts": 3, "totals": 3} and page["above"]["9003"] == {"prompts": 0, "totals": 1}
    assert page["utilisation_at_least"] > 1
    code, out, _ = shell.run("simulate", str(tmp_path / "w.jsonl"), *SMALL, "--dry-run")
    assert code == 0 and "no steady state" in out and "equal to the time before" in out


def test_cold_and_warm_prefix_caches_are_told_apart(shell: Shell, tmp_path: Path) -> None:
    blocks = {"hash_ids": [1, 2], "block_tokens": 16}
    file = write_jsonl(
        tmp_path, *({"arrival_s": at, "prompt_tokens": 32, "output_tokens": 2, **blocks} for at in (0, 9))
    )
    arguments = ("simulate", file, "--token-budget", "64", "--max-seqs", "4", "--engine", "vllm-v1,prefix_cache=true")
    cold, warm = shell.json(*arguments)["kv"]["prefix_cache"], shell.json(*arguments, "--warm")["kv"]["prefix_cache"]
    assert (cold["start"], cold["cached_tokens"], cold["token_share"]) == ("cold", 16, Decimal("0.25"))
    assert (warm["start"], warm["cached_tokens"], warm["token_share"]) == ("warm", 32, Decimal("0.5"))
    assert cold["boundless_share"] == Decimal("0.5")
    assert "--block-size" in shell.refuse(*arguments, "--block-size", "8")


@needs_shared("data", "traces", "mooncake_fast25")
@pytest.mark.parametrize(("name", "share"), [("conversation", "36.6"), ("synthetic", "64.0")])
def test_prefix_reuse_of_the_mooncake_traces(shell: Shell, name: str, share: str) -> None:
    file = SHARED / "data" / "traces" / "mooncake_fast25" / f"{name}_trace.jsonl"
    page = shell.json("simulate", str(file), "--token-budget", "8192", "--max-seqs", "256", "--dry-run")
    assert f"{page['reuse']['share'] * 100:.1f}" == share


def test_help_names_every_option_and_shows_an_example(shell: Shell) -> None:
    for command in ("tables", "simulate"):
        code, out, _ = shell.run(command, "--help")
        assert code == 0 and "examples:" in out and "--json FILE" in out
    assert shell.run("--version")[1].startswith("refsched ")


def test_it_runs_from_a_checkout_with_nothing_installed(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-S", "-m", "refsched", "tables"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "") and "20.125" in done.stdout


def test_a_reader_that_stops_reading_is_no_error() -> None:
    command = [
        sys.executable,
        "-m",
        "refsched",
        "simulate",
        "research-assistant",
        "--token-budget",
        "2048",
        "--max-seqs",
        "64",
        "--records",
        "-",
    ]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


@pytest.mark.parametrize("name", ["static", "document-a", "vllm-0.29", "vllm-v1,watermark_blocks=4,impossible=admit"])
def test_every_policy_runs_the_research_assistant(shell: Shell, name: str) -> None:
    page = shell.json("simulate", "research-assistant", "--engine", name, "--token-budget", "2048", "--max-seqs", "64")
    assert page["counts"]["completed"] == page["counts"]["offered"]
