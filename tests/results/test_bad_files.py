"""Files that cannot be audited: exit code 2, and one clear line that names the file and the field."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.running import Shell
from tests.results import examples as ex

Maker = Callable[[Path], Path]


def text(content: str, name: str = "result.json") -> Maker:
    """Make a file of any text."""

    def make(folder: Path) -> Path:
        path = folder / name
        path.write_text(content, encoding="utf-8")
        return path

    return make


def data(content: bytes, name: str = "result.json") -> Maker:
    """Make a file of any bytes."""

    def make(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(content)
        return path

    return make


def value(content: ex.Json, name: str = "result.json") -> Maker:
    """Make a file of a JSON value."""
    return lambda folder: ex.write(folder, name, content)


def folder_of(**files: str) -> Maker:
    """Make a folder of text files."""

    def make(folder: Path) -> Path:
        for name, content in files.items():
            (folder / name.replace("_json", ".json")).write_text(content)
        return folder

    return make


GOOD = json.dumps(ex.VLLM)
RECORD = ("experiments", 0, "requests", 0)
TIMINGS = ("benchmarks", 0, "requests", "successful", 0, "info", "timings")
BAD: dict[str, tuple[Maker, str]] = {
    "empty": (text(""), "is empty"),
    "white space": (text(" \n\t\n"), "is empty"),
    "truncated": (text(GOOD[: len(GOOD) // 2]), "ends in the middle"),
    "truncated in a text": (text('{"backend": "op'), "ends in the middle"),
    "no JSON": (text("hello world\n"), "is not JSON"),
    "single quotes": (text("{'backend': 'vllm'}"), "is not JSON"),
    "YAML": (text("metadata:\n  version: 2\n"), "is not JSON"),
    "byte order mark": (data(b"\xef\xbb\xbf" + GOOD.encode()), "byte order mark"),
    "UTF-16": (data(GOOD.encode("utf-16")), "is not UTF-8"),
    "Latin-1": (data(b'{"a": "\xe9"}'), "is not UTF-8"),
    "binary": (data(bytes(range(128, 256))), "is not UTF-8"),
    "named .gz only": (data(GOOD.encode(), "result.json.gz"), "is named .gz but is not gzipped"),
    "half a gzip": (data(gzip.compress(GOOD.encode())[:-20], "result.json.gz"), "is not a whole gzip file"),
    "broken gzip": (data(b"\x1f\x8b" + b"junk" * 20, "result.json.gz"), "is not a whole gzip file"),
    "another object": (text('{"hello": 1}'), "has not the fields"),
    "a list of numbers": (text("[1, 2, 3]"), "has not the fields"),
    "an empty list": (text("[]"), "has not the fields"),
    "a number": (text("7"), "has not the fields"),
    "a deep nest": (text("[" * 100_000), "nested too deeply"),
    "endless digits": (text('{"a": ' + "9" * 5000 + "}"), "too many digits"),
    "no such file": (lambda folder: folder / "nothing.json", "cannot be read"),
    "an empty folder": (lambda folder: folder, "holds no result file"),
    "a folder of other files": (folder_of(config_json='{"a": 1}'), "holds no result file"),
    "a folder with a broken file": (folder_of(a_json=GOOD[:100]), "ends in the middle"),
    "NaN in an array": (text(GOOD.replace('"ttfts": [0.2', '"ttfts": [NaN')), "ttfts[0]: is NaN"),
    "Infinity in a summary": (text(GOOD.replace('"duration": 2.0', '"duration": Infinity')), "duration: is Infinity"),
    "minus Infinity": (text(GOOD.replace('"mean_ttft_ms": 250.0', '"mean_ttft_ms": -Infinity')), "is -Infinity"),
    "a huge number": (text(GOOD.replace('"duration": 2.0', '"duration": 1e400')), "is too large"),
    "a negative gap": (value(ex.change(ex.VLLM, "itls", 1, 0, to=-0.05)), "itls[0]: is negative"),
    "a negative TTFT": (value(ex.change(ex.VLLM, "ttfts", 0, to=-1)), "ttfts[0]: is negative"),
    "arrays of different length": (value(ex.change(ex.VLLM, "output_lens", to=[4, 5])), "has 2 entries, ttfts has 3"),
    "an empty array beside others": (value(ex.change(ex.VLLM, "ttfts", to=[])), "has 3 entries, ttfts has 0"),
    "a text for a number": (value(ex.change(ex.VLLM, "duration", to="2 s")), "duration: is not a number"),
    "true for a number": (value(ex.change(ex.VLLM, "completed", to=True)), "completed: is not a number"),
    "half a token": (value(ex.change(ex.VLLM, "output_lens", 0, to=1.5)), "1.5 is not a count"),
    "a number for an array": (value(ex.change(ex.VLLM, "itls", to=3)), "itls: is not a list"),
    "a number for gaps": (value(ex.change(ex.VLLM, "itls", 0, to=3)), "is not a list"),
    "two values on a line": (text(json.dumps(ex.SGLANG) + "\n" + json.dumps(ex.SGLANG) * 2 + "\n", "r.jsonl"), "row 2"),
    "a broken line": (text(json.dumps(ex.SGLANG) + "\n{\n", "r.jsonl"), "row 2"),
    "a list for a run": (text(json.dumps(ex.SGLANG) + "\n[1]\n", "r.jsonl"), "row 2: is not an object"),
    "an end before its start": (
        value([ex.change(ex.AIPERF_RECORDS[0], "metadata", "request_end_ns", to=1)], "p.jsonl"),
        "request_end_ns: is before request_start_ns",
    ),
    "a record without latency": (
        value([ex.drop(ex.AIPERF_RECORDS[0], "metrics", "request_latency")], "p.jsonl"),
        "request_latency: is missing",
    ),
    "a record without a start": (
        value([ex.AIPERF_RECORDS[0], ex.drop(ex.AIPERF_RECORDS[1], "metadata", "request_start_ns")], "p.jsonl"),
        "request_start_ns: is missing",
    ),
    "a negative chunk gap": (
        value([ex.change(ex.AIPERF_RECORDS[0], "metrics", "inter_chunk_latency", "value", 0, to=-1)], "p.jsonl"),
        "is negative",
    ),
    "fewer times than responses": (
        value(ex.change(ex.PERF_EXPORT, *RECORD, "response_timestamps", to=[2000])),
        "response_outputs: has 4 entries, response_timestamps has 1",
    ),
    "responses before the request": (
        value(ex.change(ex.PERF_EXPORT, *RECORD, "timestamp", to=10**12)),
        "response_timestamps: is before the request",
    ),
    "an export without requests": (value(ex.change(ex.PERF_EXPORT, "experiments", to=[])), "holds no requests"),
    "a report without benchmarks": (value(ex.change(ex.GUIDELLM, "benchmarks", to=[])), "benchmarks: is empty"),
    "times that go back": (
        value(ex.change(ex.GUIDELLM, *TIMINGS, "last_token_iteration", to=8.5)),
        "last_token_iteration: goes back in time",
    ),
    "a request without times": (value(ex.drop(ex.GUIDELLM, *TIMINGS)), "timings: is missing"),
    "a token before the request": (
        value(ex.change(ex.INFERENCE_ENTRIES, 0, "info", "response_metrics", "output_token_times", to=[1.0])),
        "output_token_times: goes back in time",
    ),
    "an end before the start": (value(ex.change(ex.INFERENCE_ENTRIES, 0, "end_time", to=1)), "end_time: is before"),
    "no requests at all": (value(ex.change(ex.GENAI_BENCH, "individual_request_metrics", to=[])), "holds no requests"),
    "a unit that is none": (value(ex.change(ex.GENAI_BENCH, "_time_unit", to="min")), "'min' is not s or ms"),
    "a success without latency": (
        value(ex.drop(ex.GENAI_BENCH, "individual_request_metrics", 0, "e2e_latency")),
        "e2e_latency: is missing",
    ),
    "a response without latency": (
        value(ex.drop(ex.LLMPERF_RESPONSES, 0, "end_to_end_latency_s")),
        "end_to_end_latency_s: is missing",
    ),
    "an entry that is no object": (value([ex.LLMPERF_RESPONSES[0], 7]), "row 1: is not an object"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_in_one_line(name: str, shell: Shell, tmp_path: Path) -> None:
    make, complaint = BAD[name]
    line = shell.refuse("audit", str(make(tmp_path)))
    assert complaint in line, line
    assert line.startswith(str(tmp_path)), line


def test_a_line_of_endless_length_is_refused(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("refsched.results.load.LONGEST_VALUE", 1 << 20)
    long = json.dumps(ex.SGLANG) + "\n" + json.dumps(ex.SGLANG | {"tag": "x" * (1 << 21)}) + "\n"
    assert "row 2: is a line of more than" in shell.refuse("audit", str(text(long, "r.jsonl")(tmp_path)))
    whole = json.dumps(ex.VLLM | {"label": "x" * (1 << 21)})
    assert "holds one value of more than" in shell.refuse("audit", str(text(whole)(tmp_path)))


def test_all_requests_failed_is_a_result_and_no_error(shell: Shell, tmp_path: Path) -> None:
    failed = ex.VLLM | {
        "completed": 0,
        "failed": 3,
        "output_lens": [0, 0, 0],
        "errors": ["a", "b", "c"],
        "total_input_tokens": 0,
        "total_output_tokens": 0,
    }
    failed |= dict.fromkeys(("request_throughput", "output_throughput", "total_token_throughput"), 0.0)
    failed |= {key: 0.0 for key in failed if key.endswith("_ms")}
    failed |= {"max_output_tokens_per_s": 0.0, "max_concurrent_requests": 0}
    code, out, err = shell.run("audit", str(ex.write(tmp_path, "result.json", failed)))
    assert (code, err) == (0, "") and "3 of 3 requests (100 %) did not end well" in out
