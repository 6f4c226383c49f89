"""Small files of each tool, whose numbers are worked out by hand: reproduced, and wrong ones found out."""

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import pytest

from refsched.record import Outcome
from refsched.results.collect import collect_runs
from refsched.results.crosschecks import find_contradictions
from refsched.results.reference import make_reference
from refsched.results.run import Reported, Run
from refsched.results.traps import find_traps
from tests.results import examples as ex


def read(folder: Path, tool: str) -> Run:
    """Write and read the example of one tool."""
    (run,) = collect_runs([str(ex.write_folder(folder, tool))])
    return run


def by_name(run: Run) -> Mapping[str, Reported]:
    """Find reported numbers by name."""
    return {line.name: line for line in run.reported}


def ids(run: Run) -> tuple[set[str], set[str]]:
    """Give the names of contradictions and traps."""
    return {each.id for each in find_contradictions(run)}, {each.id for each in find_traps(run)}


UNSUPPORTED = {
    "vllm": {"duration"},
    "sglang": {"duration", "total_output_tokens_retokenized", "mean_e2e_latency_ms", "mean_tpot_ms"},
    "aiperf": set(),
    "genai-perf": set(),
    "guidellm": set(),
    "inference-perf": {"load_summary.schedule_delay.mean"},
    "genai-bench": {"aggregated_metrics.run_duration"},
    "llmperf": {"results_num_completed_requests_per_min"},
}


@pytest.mark.parametrize("tool", ex.FOLDERS)
def test_each_number_is_reproduced(tool: str, tmp_path: Path) -> None:
    run = read(tmp_path, tool)
    assert run.tool == tool
    assert [(line.name, line.reason) for line in run.reported if line.reproduced is False] == []
    assert {line.name for line in run.reported if line.reproduced == "unsupported"} == UNSUPPORTED[tool]


@pytest.mark.parametrize(
    ("tool", "name", "path"),
    [
        ("vllm", "result.json", ("mean_ttft_ms",)),
        ("vllm", "result.json", ("std_ttft_ms",)),
        ("vllm", "result.json", ("p50_itl_ms",)),
        ("vllm", "result.json", ("mean_e2el_ms",)),
        ("vllm", "result.json", ("max_output_tokens_per_s",)),
        ("vllm", "result.json", ("total_token_throughput",)),
        ("aiperf", "profile_export_aiperf.json", ("time_to_first_token", "avg")),
        ("aiperf", "profile_export_aiperf.json", ("request_throughput", "avg")),
        ("genai-perf", "profile_export_genai_perf.json", ("time_to_second_token", "avg")),
        ("guidellm", "benchmarks.json", ("benchmarks", 0, "metrics", "request_latency", "successful", "mean")),
        ("inference-perf", "summary_lifecycle_metrics.json", ("successes", "latency", "request_latency", "p99.9")),
        ("inference-perf", "summary_lifecycle_metrics.json", ("successes", "throughput", "requests_per_sec")),
        ("genai-bench", "run.json", ("aggregated_metrics", "stats", "ttft", "p99")),
        ("llmperf", "x_summary.json", ("results_ttft_s_quantiles_p99",)),
    ],
)
def test_a_number_that_is_off_by_a_millionth_is_found_out(
    tool: str, name: str, path: tuple[str | int, ...], tmp_path: Path
) -> None:
    ex.write_folder(tmp_path, tool)
    value = ex.FOLDERS[tool][name]
    for key in path:
        value = value[key]
    ex.write(tmp_path, name, ex.change(ex.FOLDERS[tool][name], *path, to=value * (1 + 1e-6)))
    (run,) = collect_runs([str(tmp_path)])
    wrong = [line for line in run.reported if line.reproduced is False]
    assert wrong and all(line.reason and line.computed is not None for line in wrong)
    assert "not-reproduced" in ids(run)[0]


def test_vllm_is_read_whole(tmp_path: Path) -> None:
    run = read(tmp_path, "vllm")
    lines = by_name(run)
    assert lines["mean_itl_ms"].computed == 140 and lines["mean_tpot_ms"].computed == 100
    assert [record.outcome for record in run.records] == [Outcome.COMPLETED, Outcome.COMPLETED, Outcome.ERROR]
    reference = make_reference(run, "nearest-rank")
    assert reference is not None and "e2e.stream_end" not in reference.populations
    assert reference.populations["longest_gap"].max == 350_000_000_000  # 0.35 s, which no mean shows
    assert "failures-dropped" in ids(run)[1] and "chunks-counted-as-tokens" in ids(run)[1]


