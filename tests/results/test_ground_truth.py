"""The reference's values beside the server's own log: they agree within the client's clock error, or are not stated."""

import gzip
import json
from collections.abc import Mapping
from statistics import mean
from typing import Any

import pytest

from refsched.record import Outcome
from refsched.results.collect import collect_runs
from refsched.results.reference import Reference, make_reference
from refsched.results.run import Run
from tests.shared import SHARED, needs_shared

FOLDER = SHARED / "data" / "tool_results"
TTFT_LATE = 0.020  # a client sees a first token up to this much later on average: connection, parsing, waking up
GAP = 0.0012  # and a mean gap or TPOT this much off
TRUE_SUCCESSES = {
    "aiperf/c_errors_chat": 73,
    "inference-perf/c_errors_chat": 54,
    "inference-perf/c_errors_chatcfg_sharedprefix_sent_completions": 72,
}
UNKNOWN_SUCCESSES = (
    "vllm_bench_serve/c_errors_chat",
    "vllm_bench_serve/c_errors_completions",
    "sglang_bench_serving/c_errors_chat",
    "sglang_bench_serving/c_errors_completions",
    "guidellm/c_errors_chat",
    "genai-bench/c_errors_chat",
    "llmperf/c_errors_chat_conc8",
)
COMPLETE = (  # runs whose files hold every request, and whose records the log can be held against
    "aiperf/a_openloop_const_chat",
    "aiperf/b_conc8_lens_chat",
    "aiperf/c_errors_chat",
    "aiperf/d_chunks_chat",
    "aiperf/d_chunks_chat_raw_httptrace",
    "aiperf/f_overload_slots4_conc8",
    "aiperf/g_reasoning_content_chat",
    "genai-perf/a_openloop_const_chat",
    "genai-perf/b_conc8_lens_chat",
    "genai-perf/d_chunks_chat",
    "genai-perf/g_reasoning_content_chat",
    "guidellm/a_openloop_const_chat",
    "inference-perf/a_openloop_poisson_completions",
    "inference-perf/b_conc8_lens_completions",
    "inference-perf/c_errors_chat",
    "inference-perf/d_chunks_chat",
    "inference-perf/f_overload_slots4_workerconc8",
    "inference-perf/g_reasoning_content_chat",
    "sglang_bench_serving/a_openloop_const_completions",
    "sglang_bench_serving/d_chunks_chat_usage",
    "sglang_bench_serving/f_overload_slots4_maxconc8",
    "vllm_bench_serve/a_openloop_const_completions",
    "vllm_bench_serve/b_conc8_lens_chat",
    "vllm_bench_serve/d_chunks_completions",
    "vllm_bench_serve/e_separate_finish_chat",
    "vllm_bench_serve/f_overload_slots4_maxconc8",
)


def read(name: str) -> tuple[Run, Reference, list[Mapping[str, Any]]]:
    """Read one run, its reference, and what the server logged of the requests that it answered in full."""
    (run,) = collect_runs([str(FOLDER / name)])
    reference = make_reference(run, "nearest-rank")
    assert reference is not None
    with gzip.open(FOLDER / name / "ground_truth.jsonl.gz", "rt", encoding="utf-8") as file:
        log = [json.loads(line) for line in file]
    return run, reference, [each for each in log if each.get("outcome") == "ok"]


def list_times(request: Mapping[str, Any]) -> list[float]:
    """List when the server sent each chunk with text, in seconds since the request came."""
    return [at / 1e6 for kind, _, at, *_ in request["chunks"] if kind in "tR"]


def count_tokens(request: Mapping[str, Any]) -> int:
    """Count the tokens that the server sent."""
    return sum(count for kind, count, *_ in request["chunks"] if kind in "tRh")


def get_mean(reference: Reference, name: str) -> float | None:
    """Give the mean of one population in seconds; None where it is not stated."""
    population = reference.populations.get(name)
    return None if population is None or population.mean is None else float(population.mean) / 1e12


@needs_shared("data", "tool_results")
@pytest.mark.parametrize(("name", "count"), TRUE_SUCCESSES.items())
def test_true_successes_are_stated_where_the_file_shows_them(name: str, count: int) -> None:
    run, reference, log = read(name)
    assert len(log) == count == run.success.shown == reference.measured.counts["completed"]
    assert run.success.counted > count


@needs_shared("data", "tool_results")
@pytest.mark.parametrize("name", UNKNOWN_SUCCESSES)
def test_true_successes_are_not_stated_where_the_file_cannot_show_them(name: str) -> None:
    (run,) = collect_runs([str(FOLDER / name)])
    assert run.success.shown is None and run.success.because


@needs_shared("data", "tool_results")
@pytest.mark.parametrize("name", COMPLETE)
def test_the_reference_agrees_with_the_server(name: str) -> None:
    _, reference, log = read(name)
    times = [list_times(request) for request in log]
    tpots = [(at[-1] - at[0]) / (n - 1) for at, n in zip(times, map(count_tokens, log), strict=True) if n > 1]
    ttft, tpot = get_mean(reference, "ttft.any"), get_mean(reference, "tpot.decode/(n-1)")
    last = get_mean(reference, "e2e.last_token")
    assert ttft is None or -0.001 < ttft - mean(at[0] for at in times) < TTFT_LATE
    assert last is None or -0.001 < last - mean(at[-1] for at in times) < TTFT_LATE
    assert tpot is None or abs(tpot - mean(tpots)) < GAP


@needs_shared("data", "tool_results")
def test_what_a_file_cannot_tell_is_not_stated() -> None:
    expected = {
        "vllm_bench_serve/d_chunks_completions": {"ttft.any", "longest_gap"},  # empty chunks count as chunks
        "inference-perf/g_reasoning_content_chat": {"ttft.any", "tpot.decode/(n-1)"},  # reasoning has no times
        "guidellm/a_openloop_const_chat": {"longest_gap", "itl.chunk"},  # first and last token only
        "sglang_bench_serving/d_chunks_native_generate": {"longest_gap"},  # gaps were divided
        "genai-bench/b_conc8_lens_chat": {"tpot.decode/(n-1)", "longest_gap"},
        "genai-perf/d_chunks_chat": {"tpot.decode/(n-1)"},  # no token counts
    }
    for name, missing in expected.items():
        _, reference, _ = read(name)
        assert not missing & reference.populations.keys(), name


@needs_shared("data", "tool_results")
def test_each_request_of_aiperf_agrees_with_the_server() -> None:
    run, _, log = read("aiperf/c_errors_chat")
    sent = {request["x_request_id"]: request for request in log}
    whole = [record for record in run.records if record.outcome is Outcome.COMPLETED]
    assert {record.id for record in whole} == sent.keys()
    for record in whole:
        assert record.sent is not None and record.output_tokens == count_tokens(sent[record.id])
        seen = [(delivery.at - record.sent) / 1e12 for delivery in record.deliveries]
        times = list_times(sent[record.id])
        assert len(seen) == len(times)
        assert all(-0.001 < client - server < 0.1 for client, server in zip(seen, times, strict=True))


@needs_shared("data", "tool_results")
def test_the_kept_requests_of_guidellm_agree_with_the_server() -> None:
    run, _, log = read("guidellm/a_openloop_const_chat")
    assert len(run.records) == len(log) == 100
    assert sum(record.output_tokens or 0 for record in run.records) == sum(map(count_tokens, log))
