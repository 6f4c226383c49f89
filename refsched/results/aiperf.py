"""AIPerf: records, raw export and summary of one run, read together."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from refsched.errors import InputError
from refsched.results.aiperf_numbers import reproduce
from refsched.results.aiperf_records import MS, Entry, Raw, make_raw_records, make_records
from refsched.results.fields import Fields
from refsched.results.fitting import Pair, check_requests
from refsched.results.ledger import Ledger
from refsched.results.run import GAPS, Finding, Run, Success

TOOL = "aiperf"


def is_summary(data: Mapping[str, object]) -> bool:
    """Recognise the summary by its fields."""
    latency = data.get("request_latency")
    return (
        "request_count" in data and isinstance(latency, dict) and ("aiperf_version" in data or "schema_version" in data)
    )


@dataclass(frozen=True, slots=True)
class Parts:
    """Hold the files of one run: records, raw export and summary, each where it is there."""

    entries: Sequence[Entry] | None
    raw: Sequence[Raw] | None
    summary: Fields | None
    files: tuple[str, ...]
    window: tuple[int, int] | None = None  # the profiled phase in epoch nanoseconds, from server_metrics_export.json


def read_window(fields: Fields) -> tuple[int, int] | None:
    """Find the profiled phase in server_metrics_export.json."""
    summary = fields.find_inside("summary")
    phases = summary.find_inside("phase_time_ranges") if summary else None
    phase = phases.find_inside("profiling") if phases else None
    return None if phase is None else (phase.count("start_ns"), phase.count("end_ns"))


def read_run(parts: Parts, label: str) -> Run:
    """Read one run from its files; raise InputError where none of them holds requests or numbers."""
    if parts.summary is None and not parts.entries and not parts.raw:
        raise InputError("holds no requests", file=parts.files[0])
    ledger = Ledger()
    if parts.summary is not None:
        reproduce(ledger, parts.summary, parts.entries, parts.window)
    entries, raws = parts.entries or (), parts.raw or ()
    chunks = {raw.id: raw for raw in raws}
    return Run(
        tool=TOOL,
        label=label,
        files=parts.files,
        records=tuple(make_records(entries, chunks) if entries else make_raw_records(raws)),
        reported=tuple(ledger.lines),
        success=judge_success(parts),
        claims=get_claims(parts.summary) if parts.summary else {},
        limits=tuple(find_limits(parts)),
        traps=tuple(find_traps(parts)),
        contradictions=(*find_contradictions(entries), *check_requests(map(list_derived, entries))),
        slo=get_slo(parts.summary) if parts.summary else {},
        without=frozenset() if raws or any(entry.row.gaps is not None for entry in entries) else GAPS,
    )


CLAIMS = {
    "duration": "benchmark_duration",
    "completed": "request_count",
    "failed": "error_request_count",
    "input_tokens": "total_isl",
    "output_tokens": "total_osl",
    "request_throughput": "request_throughput",
    "output_throughput": "output_token_throughput",
    "total_throughput": "total_token_throughput",
}
LATENCIES = {
    "time_to_first_token": "ttft",
    "inter_token_latency": "tpot",
    "inter_chunk_latency": "itl",
    "request_latency": "e2e",
}
STATISTICS = {"sum": "total", "avg": "mean", "p50": "median", "p99": "p99", "max": "max", "min": "min"}


def get_claims(summary: Fields) -> dict[str, Decimal]:
    """Give the summary under shared names; latencies in seconds."""
    claims: dict[str, Decimal | None] = {}
    for name, key in CLAIMS.items():
        metric = summary.find_inside(key)
        claims[name] = None if metric is None else metric.find("avg")
    for key, name in LATENCIES.items():
        metric = summary.find_inside(key)
        for statistic, shared in STATISTICS.items() if metric else ():
            value = metric.find(statistic) if metric else None
            claims[f"{shared}_{name}"] = None if value is None else value * MS
    concurrency = summary.find_inside("effective_concurrency")
    if concurrency is not None:
        claims |= {"mean_concurrency": concurrency.find("avg"), "peak_concurrency": concurrency.find("max")}
    claims |= read_phase(summary)
    return {name: value for name, value in claims.items() if value is not None}


def read_phase(summary: Fields) -> dict[str, Decimal | None]:
    """Take the load that was asked for out of the configuration."""
    config = summary.find_inside("input_config")
    phases = config.get("phases") if config else None
    if not isinstance(phases, list) or len(phases) != 1 or not isinstance(phases[0], dict):
        return {}
    phase = Fields(phases[0], summary.file, None, "input_config.phases[0]")
    return {"planned": phase.find("requests"), "rate": phase.find("rate"), "cap": phase.find("concurrency")}


def get_slo(summary: Fields) -> dict[str, Decimal]:
    """Take the targets out of the command line that the summary keeps."""
    info = summary.find_inside("run_info")
    command = (info.text("cli_command") or "") if info else ""
    match = re.search(r"--goodput\s+'([^']*)'", command)
    names = {"time_to_first_token": "ttft", "inter_token_latency": "tpot", "request_latency": "e2e"}
    pairs = re.findall(r"(\w+):([\d.]+)", match[1]) if match else []
    return {names[tag]: Decimal(value) * MS for tag, value in pairs if tag in names}


def judge_success(parts: Parts) -> Success:
    """Say what the files show of true success."""
    counted = count_valid(parts)
    if parts.raw is not None:
        whole = sum(raw.is_whole() for raw in parts.raw)
        return Success(counted, whole, "the raw export shows which streams the server ended and which hold an error")
    entries = parts.entries
    ok = [entry for entry in entries or () if entry.row.ok]
    if ok and any(entry.source == "usage" for entry in ok):
        whole = sum(entry.source == "usage" for entry in ok)
        because = (
            "the server reports usage at the end of a whole stream; a counted success without it was cut or in error"
        )
        return Success(counted, whole, because)
    usage = parts.summary.find_inside("usage_completion_tokens") if parts.summary and entries is None else None
    told = usage.find_count("count") if usage else None
    if told is not None and told < counted:
        return Success(counted, told, f"only {told} of the successes have usage, which the server reports at the end")
    return Success(counted, None, "no usage in the records: a stream cut short looks like a whole one")


def count_valid(parts: Parts) -> int:
    """Count what the tool counts as success."""
    if parts.entries is not None:
        return sum(entry.row.ok for entry in parts.entries)
    if parts.summary is not None:
        return int(parts.summary.inside("request_count").number("avg"))
    return sum(not raw.failed for raw in parts.raw or ())


def find_limits(parts: Parts) -> Iterator[str]:
    """Say what these files cannot support."""
    if not parts.entries and not parts.raw:
        yield "no records (--export-level records): per-request values, gaps and the longest gap are unknown"
    elif not parts.raw and not any(entry.row.gaps is not None for entry in parts.entries or ()):
        yield "no inter-chunk latencies: the longest gap is unknown"
    if parts.raw is None:
        yield "tokens in a chunk are not stored: how many came at once is unknown (--export-level raw keeps them)"
    yield "intervals skipped because of a concurrency cap leave no trace: arrivals that were never issued are unknown"


def find_contradictions(entries: Sequence[Entry]) -> Iterator[Finding]:
    """Find requests whose chunks do not add up to their latency."""
    off = [entry for entry in entries if entry.row.ok and entry.row.gaps is not None and not adds_up(entry)]
    if off:
        yield Finding(
            "gaps-do-not-add-up",
            f"{len(off)} requests have ttft + sum of gaps other than their latency, first {off[0].row.id}",
        )


def adds_up(entry: Entry) -> bool:
    """Say whether TTFT and gaps add up to the latency, within a microsecond."""
    row = entry.row
    if row.latency is None or row.first is None:
        return True
    return abs(row.first + sum(row.gaps or (), Decimal(0)) - row.latency) <= Decimal("1e-6")


def list_derived(entry: Entry) -> tuple[str, dict[str, Pair]]:
    """Give the derived numbers of a request; its ITL divides by n less the tokens of the first chunk, one or more."""
    ttft, latency, itl = map(entry.value, ("time_to_first_token", "request_latency", "inter_token_latency"))
    count = entry.value("output_sequence_length")
    pairs: dict[str, Pair] = {}
    if ttft is not None and latency is not None:
        decode = latency - ttft
        pairs["decode_duration"] = (entry.value("decode_duration"), decode)
        if itl and count and count > 1:
            parts = min(max((decode / itl).to_integral_value(), Decimal(1)), count - 1)
            pairs["inter_token_latency"] = (itl, decode / parts)
    return entry.row.id, pairs


def find_traps(parts: Parts) -> Iterator[Finding]:
    """Find what applies to this tool only."""
    cut = sum(entry.row.ok and entry.whole is False for entry in parts.entries or ())
    if cut:
        yield Finding(
            "truncated-counted",
            f"{cut} counted successes ended without usage, which others have: cut streams or errors inside the stream",
        )
    inside = sum(not raw.failed and raw.stream.has_error() for raw in parts.raw or ())
    if inside:
        yield Finding("error-inside-counted", f"{inside} streams hold a server error and are counted as success")
    off = [e for e in parts.entries or () if (e.value("usage_completion_tokens_diff_pct") or 0) > 0]
    if off:
        yield Finding(
            "two-token-counts",
            f"{len(off)} requests have another output length by the client's tokenizer than by the server's usage",
        )