def test_several_runs_in_a_file_that_was_appended_to(tmp_path: Path) -> None:
    import json

    path = tmp_path / "result.json"
    path.write_text(json.dumps(ex.VLLM) + "\n" + json.dumps(ex.VLLM) + "\n")
    assert len(collect_runs([str(path)])) == 2
    path = ex.write(tmp_path, "r.jsonl", [ex.SGLANG, ex.SGLANG])
    assert len(collect_runs([str(path)])) == 2


def test_vllm_without_details_says_what_it_cannot_support(tmp_path: Path) -> None:
    arrays = ("input_lens", "output_lens", "ttfts", "itls", "start_times", "errors", "latencies", "queue_times")
    bare = {key: value for key, value in ex.VLLM.items() if key not in arrays}
    (run,) = collect_runs([str(ex.write(tmp_path, "result.json", bare))])
    lines = by_name(run)
    assert lines["mean_ttft_ms"].reproduced == "unsupported" and lines["request_throughput"].reproduced is True
    assert any("--save-detailed" in limit for limit in run.limits)


def test_vllm_of_an_older_version_ends_a_request_at_its_last_chunk(tmp_path: Path) -> None:
    old = ex.drop(ex.drop(ex.VLLM, "latencies"), "start_times")
    (run,) = collect_runs([str(ex.write(tmp_path, "result.json", old))])
    lines = by_name(run)
    assert lines["mean_e2el_ms"].reproduced is True and lines["mean_tpot_ms"].reproduced is True
    assert lines["max_concurrent_requests"].reproduced == "unsupported"
    assert all(record.clock == "request" for record in run.records)


def test_sglang_counts_the_length_that_was_asked_for(tmp_path: Path) -> None:
    asked = ex.change(ex.SGLANG, "total_output_tokens_retokenized", to=2)
    (run,) = collect_runs([str(ex.write(tmp_path, "r.jsonl", [asked]))])
    assert {"requested-length-counted", "tail-inside-clock", "truncated-unknown"} <= ids(run)[1]


def test_sglang_latency_below_its_own_chunks(tmp_path: Path) -> None:
    short = ex.change(ex.change(ex.SGLANG, "mean_e2e_latency_ms", to=250.0), "concurrency", to=0.125)
    (run,) = collect_runs([str(ex.write(tmp_path, "r.jsonl", [short]))])
    assert "shorter-than-its-chunks" in ids(run)[0]


def test_an_empty_stream_enters_the_mean_as_zero(tmp_path: Path) -> None:
    empty = ex.SGLANG | {
        "completed": 2,
        "input_lens": [8, 8],
        "output_lens": [3, 0],
        "ttfts": [0.2, 0.0],
        "itls": [[0.05, 0.05], []],
        "errors": ["", ""],
        "mean_ttft_ms": 100.0,
    }
    (run,) = collect_runs([str(ex.write(tmp_path, "r.jsonl", [empty]))])
    assert by_name(run)["mean_ttft_ms"].reproduced is True and "zero-entries" in ids(run)[1]
    reference = make_reference(run, "nearest-rank")
    assert reference is not None and reference.populations["ttft.any"].mean == 200_000_000_000
    assert reference.populations["ttft.any"].undefined == 1


def test_a_success_without_usage_was_cut(tmp_path: Path) -> None:
    cut = ex.drop(ex.AIPERF_RECORDS, 1, "metrics", "usage_completion_tokens")
    (run,) = collect_runs([str(ex.write(tmp_path, "profile_export.jsonl", cut))])
    assert (run.success.counted, run.success.shown) == (2, 1)
    assert [record.outcome for record in run.records] == [Outcome.COMPLETED, Outcome.ERROR]
    assert "truncated-counted" in ids(run)[1]


def test_the_export_shows_streams_that_were_cut_and_errors_inside(tmp_path: Path) -> None:
    request = ("experiments", 0, "requests", 0)
    parts = ex.PERF_EXPORT["experiments"][0]["requests"][0]["response_outputs"]
    open_end = ex.change(
        ex.PERF_EXPORT, *request, "response_outputs", to=[*parts[:2], ex.sse({"content": " b"}), parts[0]]
    )
    inside = [*parts[:3], {"response": 'data: {"error": {"message": "engine died"}}\n\n'}]
    for value in (open_end, ex.change(ex.PERF_EXPORT, *request, "response_outputs", to=inside)):
        (run,) = collect_runs([str(ex.write(tmp_path, "profile_export.json", value))])
        assert (run.success.counted, run.success.shown) == (1, 0)
        assert "truncated-counted" in ids(run)[1]
    assert "error-inside-counted" in ids(run)[1]


