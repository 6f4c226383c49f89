"""SGLang `bench_serving`: one JSON object a line, one line a run."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from refsched.results.fields import Fields
from refsched.results.ledger import Ledger
from refsched.results.rows import Row, make_record
from refsched.results.run import GAPS, Finding, Run, Success, is_same
from refsched.results.sglang_numbers import (
    get_slo,
    make_samples,
    reproduce_counts,
    reproduce_goodput,
    reproduce_latency,
    reproduce_rates,
)
from refsched.results.vllm import check_length, read_gaps, shorten_error

TOOL = "sglang"
SIGNS = ("completed", "duration", "total_output_tokens_retokenized", "request_throughput")
NATIVE = ("sglang", "sglang-native")
Slo = Mapping[str, Decimal]


def is_run(data: Mapping[str, object]) -> bool:
    """Recognise the object by its fields."""
    return all(key in data for key in SIGNS)


def read_run(fields: Fields, label: str, slo: Slo) -> Run:
    """Read one run; raise InputError naming the field that is not as it should be."""
    rows = read_rows(fields)
    ledger = Ledger()
    reproduce_counts(ledger, fields, rows)
    reproduce_rates(ledger, fields)
    reproduce_latency(ledger, fields, [row for row in rows if row.ok])
    reproduce_goodput(ledger, fields, rows)
    return Run(
        tool=TOOL,
        label=label,
        files=(fields.file,),
        records=tuple(make_record(row, None, guess_source(fields)) for row in rows),
        reported=tuple(ledger.lines),
        success=judge_success(fields),
        claims=get_claims(fields, rows),
        limits=tuple(find_limits(fields)),
        traps=tuple(find_traps(fields, rows)),
        contradictions=tuple(find_contradictions(fields, rows)),
        slo=get_slo(fields),
        without=frozenset(("e2e.stream_end",)) | (GAPS if fields.get("backend") in NATIVE else frozenset()),
    )


def read_rows(fields: Fields) -> list[Row]:
    """Read the per-request arrays, which must be of one length; none where only a summary is there."""
    if not fields.has("ttfts", "itls", "output_lens"):
        return []
    ttfts = fields.times("ttfts")
    size = len(ttfts)
    outputs = check_length(fields, "output_lens", fields.counts("output_lens"), size)
    inputs = check_length(fields, "input_lens", fields.counts("input_lens"), size)
    gaps = [read_gaps(fields, place, item) for place, item in enumerate(fields.items("itls"))]
    check_length(fields, "itls", gaps, size)
    errors = [str(item or "") for item in fields.items("errors")] if fields.has("errors") else [""] * size
    check_length(fields, "errors", errors, size)
    return [
        Row(
            id=str(i),
            ok=not errors[i],
            prompt=inputs[i],
            output=None if errors[i] else outputs[i],
            first=ttfts[i] or None,
            gaps=gaps[i],
            latency=ttfts[i] + sum(gaps[i], Decimal(0)) if not errors[i] and ttfts[i] else None,
            reason=shorten_error(errors[i]) if errors[i] else None,
        )
        for i in range(size)
    ]


def guess_source(fields: Fields) -> str:
    """Say where output_lens comes from: the server for the native backend, else usage or the length asked for."""
    if fields.get("backend") in NATIVE:
        return "usage"
    same = fields.find("total_output_tokens") == fields.find("total_output_tokens_retokenized")
    return "usage" if same else "requested"


CLAIMS = {
    "duration": "duration",
    "completed": "completed",
    "cap": "max_concurrency",
    "input_tokens": "total_input_tokens",
    "output_tokens": "total_output_tokens",
    "request_throughput": "request_throughput",
    "output_throughput": "output_throughput",
    "total_throughput": "total_throughput",
    "peak_output": "max_output_tokens_per_s",
    "peak_concurrency": "max_concurrent_requests",
    "mean_concurrency": "concurrency",
}
LATENCIES = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2e_latency": "e2e"}


def get_claims(fields: Fields, rows: Sequence[Row]) -> dict[str, Decimal]:
    """Give the summary under shared names; latencies in seconds."""
    claims = {name: fields.find(key) for name, key in CLAIMS.items()}
    for key, name in LATENCIES.items():
        for statistic in ("mean", "median", "p99"):
            value = fields.find(f"{statistic}_{key}_ms")
            claims[f"{statistic}_{name}"] = None if value is None else value / 1000
    rate = fields.get("request_rate")
    claims["rate"] = fields.find("request_rate") if isinstance(rate, int | Decimal) else None
    claims["planned"] = Decimal(len(rows)) if rows else None
    return {name: value for name, value in claims.items() if value is not None}


def judge_success(fields: Fields) -> Success:
    """Say what is known of true success: nothing in the file tells a stream that was cut from a whole one."""
    because = "the file keeps no finish reason, no usage mark and no [DONE]; a stream cut short looks like a whole one"
    return Success(int(fields.number("completed")), None, because)


def find_limits(fields: Fields) -> Iterator[str]:
    """Say what this file cannot support."""
    if not fields.has("ttfts", "itls"):
        yield "no per-request times (--output-details): TTFT, gaps and the longest gap are unknown"
    yield "no start times: nothing can be said across requests, and waiting in the client is invisible"
    yield "no end of stream: latency and TPOT run to [DONE] here and can only be bounded from below"
    if fields.get("backend") in NATIVE:
        yield "native backend: each gap was divided by its tokens and repeated, so the longest gap is only bounded"


def find_traps(fields: Fields, rows: Sequence[Row]) -> Iterator[Finding]:
    """Find what applies to this tool only."""
    counted, again = fields.find("total_output_tokens"), fields.find("total_output_tokens_retokenized")
    if counted is not None and again is not None and counted > again:
        yield Finding(
            "requested-length-counted",
            f"{counted} output tokens are reported, but the texts retokenise to {again}: without usage from the server "
            "the length asked for is counted as output, which raises throughput and lowers TPOT",
        )
    empty = sum(row.ok and row.first is None for row in rows)
    if empty:
        yield Finding("zero-entries", f"{empty} successes have TTFT 0: a stream without text enters the mean as 0")
    failed = sum(not row.ok for row in rows)
    if failed:
        yield Finding("failures-not-reported", f"{failed} of {len(rows)} requests failed, and no field says so")
    inputs, claimed = sum(row.prompt or 0 for row in rows if row.ok), fields.find("total_input_tokens")
    if rows and claimed is not None and claimed != inputs:
        yield Finding(
            "intended-input-counted",
            f"{claimed} input tokens are reported, the data set's lengths; the server counted {inputs}",
        )
    tail = (
        "the clock runs to the [DONE] line: whatever the server sends after the last token is inside latency and TPOT"
    )
    yield Finding("tail-inside-clock", tail)


def find_contradictions(fields: Fields, rows: Sequence[Row]) -> Iterator[Finding]:
    """Find latencies shorter than the file's own chunks allow."""
    mean = fields.find("mean_e2e_latency_ms")
    least = make_samples([row for row in rows if row.ok])["e2e_latency"].mean()
    if mean is not None and least is not None and mean < least * 1000 and not is_same(mean, least * 1000):
        yield Finding(
            "shorter-than-its-chunks", f"mean latency {mean} ms, but the chunks alone take {least * 1000:.6g} ms"
        )
