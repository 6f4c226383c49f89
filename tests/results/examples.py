"""Small result files of each tool, written by hand; the numbers in them are worked out in the comments."""

import gzip
import json
from copy import deepcopy
from pathlib import Path
from typing import Any

Json = Any

# Two successes and a failure in 2 s. Request 0: TTFT 0.2, three gaps of 0.1, 4 tokens; request 1: TTFT 0.3, gaps 0.05
# and 0.35, 5 tokens in 3 chunks. TPOT (0.5-0.2)/3 = (0.7-0.3)/4 = 0.1; gaps 0.1 0.1 0.1 0.05 0.35, mean 0.14.
VLLM: Json = {
    "backend": "openai-chat",
    "num_prompts": 3,
    "request_rate": "inf",
    "max_concurrency": None,
    "duration": 2.0,
    "completed": 2,
    "failed": 1,
    "total_input_tokens": 30,
    "total_output_tokens": 9,
    "request_throughput": 1.0,
    "request_goodput": None,
    "output_throughput": 4.5,
    "total_token_throughput": 19.5,
    "max_output_tokens_per_s": 6.0,
    "max_concurrent_requests": 2,
    "input_lens": [10, 20, 10],
    "output_lens": [4, 5, 0],
    "ttfts": [0.2, 0.3, 0.0],
    "itls": [[0.1, 0.1, 0.1], [0.05, 0.35], []],
    "latencies": [0.5, 0.7, 0.0],
    "start_times": [100.0, 100.5, 100.6],
    "queue_times": [0.0, 0.0, 0.0],
    "errors": ["", "", "Service Unavailable"],
    "mean_ttft_ms": 250.0,
    "median_ttft_ms": 250.0,
    "std_ttft_ms": 50.0,
    "p99_ttft_ms": 299.0,
    "mean_tpot_ms": 100.0,
    "mean_itl_ms": 140.0,
    "p50_itl_ms": 100.0,
    "mean_e2el_ms": 600.0,
}

# One success: 3 tokens, TTFT 0.2, gaps 0.05 0.05, so the last chunk at 0.3; the stream ends at 0.31, TPOT 0.055.
SGLANG: Json = {
    "backend": "sglang-oai",
    "request_rate": 4.0,
    "max_concurrency": None,
    "duration": 2.0,
    "completed": 1,
    "total_input_tokens": 8,
    "total_output_tokens": 3,
    "total_output_tokens_retokenized": 3,
    "request_throughput": 0.5,
    "input_throughput": 4.0,
    "output_throughput": 1.5,
    "total_throughput": 5.5,
    "mean_e2e_latency_ms": 310.0,
    "mean_ttft_ms": 200.0,
    "mean_tpot_ms": 55.0,
    "mean_itl_ms": 50.0,
    "concurrency": 0.155,
    "input_lens": [8],
    "output_lens": [3],
    "ttfts": [0.2],
    "itls": [[0.05, 0.05]],
    "errors": [""],
}


def aiperf_record(number: int, ttft: float, gaps: list[float], start: int) -> Json:
    """Write one record; times in ms, the start in ns after an epoch that binary doubles hold exactly."""
    latency = ttft + sum(gaps)
    tokens = len(gaps) + 1
    values = {
        "time_to_first_token": (ttft, "ms"),
        "request_latency": (latency, "ms"),
        "output_sequence_length": (tokens, "tokens"),
        "input_sequence_length": (10, "tokens"),
        "inter_token_latency": ((latency - ttft) / (tokens - 1), "ms"),
        "inter_chunk_latency": (gaps, "ms"),
        "usage_completion_tokens": (tokens, "tokens"),
    }
    return {
        "metadata": {
            "session_num": number,
            "x_request_id": f"r{number}",
            "credit_issued_ns": start,
            "request_start_ns": start,
            "request_end_ns": start + int(latency * 1_000_000),
            "benchmark_phase": "profiling",
        },
        "metrics": {tag: {"value": value, "unit": unit} for tag, (value, unit) in values.items()},
        "error": None,
    }


# TTFTs 100 and 200 ms; gaps 10 30 and 20 20 ms. The second starts 256 ms after the first and takes 240 ms: T = 0.496 s.
EPOCH = 1 << 60
AIPERF_RECORDS: Json = [
    aiperf_record(0, 100.0, [10.0, 30.0], EPOCH),
    aiperf_record(1, 200.0, [20.0, 20.0], EPOCH + 256_000_000),
]
AIPERF_SUMMARY: Json = {
    "aiperf_version": "0.13.0",
    "request_count": {"unit": "requests", "avg": 2.0},
    "benchmark_duration": {"unit": "sec", "avg": 0.496},
    "request_throughput": {"unit": "requests/sec", "avg": 2 / 0.496},
    "output_token_throughput": {"unit": "tokens/sec", "avg": 6 / 0.496},
    "total_osl": {"unit": "tokens", "avg": 6.0},
    "time_to_first_token": {
        "unit": "ms",
        "avg": 150.0,
        "p50": 150.0,
        "std": 50.0,
        "min": 100.0,
        "max": 200.0,
        "count": 2,
    },
    "request_latency": {"unit": "ms", "avg": 190.0},
    "inter_token_latency": {"unit": "ms", "avg": 20.0},
    "inter_chunk_latency": {"unit": "ms", "avg": 20.0, "max": 30.0, "count": 4},
}


