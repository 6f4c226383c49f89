"""SGLang `bench_serving`: one JSON object a line, one line a run."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from refsched.results.bench_serving import judge_success, read_claims, read_details, shorten_error
from refsched.results.fields import Fields
from refsched.results.ledger import Ledger
from refsched.results.rows import Row, make_record
from refsched.results.run import GAPS, Finding, Run, is_same
from refsched.results.sglang_numbers import (
    get_slo,
    make_samples,
    reproduce_counts,
    reproduce_goodput,
    reproduce_latency,
    reproduce_rates,
)

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
    return [
        Row(
            id=str(place),
            ok=not error,
            prompt=prompt,
            output=None if error else output,
            first=ttft or None,
            gaps=gaps,
            latency=ttft + sum(gaps, Decimal(0)) if not error and ttft else None,
            reason=shorten_error(error) if error else None,
        )
        for place, (ttft, output, prompt, gaps, error) in enumerate(zip(*read_details(fields), strict=True))
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
    claims = read_claims(fields, CLAIMS, LATENCIES)
    claims["planned"] = Decimal(len(rows)) if rows else None
    return {name: value for name, value in claims.items() if value is not None}


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