def test_guidellm_names_what_its_tpot_holds(tmp_path: Path) -> None:
    run = read(tmp_path, "guidellm")
    lines = by_name(run)
    name = "benchmarks[0].metrics.time_per_output_token_ms.successful.mean"
    assert lines[name].computed == 400 and "tpot.e2e/n" in lines[name].definition
    reference = make_reference(run, "nearest-rank")
    assert reference is not None and "longest_gap" not in reference.populations
    assert reference.populations["tpot.decode/(n-1)"].mean == 250_000_000_000
    assert "tpot-includes-ttft" in ids(run)[1]


def test_guidellm_with_a_sample_of_requests_reproduces_nothing_from_it(tmp_path: Path) -> None:
    totals = ("benchmarks", 0, "metrics", "request_totals", "successful")
    (run,) = collect_runs([str(ex.write(tmp_path, "benchmarks.json", ex.change(ex.GUIDELLM, *totals, to=7)))])
    name = "benchmarks[0].metrics.request_latency.successful.mean"
    assert by_name(run)[name].reproduced == "unsupported" and run.trim


def test_inference_perf_stamps_all_tokens_of_a_chunk_at_once(tmp_path: Path) -> None:
    run = read(tmp_path, "inference-perf")
    lines = by_name(run)
    assert lines["successes.latency.inter_token_latency.min"].computed == 0
    reference = make_reference(run, "nearest-rank")
    assert reference is not None
    assert reference.populations["itl.chunk"].n == 2 and reference.populations["itl.burst"].n == 3
    assert {"burst-zeros", "tail-inside-clock"} <= ids(run)[1]


def test_genai_bench_reports_an_error_rate_of_zero_beside_an_error(tmp_path: Path) -> None:
    run = read(tmp_path, "genai-bench")
    assert by_name(run)["aggregated_metrics.error_rate"].reproduced is True
    assert "error-rate-zero" in ids(run)[0]


def test_genai_bench_in_milliseconds_is_the_same(tmp_path: Path) -> None:
    times = ("ttft", "tpot", "e2e_latency", "output_latency")
    value = ex.change(ex.GENAI_BENCH, "_time_unit", to="ms")
    for key in times:
        row = value["individual_request_metrics"][0]
        row[key] = row[key] * 1000
    for key, names in (("ttft", ("mean", "p99")), ("tpot", ("mean",)), ("e2e_latency", ("mean", "sum"))):
        part = value["aggregated_metrics"]["stats"][key]
        part |= {name: part[name] * 1000 for name in names}
    (run,) = collect_runs([str(ex.write(tmp_path, "run.json", value))])
    assert [line.name for line in run.reported if line.reproduced is False] == []
    assert run.claims["mean_ttft"] == Decimal("0.5")


def test_genai_bench_with_trimmed_ends_is_recognised(tmp_path: Path) -> None:
    row = ex.GENAI_BENCH["individual_request_metrics"][0]
    slow = row | {"ttft": 9.0, "e2e_latency": 9.9}
    value = ex.change(ex.GENAI_BENCH, "individual_request_metrics", to=[slow, row, slow])
    value["aggregated_metrics"] |= {
        "num_requests": 3,
        "num_completed_requests": 3,
        "num_error_requests": 0,
        "error_codes_frequency": {},
        "requests_per_second": 0.3,
    }
    (run,) = collect_runs([str(ex.write(tmp_path, "run.json", value))])
    assert [line.name for line in run.reported if line.reproduced is False] == []
    assert "trimmed-unevenly" in ids(run)[1]


def test_llmperf_counts_the_first_wait_among_the_gaps(tmp_path: Path) -> None:
    run = read(tmp_path, "llmperf")
    assert by_name(run)["results_inter_token_latency_s_mean"].computed == Decimal("0.28")
    assert {"itl-includes-ttft", "failures-dropped"} <= ids(run)[1]
    assert any("longest gap unknown" in limit for limit in run.limits)


def test_gzipped_files_are_the_same(tmp_path: Path) -> None:
    (plain,) = collect_runs([str(ex.write(tmp_path, "result.json", ex.VLLM))])
    (packed,) = collect_runs([str(ex.write(tmp_path, "packed.json.gz", ex.VLLM))])
    assert plain.records == packed.records and plain.reported == packed.reported


def test_related_files_given_one_by_one_are_one_run(tmp_path: Path) -> None:
    ex.write_folder(tmp_path, "llmperf")
    (run,) = collect_runs([str(path) for path in sorted(tmp_path.iterdir())])
    assert len(run.files) == 2