def sse(delta: Json, finish: str | None = None) -> Json:
    """Write one server-sent event of a chat."""
    body = {"object": "chat.completion.chunk", "choices": [{"delta": delta, "finish_reason": finish}]}
    return {"response": f"data: {json.dumps(body)}\n\n"}


# Sent at 1000 ns: a role, "a" at 100 ms, " b" at 150 ms, [DONE] at 151 ms. One request in 0.15 s.
MS = 1_000_000
PERF_EXPORT: Json = {
    "version": "2.60",
    "service_kind": "openai",
    "endpoint": "v1/chat/completions",
    "experiments": [
        {
            "experiment": {"mode": "concurrency", "value": 1},
            "requests": [
                {
                    "timestamp": 1000,
                    "request_inputs": {"payload": "{}"},
                    "response_timestamps": [1000 + 90 * MS, 1000 + 100 * MS, 1000 + 150 * MS, 1000 + 151 * MS],
                    "response_outputs": [
                        sse({"role": "assistant", "content": ""}),
                        sse({"content": "a"}),
                        sse({"content": " b"}, "length"),
                        {"response": "data: [DONE]\n\n"},
                    ],
                }
            ],
            "window_boundaries": [1000],
        }
    ],
}
PERF_SUMMARY: Json = {
    "request_throughput": {"unit": "requests/sec", "avg": 1 / 0.15},
    "request_count": {"unit": "count", "avg": 1.0},
    "request_latency": {"unit": "ms", "avg": 150.0, "p99": 150.0},
    "time_to_first_token": {"unit": "ms", "avg": 100.0},
    "time_to_second_token": {"unit": "ms", "avg": 50.0},
    "inter_token_latency": {"unit": "ms", "avg": 50.0},
    "output_sequence_length": {"unit": "tokens", "avg": 2.0},
}


def distribution(value: float, weight: int = 1) -> Json:
    """Write a distribution of one value."""
    names = ("p001", "p01", "p05", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "p999")
    return {
        "mean": value,
        "median": value,
        "mode": value,
        "variance": 0.0,
        "std_dev": 0.0,
        "min": value,
        "max": value,
        "count": weight,
        "total_sum": value * weight,
        "percentiles": dict.fromkeys(names, value),
    }


# Sent at 8, first token at 9, last at 10, end at 10.5; 5 tokens: TTFT 1000 ms, TPOT by e2e/n 2000/5 = 400, ITL 250.
GUIDELLM: Json = {
    "metadata": {"version": 2},
    "config": {},
    "benchmarks": [
        {
            "type_": "generative_benchmark",
            "config": {"strategy": {"type_": "concurrent", "streams": 1}},
            "scheduler_metrics": {
                "measure_start_time": 8.0,
                "measure_end_time": 10.5,
                "requests_made": {"successful": 1, "errored": 0, "incomplete": 0, "total": 1},
            },
            "duration": 2.5,
            "warmup_duration": 0.0,
            "metrics": {
                "request_totals": {"successful": 1, "errored": 0, "incomplete": 0, "total": 1},
                "request_latency": {"successful": distribution(2.5)},
                "time_to_first_token_ms": {"successful": distribution(1000.0)},
                "time_per_output_token_ms": {"successful": distribution(400.0, 5)},
                "inter_token_latency_ms": {"successful": distribution(250.0, 4)},
            },
            "requests": {
                "successful": [
                    {
                        "request_id": "a",
                        "info": {
                            "status": "completed",
                            "timings": {
                                "targeted_start": 8.0,
                                "request_start": 8.0,
                                "first_token_iteration": 9.0,
                                "first_output_token_iteration": 9.0,
                                "last_token_iteration": 10.0,
                                "token_iterations": 5,
                                "request_iterations": 7,
                                "request_end": 10.5,
                                "resolve_end": 10.5,
                            },
                        },
                        "input_metrics": {"total_tokens": 12},
                        "output_metrics": {"total_tokens": 5},
                    }
                ],
                "incomplete": [],
                "errored": [],
                "total": None,
            },
        }
    ],
}

