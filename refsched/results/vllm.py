"""`vllm bench serve`: one JSON object a run, several in a file that was appended to."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from refsched.results.bench_serving import (
    check_length,
    judge_success,
    read_claims,
    read_details,
    shorten_error,
)
from refsched.results.fields import Fields
from refsched.results.ledger import Ledger
from refsched.results.rows import Row, find_origin, make_record
from refsched.results.run import FIRST_TOKEN, GAPS, Finding, Run
from refsched.results.vllm_numbers import Slo, reproduce_counts, reproduce_latency, reproduce_peaks, reproduce_rates

TOOL = "vllm"
SIGNS = (
    ("completed", "duration", "num_prompts", "total_token_throughput"),
    ("completed", "duration", "num_prompts", "total_input_sequences"),
)


def is_run(data: Mapping[str, object]) -> bool:
    """Recognise the object by its fields."""
    return any(all(key in data for key in signs) for signs in SIGNS)


def read_run(fields: Fields, label: str, slo: Slo) -> Run:
    """Read one run; raise InputError naming the field that is not as it should be."""
    rows = read_rows(fields)
    ok = [row for row in rows if row.ok]
    ledger = Ledger()
    reproduce_counts(ledger, fields, rows)
    reproduce_rates(ledger, fields, slo, ok)
    reproduce_peaks(ledger, fields, ok)
    reproduce_latency(ledger, fields, rows)
    origin = find_origin(rows)
    return Run(
        tool=TOOL,
        label=label,
        files=(fields.file,),
        records=tuple(make_record(row, origin, "usage") for row in rows),
        reported=tuple(ledger.lines),
        success=judge_success(fields),
        claims=get_claims(fields),
        limits=tuple(find_limits(fields)),
        traps=tuple(find_traps(fields, rows)),
        contradictions=tuple(find_contradictions(fields, rows)),
        without=frozenset(("e2e.stream_end",)) | (GAPS | FIRST_TOKEN if find_extra(rows) else frozenset()),
    )


OPTIONAL = ("start_times", "latencies", "queue_times", "server_queue_times", "server_ttfts")


def read_rows(fields: Fields) -> list[Row]:
    """Read the per-request arrays, which must be of one length; an empty list where only a summary is there."""
    if not fields.has("ttfts", "itls", "output_lens"):
        return read_plain_rows(fields)
    details = read_details(fields)
    optional = {key: read_optional(fields, key, len(details.ttfts)) for key in OPTIONAL}
    mask = find_mask(fields, details.errors, details.outputs)
    return [
        Row(
            id=str(i),
            ok=ok,
            prompt=details.inputs[i],
            output=details.outputs[i] if ok else None,
            start=optional["start_times"][i],
            wait=optional["queue_times"][i],
            first=details.ttfts[i] if ok or details.ttfts[i] else None,
            gaps=details.gaps[i],
            latency=find_latency(optional["latencies"][i], details.ttfts[i], details.gaps[i], ok),
            reason=shorten_error(details.errors[i]) if not ok else None,
            server_wait=optional["server_queue_times"][i],
            server_first=optional["server_ttfts"][i],
        )
        for i, ok in enumerate(mask)
    ]


def read_plain_rows(fields: Fields) -> list[Row]:
    """Read what a file without details keeps: latencies, which include those of failures."""
    if not fields.has("latencies"):
        return []
    latencies = fields.times("latencies")
    waits = read_optional(fields, "queue_times", len(latencies))
    every = fields.find_count("failed") == 0
    return [Row(str(i), every, wait=waits[i], latency=latencies[i]) for i in range(len(latencies))]


def read_optional(fields: Fields, key: str, size: int) -> Sequence[Decimal | None]:
    """Read an array that newer versions write; all unknown where it is absent."""
    return check_length(fields, key, fields.find_times(key), size) if fields.has(key) else [None] * size


def find_mask(fields: Fields, errors: Sequence[str], outputs: Sequence[int]) -> list[bool]:
    """Infer which requests the tool counts as success: no error text, and output where the count says so."""
    silent = [error == "" for error in errors]
    if sum(silent) == fields.find("completed"):
        return silent
    with_output = [quiet and output > 0 for quiet, output in zip(silent, outputs, strict=True)]
    return with_output if sum(with_output) == fields.find("completed") else silent


def find_latency(latency: Decimal | None, ttft: Decimal, gaps: Sequence[Decimal], ok: bool) -> Decimal | None:
    """Give the latency; where the file is too old to hold it, the last chunk ended the clock."""
    if latency is not None:
        return latency if ok or latency else None
    return ttft + sum(gaps, Decimal(0)) if ok else None


CLAIMS = {
    "duration": "duration",
    "completed": "completed",
    "failed": "failed",
    "planned": "num_prompts",
    "cap": "max_concurrency",
    "input_tokens": "total_input_tokens",
    "output_tokens": "total_output_tokens",
    "request_throughput": "request_throughput",
    "output_throughput": "output_throughput",
    "total_throughput": "total_token_throughput",
    "peak_output": "max_output_tokens_per_s",
    "peak_concurrency": "max_concurrent_requests",
}
LATENCIES = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2el": "e2e"}


def get_claims(fields: Fields) -> dict[str, Decimal]:
    """Give the summary under shared names; latencies in seconds."""
    claims = read_claims(fields, CLAIMS, LATENCIES)
    wait = fields.find("mean_client_queue_time_ms")
    claims["mean_wait"] = None if wait is None else wait / 1000
    return {name: value for name, value in claims.items() if value is not None}


def find_limits(fields: Fields) -> Iterator[str]:
    """Say what this file cannot support."""
    if not fields.has("ttfts", "itls"):
        yield "no per-request times (--save-detailed): TTFT, TPOT, gaps, goodput and the longest gap are unknown"
    elif not fields.has("latencies"):
        yield "no latencies: the end of a request is taken to be its last chunk"
    if not fields.has("start_times"):
        yield "no start times: nothing can be said across requests (arrivals, concurrency, windows)"
    yield "reasoning_content is not recognised by this tool: of a model that reasons, TTFT is ttft.content"
    yield "tokens in a chunk are not stored: gaps are between chunks, and how many tokens came at once is unknown"


def find_contradictions(fields: Fields, rows: Sequence[Row]) -> Iterator[Finding]:
    """Find requests whose chunks do not add up to their latency; old files end the clock at the usage chunk."""
    off = [row for row in rows if row.ok and fields.has("ttfts") and not adds_up(row)]
    if off:
        yield Finding(
            "gaps-do-not-add-up",
            f"{len(off)} successes have ttft + sum of gaps other than their latency, first request {off[0].id}",
        )


def adds_up(row: Row) -> bool:
    """Say whether TTFT and gaps add up to the latency, within a microsecond."""
    if row.latency is None or row.first is None:
        return True
    return abs(row.first + sum(row.gaps or (), Decimal(0)) - row.latency) <= Decimal("1e-6")


def find_extra(rows: Sequence[Row]) -> list[Row]:
    """List the successes that have more chunks than tokens: some chunk, perhaps the first, had no text."""
    return [row for row in rows if row.ok and row.gaps is not None and row.output and len(row.gaps) + 1 > row.output]


def find_traps(fields: Fields, rows: Sequence[Row]) -> Iterator[Finding]:
    """Find what applies to this tool only."""
    extra = find_extra(rows)
    if extra:
        yield Finding(
            "empty-chunks-counted",
            f"{len(extra)} successes have more chunks than tokens: chunks without text count as first token or as gaps",
        )
