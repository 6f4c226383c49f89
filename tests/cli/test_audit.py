"""refsched audit: what it prints, its JSON, its exit codes, and the comparison of two runs."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from tests.cli.running import Shell
from tests.results import examples as ex
from tests.shared import SHARED, needs_shared

TOOLS = SHARED / "data" / "tool_results"


@pytest.fixture
def result(tmp_path: Path) -> str:
    """Write a result file in which nothing contradicts itself."""
    return str(ex.write(tmp_path, "result.json", ex.VLLM))


def test_json_has_the_promised_parts(shell: Shell, result: str) -> None:
    page = shell.json("audit", result)
    assert page["tool"] == "vllm"
    assert {"reported", "reference", "contradictions", "traps", "goodput"} <= page.keys()
    for line in page["reported"]:
        assert line.keys() == {"name", "value", "unit", "reproduced", "definition", "computed", "reason"}
        assert line["reproduced"] in (True, False, "unsupported")
    (ttft,) = [line for line in page["reported"] if line["name"] == "mean_ttft_ms"]
    assert (ttft["value"], ttft["unit"], ttft["reproduced"], ttft["computed"]) == (250, "ms", True, 250)
    assert all(each.keys() == {"id", "because"} for each in page["traps"])
    reference = page["reference"]
    assert reference["counts"]["offered"] == 3 and reference["counts"]["completed"] == 2
    assert reference["populations"]["tpot.decode/(n-1)"]["mean"] == Decimal("0.1")
    assert "e2e.stream_end" in reference["left_out"] and "e2e.stream_end" not in reference["populations"]
    assert page["success"] == {
        "counted": 2,
        "shown": "cannot be known from this file",
        "because": page["success"]["because"],
    }
    assert page["goodput"] is None


def test_values_are_the_file_s_own_digits(shell: Shell, tmp_path: Path) -> None:
    text = json.dumps(ex.VLLM).replace('"mean_ttft_ms": 250.0', '"mean_ttft_ms": 250.00000000000001234')
    path = tmp_path / "result.json"
    path.write_text(text)
    code, out, _ = shell.run("audit", str(path), "--json", "-")
    assert code == 0 and "250.00000000000001234" in out


def test_a_contradiction_gives_exit_code_1(shell: Shell, tmp_path: Path) -> None:
    wrong = ex.change(ex.VLLM, "mean_tpot_ms", to=55.0)
    code, out, err = shell.run("audit", str(ex.write(tmp_path, "result.json", wrong)))
    assert (code, err) == (1, "")
    assert "NOT REPRODUCED mean_tpot_ms: the file says 55.0, its own data gives 100" in out
    page = json.loads(shell.run("audit", str(tmp_path / "result.json"), "--json", "-")[1])
    assert "not-reproduced" in [each["id"] for each in page["contradictions"]]


def test_text_is_readable_at_a_glance(shell: Shell, result: str) -> None:
    code, out, err = shell.run("audit", result)
    assert (code, err) == (0, "")
    assert "2 successes by the tool's count; how many truly were cannot be known from this file" in out
    assert "19 reported numbers: 18 reproduced, 0 not, 1 that the file cannot support" in out
    assert "contradictions: none" in out and "mean ttft" in out and "goodput: no targets" in out
    assert all(len(line) < 400 for line in out.splitlines())


def test_goodput_under_every_policy(shell: Shell, result: str) -> None:
    page = shell.json("audit", result, "--slo", "ttft=250ms,tpot=100ms")
    views = {
        (view["not_applicable"], view["failures"], view["denominator"]): (view["good"], view["of"])
        for view in page["goodput"]["policies"]
    }
    assert views[("pass", "count", "offered")] == (1, 3)  # request 0; request 1 is late, request 2 failed
    assert views[("pass", "drop", "completed")] == (1, 2)
    assert page["goodput"]["slo"] == {"ttft.any": Decimal("0.25"), "tpot.decode/(n-1)": Decimal("0.1")}


def test_the_tools_own_goodput_is_reproduced_with_its_targets(shell: Shell, tmp_path: Path) -> None:
    good = ex.change(ex.VLLM, "request_goodput", to=0.5)  # one good request in 2 s
    path = str(ex.write(tmp_path, "result.json", good))
    lines = shell.json("audit", path, "--slo", "ttft=250ms,tpot=101ms")["reported"]
    assert [line["reproduced"] for line in lines if line["name"] == "request_goodput"] == [True]


def test_what_a_file_cannot_judge_is_said(shell: Shell, tmp_path: Path) -> None:
    ex.write_folder(tmp_path, "guidellm")
    page = shell.json("audit", str(tmp_path), "--slo", "longest-gap=100ms,ttft=1s")
    assert page["goodput"]["cannot_judge"] == ["longest_gap"]
    assert page["goodput"]["slo"] == {"ttft.any": 1}


def test_two_runs_are_compared_and_small_differences_are_not_resolved(shell: Shell, tmp_path: Path) -> None:
    def make(name: str, ttft: float) -> str:
        rows = 200
        value = ex.VLLM | {
            "num_prompts": rows,
            "input_lens": [10] * rows,
            "output_lens": [2] * rows,
            "ttfts": [ttft + 0.001 * (number % 50) for number in range(rows)],
            "itls": [[0.1]] * rows,
            "start_times": [float(number) for number in range(rows)],
            "queue_times": [0.0] * rows,
            "errors": [""] * rows,
        }
        value["latencies"] = [first + 0.1 for first in value["ttfts"]]
        return str(ex.write(tmp_path, name, value))

    def verdicts(first: str, second: str) -> dict[tuple[str, str], str]:
        _, out, _ = shell.run("audit", first, second, "--json", "-")
        return {(each["name"], each["statistic"]): each["verdict"] for each in json.loads(out)["comparison"]}

    slow, same, fast = make("slow.json", 0.5), make("same.json", 0.501), make("fast.json", 0.2)
    assert verdicts(slow, fast)[("ttft.any", "p50")] == "second is lower"
    assert verdicts(slow, same)[("ttft.any", "p50")] == "not resolved"
    assert verdicts(slow, fast)[("ttft.any", "p99")].startswith("not resolved: too few")  # 368 are needed


def test_several_runs_are_joined(shell: Shell, tmp_path: Path) -> None:
    for name in ("a.json", "b.json", "c.json"):
        ex.write(tmp_path, name, ex.GENAI_BENCH)
    code, out, _ = shell.run("audit", str(tmp_path), "--json", "-")
    page = json.loads(out)
    assert code == 1 and page["tool"] == "genai-bench" and len(page["runs"]) == 3
    assert len(page["contradictions"]) == 3 and len({each["run"] for each in page["contradictions"]}) == 3


def test_records_are_what_measure_reads(shell: Shell, result: str, tmp_path: Path) -> None:
    records = str(tmp_path / "records.jsonl")
    assert shell.run("audit", result, "--records", records)[0] == 0
    page = shell.json("measure", records)
    assert page["counts"]["completed"] == 2 and page["counts"]["error"] == 1
    assert page["populations"]["ttft.any"]["mean"] == Decimal("0.25")


def test_what_written_records_do_not_support_is_said(shell: Shell, tmp_path: Path) -> None:
    ex.write_folder(tmp_path, "guidellm")
    records = str(tmp_path / "r.records")
    code, out, _ = shell.run("audit", str(tmp_path), "--records", records)
    assert code == 0 and "the records do not support itl.burst, itl.chunk, itl.even, longest_gap" in out
    page = shell.json("audit", str(tmp_path), "--records", records)
    assert page["notes"] == [line for line in page["notes"] if "longest_gap" in line] != []


def test_a_file_can_be_read_as_one_tool_only(shell: Shell, result: str) -> None:
    assert shell.run("audit", result, "--as", "vllm")[0] == 0
    assert "has not the fields of a result file of aiperf" in shell.refuse("audit", result, "--as", "aiperf")
    assert "--as" in shell.refuse("audit", result, "--as", "locust")


def test_bad_arguments_are_refused(shell: Shell, result: str, tmp_path: Path) -> None:
    assert "--slo" in shell.refuse("audit", result, "--slo", "ttft=5")
    assert "--prometheus: takes one scrape or two" in shell.refuse("audit", result, "--prometheus", "a", "b", "c")
    other = str(ex.write(tmp_path, "other.jsonl", [ex.SGLANG]))
    assert "--records: takes one run" in shell.refuse("audit", result, other, "--records", str(tmp_path / "r"))


def test_without_prometheus_client_the_exit_code_is_6(
    shell: Shell, result: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "prometheus_client.parser", None)
    code, out, err = shell.run("audit", result, "--prometheus", "scrape.prom")
    assert (code, out) == (6, "")
    assert err == "refsched: prometheus-client is needed to read server metrics; install refsched[server-metrics]\n"


@needs_shared("data", "tool_results")
def test_the_servers_view_stands_beside_the_clients(shell: Shell) -> None:
    pytest.importorskip("prometheus_client")
    folder = TOOLS / "vllm_bench_serve" / "f_overload_slots4_maxconc8"
    scrape = str(folder / "server_metrics_end.prom.gz")
    code, out, _ = shell.run("audit", str(folder), "--prometheus", scrape, "--json", "-")
    server = json.loads(out, parse_float=Decimal)["server"]
    assert code == 1  # its peak of concurrency is above its own cap
    assert server["latencies_s"]["ttft"]["bounds"]["p50"] == [Decimal("0.75"), 1]
    assert server["latencies_s"]["ttft"]["n"] == 80 and server["resets"] == []
    assert Decimal("0.48") < Decimal(str(server["shares"]["queue"])) < Decimal("0.49")
    text = shell.run("audit", str(folder), "--prometheus", scrape, scrape)[1]
    assert "server, since the first scrape" in text


@needs_shared("data", "tool_results")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("vllm_bench_serve/b_conc8_lens_chat", {"peak-above-cap"}),
        ("vllm_bench_serve/f_overload_slots4_maxconc8", {"peak-above-cap", "rate-not-kept"}),
        ("sglang_bench_serving/b_conc8_lens_chat", {"peak-above-cap", "peak-below-average"}),
        ("aiperf/f_overload_slots4_conc8", {"rate-not-kept"}),
        ("guidellm/f_overload_slots4_maxconc8", {"rate-not-kept"}),
        ("inference-perf/f_overload_slots4_workerconc8", {"rate-not-kept"}),
        ("inference-perf/b_conc8_lens_completions", set()),
        ("genai-bench/c_errors_chat", {"error-rate-zero"}),
        ("inference-perf/e_eos_client_tokens", {"two-token-counts"}),
        ("guidellm/x_reasoning_schedule_collapsed_to_burst", {"mixed-clocks"}),
        ("aiperf/c_errors_chat", set()),
        ("vllm_bench_serve/a_openloop_const_completions", set()),
    ],
)
def test_contradictions_of_recorded_runs(name: str, expected: set[str], shell: Shell) -> None:
    code, out, _ = shell.run("audit", str(TOOLS / name), "--json", "-")
    assert {each["id"] for each in json.loads(out)["contradictions"]} == expected
    assert code == bool(expected)


@needs_shared("data", "tool_results")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("aiperf/c_errors_chat", {"truncated-counted", "failures-dropped", "one-token-outputs"}),
        ("sglang_bench_serving/b_conc8_lens_chat", {"requested-length-counted", "tail-inside-clock"}),
        ("vllm_bench_serve/d_chunks_chat", {"chunks-counted-as-tokens"}),
        ("vllm_bench_serve/d_chunks_completions", {"empty-chunks-counted"}),
        ("vllm_bench_serve/f_overload_slots4_maxconc8", {"client-wait-hidden"}),
        ("sglang_bench_serving/f_overload_slots4_maxconc8", {"client-wait-hidden"}),
        ("guidellm/f_overload_slots4_maxconc8", {"client-wait-hidden", "tpot-includes-ttft"}),
        ("inference-perf/f_overload_slots4_workerconc8", {"client-wait-hidden"}),
        ("inference-perf/g_reasoning_content_chat", {"reasoning-ignored"}),
        ("genai-perf/g_reasoning_content_chat", {"reasoning-ignored"}),
        ("llmperf/c_errors_chat_conc8", {"failures-dropped", "itl-includes-ttft"}),
    ],
)
def test_traps_of_recorded_runs(name: str, expected: set[str], shell: Shell) -> None:
    _, out, _ = shell.run("audit", str(TOOLS / name), "--json", "-")
    assert expected <= {each["id"] for each in json.loads(out)["traps"]}


@needs_shared("data", "tool_results")
def test_goodput_of_recorded_errors_is_what_each_policy_gives(shell: Shell) -> None:
    _, out, _ = shell.run("audit", str(TOOLS / "inference-perf" / "c_errors_chat"), "--json", "-")
    views = {
        (view["success"], view["not_applicable"], view["denominator"]): (view["good"], view["of"])
        for view in json.loads(out)["goodput"]["policies"]
    }
    assert views[("as the tool counts it", "fail", "completed")] == (32, 80)  # 40 %, which the tool reports
    assert views[("as the tool counts it", "fail", "offered")] == (32, 120)  # of all that were sent