# Start 5, tokens at 5.25, 5.5 (two in one chunk) and 5.75, end 6: TTFT 0.25, TPOT (0.5)/3, NTPOT 1/4, gaps .25 0 .25.
INFERENCE_ENTRIES: Json = [
    {
        "start_time": 5.0,
        "end_time": 6.0,
        "info": {
            "request_metrics": {"text": {"input_tokens": 8}},
            "response_metrics": {
                "output_tokens": 4,
                "server_usage": {"prompt_tokens": 8, "completion_tokens": 4},
                "chunk_times": [5.25, 5.5, 5.75],
                "output_token_times": [5.25, 5.5, 5.5, 5.75],
            },
        },
        "error": None,
    }
]
INFERENCE_SUMMARY: Json = {
    "benchmark_time_seconds": 1.0,
    "load_summary": {"count": 1, "schedule_delay": {"mean": 0.001}},
    "successes": {
        "count": 1,
        "latency": {
            "request_latency": {"mean": 1.0, "median": 1.0, "p99.9": 1.0},
            "normalized_time_per_output_token": {"mean": 0.25},
            "time_per_output_token": {"mean": 0.5 / 3},
            "time_to_first_token": {"mean": 0.25},
            "inter_token_latency": {"mean": 0.5 / 3, "min": 0.0, "max": 0.25},
        },
        "throughput": {
            "input_tokens_per_sec": 8.0,
            "output_tokens_per_sec": 4.0,
            "total_tokens_per_sec": 12.0,
            "requests_per_sec": 1.0,
        },
        "output_tokens": {"total": 4.0, "mean": 4.0},
    },
    "failures": {"count": 0, "request_latency": None, "by_label": {}},
}

# One success of 10 tokens (decode 0.9 over 9 gaps: 0.1) and one failure; error_rate is the tool's own 0.
GENAI_BENCH: Json = {
    "aggregated_metrics": {
        "scenario": "D(20,10)",
        "num_concurrency": 2,
        "run_duration": 10.0,
        "mean_output_throughput_tokens_per_s": 1.0,
        "requests_per_second": 0.1,
        "error_codes_frequency": {"429": 1},
        "error_rate": 0,
        "num_error_requests": 1,
        "num_completed_requests": 1,
        "num_requests": 2,
        "stats": {
            "ttft": {"mean": 0.5, "p99": 0.5},
            "tpot": {"mean": 0.1},
            "e2e_latency": {"mean": 1.4, "sum": 1.4},
            "num_output_tokens": {"sum": 10},
        },
    },
    "individual_request_metrics": [
        {
            "ttft": 0.5,
            "tpot": 0.1,
            "e2e_latency": 1.4,
            "output_latency": 0.9,
            "num_input_tokens": 20,
            "num_output_tokens": 10,
            "total_tokens": 30,
            "error_code": None,
        },
        {"ttft": None, "error_code": 429, "error_message": "overloaded"},
    ],
    "_time_unit": "s",
}

# TTFT 1, four gaps of 0.1, 5 chunks: llmperf's ITL is 1.4 / 5 = 0.28.
LLMPERF_RESPONSES: Json = [
    {
        "error_code": None,
        "error_msg": "",
        "inter_token_latency_s": 0.28,
        "ttft_s": 1.0,
        "end_to_end_latency_s": 1.4,
        "request_output_throughput_token_per_s": 6 / 1.4,
        "number_output_tokens": 6,
        "number_input_tokens": 20,
        "number_total_tokens": 26,
    }
]
LLMPERF_SUMMARY: Json = {
    "results_inter_token_latency_s_mean": 0.28,
    "results_ttft_s_quantiles_p99": 1.0,
    "results_end_to_end_latency_s_mean": 1.4,
    "results_number_output_tokens_min": "6",
    "results_num_requests_started": 1,
    "results_error_rate": 0.0,
    "results_number_errors": 0,
    "results_error_code_frequency": "{}",
    "results_mean_output_throughput_token_per_s": 3.0,
    "results_num_completed_requests": 1,
    "results_num_completed_requests_per_min": 30.0,
}

FOLDERS: dict[str, dict[str, Json]] = {
    "vllm": {"result.json": VLLM},
    "sglang": {"result.jsonl": [SGLANG]},
    "aiperf": {"profile_export.jsonl": AIPERF_RECORDS, "profile_export_aiperf.json": AIPERF_SUMMARY},
    "genai-perf": {"profile_export.json": PERF_EXPORT, "profile_export_genai_perf.json": PERF_SUMMARY},
    "guidellm": {"benchmarks.json": GUIDELLM},
    "inference-perf": {
        "per_request_lifecycle_metrics.json": INFERENCE_ENTRIES,
        "summary_lifecycle_metrics.json": INFERENCE_SUMMARY,
    },
    "genai-bench": {"run.json": GENAI_BENCH},
    "llmperf": {"x_individual_responses.json": LLMPERF_RESPONSES, "x_summary.json": LLMPERF_SUMMARY},
}


def write(folder: Path, name: str, value: Json) -> Path:
    """Write one file: lines where its name says so, gzipped where its name says so."""
    text = "".join(json.dumps(each) + "\n" for each in value) if ".jsonl" in name else json.dumps(value)
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def write_folder(folder: Path, tool: str) -> Path:
    """Write the example of one tool."""
    for name, value in FOLDERS[tool].items():
        write(folder, name, value)
    return folder


def change(value: Json, *path: str | int, to: Json) -> Json:
    """Copy a value with one place in it changed."""
    copy = deepcopy(value)
    inside = copy
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = to
    return copy


def drop(value: Json, *path: str | int) -> Json:
    """Copy a value with one place in it taken out."""
    copy = deepcopy(value)
    inside = copy
    for key in path[:-1]:
        inside = inside[key]
    del inside[path[-1]]
    return copy