@pytest.mark.parametrize(
    ("name", "value", "path"),
    [
        ("p.jsonl", ex.AIPERF_RECORDS, (0, "metrics", "inter_token_latency", "value")),
        ("r.json", ex.INFERENCE_ENTRIES, (0, "computed_metrics", "time_per_output_token")),
        ("g.json", ex.GUIDELLM, ("benchmarks", 0, "requests", "successful", 0, "time_per_output_token_ms")),
        ("b.json", ex.GENAI_BENCH, ("individual_request_metrics", 0, "tpot")),
        ("l.json", ex.LLMPERF_RESPONSES, (0, "request_output_throughput_token_per_s")),
    ],
)
def test_a_number_of_one_request_that_does_not_follow_is_found_out(
    name: str, value: ex.Json, path: tuple[str | int, ...], tmp_path: Path
) -> None:
    right = {"time_per_output_token": 0.5 / 3, "time_per_output_token_ms": 400.0}
    if path[1] == "computed_metrics":
        value = ex.change(value, 0, "computed_metrics", to={})
    if path[-1] in right:
        value = ex.change(value, *path, to=right[str(path[-1])])
    (run,) = collect_runs([str(ex.write(tmp_path, name, value))])
    assert "request-does-not-fit" not in ids(run)[0]
    (run,) = collect_runs([str(ex.write(tmp_path, name, ex.change(value, *path, to=0.7)))])
    assert "request-does-not-fit" in ids(run)[0]


def test_a_vllm_latency_other_than_its_chunks_is_found_out(tmp_path: Path) -> None:
    wrong = ex.change(ex.VLLM, "latencies", 0, to=0.6)
    (run,) = collect_runs([str(ex.write(tmp_path, "result.json", wrong))])
    assert "gaps-do-not-add-up" in ids(run)[0]


def test_intervals_of_guidellm_are_known_ones() -> None:
    from refsched.results.guidellm_intervals import bound_mean, bound_quantile, find_t

    # Student's t as printed in tables: 97.5 % with 1, 10 and 99 degrees of freedom
    for freedom, t in ((1, 12.7062), (10, 2.2281), (99, 1.9842)):
        assert abs(find_t(0.975, freedom) - t) < 5e-5
    low, high = bound_mean(10.0, 3.0, 10, 0.95) or (0.0, 0.0)
    assert abs(high - 10 - 2.2622 * 3 / 3) < 1e-4 and abs(low + high - 20) < 1e-12
    # ranks 40 and 61 of 100 bound a median with 95 %; a p99 needs 368 values for both bounds
    assert bound_quantile([float(number) for number in range(1, 101)], 0.5, 0.95) == (40.0, 61.0)
    assert bound_quantile([1.0] * 367, 0.99, 0.95) is None
    assert bound_quantile([1.0] * 368, 0.99, 0.95) == (1.0, 1.0)


def test_the_servers_own_times_are_kept_where_vllm_saves_them(tmp_path: Path) -> None:
    value = ex.VLLM | {"server_queue_times": [0.05, None, None], "server_ttfts": [0.15, None, None]}
    (run,) = collect_runs([str(ex.write(tmp_path, "result.json", value))])
    reference = make_reference(run, "nearest-rank")
    assert reference is not None
    assert reference.populations["server.queued"].mean == 50_000_000_000
    assert reference.populations["transport.first_token"].mean == 50_000_000_000  # 0.2 s at the client, 0.15 there


def test_the_raw_export_shows_errors_inside_streams(tmp_path: Path) -> None:
    def line(*events: str) -> ex.Json:
        responses = [
            {"perf_ns": 1000 + number * 1_000_000, "packets": [{"name": "data", "value": event}]}
            for number, event in enumerate(events, 1)
        ]
        meta = ex.AIPERF_RECORDS[0]["metadata"]
        return {"metadata": meta, "start_perf_ns": 1000, "status": 200, "responses": responses, "error": None}

    token = '{"choices": [{"delta": {"content": "a"}, "finish_reason": null}]}'
    error = '{"error": {"message": "engine died"}}'
    (whole,) = collect_runs([str(ex.write(tmp_path, "a.jsonl", [line(token, token, "[DONE]")]))])
    (broken,) = collect_runs([str(ex.write(tmp_path, "b.jsonl", [line(token, error)]))])
    assert (whole.success.shown, broken.success.shown) == (1, 0)
    assert "error-inside-counted" in ids(broken)[1] and "error-inside-counted" not in ids(whole)[1]
    reference = make_reference(whole, "nearest-rank")
    assert reference is not None and reference.populations["ttft.any"].mean == 10**9  # 1 ms
    assert reference.populations["e2e.last_token"].mean == 2 * 10**9


def test_sglang_reports_the_input_that_was_intended(tmp_path: Path) -> None:
    value = ex.change(ex.SGLANG, "input_lens", to=[9])
    (run,) = collect_runs([str(ex.write(tmp_path, "r.jsonl", [value]))])
    assert "intended-input-counted" in ids(run)[1]
    lines = by_name(run)
    assert lines["total_input_tokens"].reproduced == "unsupported" and lines["total_throughput"].reproduced is True
