"""AIPerf: records, raw export and summary of one run, read together."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

from refsched.errors import InputError
from refsched.results.aiperf_records import MS, NS, Entry, Raw, make_records
from refsched.results.aiperf_sweep import compute_swept
from refsched.results.fields import Fields
from refsched.results.ledger import Ledger, get_statistic
from refsched.results.run import GAPS, Finding, Run, Success, is_same
from refsched.results.sample import Sample, divide, to_binary

TOOL = "aiperf"
ADJUSTED = "adj_"
TOTALS = {
    "total_isl": "input_sequence_length",
    "total_osl": "output_sequence_length",
    "total_output_tokens": "output_token_count",
    "total_reasoning_tokens": "reasoning_token_count",
    "total_error_isl": "error_isl",
}
DEFINITIONS = {
    "time_to_first_token": "ttft.any: first content, reasoning or tool chunk - send, of valid requests",
    "time_to_first_output_token": "ttft.content: first chunk that is not reasoning - send, of valid requests",
    "request_latency": "e2e.last_token: last content chunk - send, of valid requests",
    "inter_token_latency": "tpot.decode/(n-1): (latency - ttft) / (n - tokens of the first chunk), one per request",
    "inter_chunk_latency": "itl.chunk: gaps between chunks of valid requests, pooled",
    "time_to_second_token": "second content chunk - first, of valid requests",
}
NO_RECORDS = "the records (profile_export.jsonl) are not there: only the summary is"
SWEPT = re.compile(r"(effective|active)_.*(throughput|concurrency).*|tokens_in_flight")
SPAN = "last (start + latency) - first start of valid requests; epoch nanoseconds as binary doubles of 256 ns"
NO_WINDOW = "time-weighted over the phase, whose start and end are in the file only to the microsecond"


def is_summary(data: Mapping[str, object]) -> bool:
    """Recognise the summary by its fields."""
    latency = data.get("request_latency")
    return "request_count" in data and isinstance(latency, dict) and ("aiperf_version" in data or "schema_version" in data)


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
    entries = parts.entries or ()
    return Run(
        tool=TOOL,
        label=label,
        files=parts.files,
        records=tuple(make_records(entries)),
        reported=tuple(ledger.lines),
        success=judge_success(parts),
        claims=get_claims(parts.summary) if parts.summary else {},
        limits=tuple(find_limits(parts)),
        traps=tuple(find_traps(parts)),
        contradictions=tuple(find_contradictions(entries)),
        slo=get_slo(parts.summary) if parts.summary else {},
        without=frozenset() if any(entry.row.gaps is not None for entry in entries) else GAPS,
    )


# REPRODUCTION


def reproduce(
    ledger: Ledger, summary: Fields, entries: Sequence[Entry] | None, window: tuple[int, int] | None
) -> None:
    """Compute every number of the summary again."""
    totals = get_totals(summary, entries, window)
    pools = pool(entries) if entries is not None else {}
    swept = compute_swept(entries, window) if entries and window else {}
    for key, value in summary.data.items():
        if not isinstance(value, dict) or "unit" not in value:
            continue
        metric = summary.inside(key)
        if key in totals:
            definition, again = totals[key]
            add_total(ledger, metric, definition, again, entries is not None)
        elif entries is None:
            skip_metric(ledger, metric, DEFINITIONS.get(key, key), NO_RECORDS)
        elif key.startswith(ADJUSTED) and key.removeprefix(ADJUSTED) in pools:
            reproduce_adjusted(ledger, metric, pools[key.removeprefix(ADJUSTED)], entries)
        elif key in pools:
            reproduce_pool(ledger, metric, key, pools[key])
        elif key in swept:
            reproduce_swept(ledger, metric, swept[key])
        else:
            skip_metric(ledger, metric, key, NO_WINDOW if SWEPT.fullmatch(key) else "the records do not hold it")


def pool(entries: Sequence[Entry]) -> dict[str, Sample]:
    """Pool the values of each tag over the requests that have it; lists are flattened."""
    values: dict[str, list[Decimal]] = {}
    for entry in entries:
        for tag, value in entry.tags.items():
            values.setdefault(tag, []).extend(value if isinstance(value, tuple) else (value,))
    samples = {tag: Sample(each) for tag, each in values.items()}
    issued = [(entry, Decimal(entry.issued)) for entry in entries if entry.issued is not None]
    samples["credit_to_start_latency"] = Sample(since(Decimal(entry.start), at) for entry, at in issued)
    samples["effective_latency"] = Sample(since(Decimal(entry.end), at) for entry, at in issued)
    return samples


def since(end: Decimal, start: Decimal) -> Decimal:
    """Subtract two times in nanoseconds as this tool does, in binary doubles of 256 ns, and never below 0."""
    return max(to_binary(end) - to_binary(start), Decimal(0)) / 1_000_000


BINARY = ("credit_to_start_latency", "effective_latency")


def reproduce_pool(ledger: Ledger, metric: Fields, key: str, sample: Sample) -> None:
    """Compute the statistics of one metric again."""
    note = "; epoch nanoseconds as binary doubles, steps of 256 ns" if key in BINARY else ""
    definition = f"{DEFINITIONS.get(key, key)}{note}; standard deviation over n, quantiles linear between ranks"
    unit = metric.text("unit") or ""
    if set(metric.data) == {"unit", "avg"}:
        ledger.add(metric, "avg", unit, f"sum of {key} over requests", sample.total())
        return
    for name in metric.data:
        statistic = get_statistic(name)
        if statistic is not None:
            ledger.add(metric, name, unit, definition, statistic(sample))


def reproduce_adjusted(ledger: Ledger, metric: Fields, sample: Sample, entries: Sequence[Entry]) -> None:
    """Compute the statistics again in which each failed request counts as +inf; those that are infinite are left out."""
    failed = sum(not entry.row.ok for entry in entries)
    inflated = Sample([*sample.values, *[Decimal("Infinity")] * failed])
    unit = metric.text("unit") or ""
    definition = "the same with each failure as +inf; quantiles at the nearest rank (numpy's nearest)"
    for name in metric.data:
        if name == "count":
            again: Decimal | None = Decimal(inflated.n)
        elif name == "min":
            again = inflated.least()
        elif name.startswith("p") and name[1:].isdigit():
            again = inflated.nearest(Fraction(int(name[1:]), 100))
        else:
            continue
        ledger.add(metric, name, unit, definition, again if again is not None and again.is_finite() else None)


def reproduce_swept(ledger: Ledger, metric: Fields, statistics: Mapping[str, float]) -> None:
    """Enter the statistics of a time-weighted curve."""
    definition = "time-weighted over the phase, in the tool's binary doubles of 256 ns; quantiles by inverted CDF"
    for name in metric.data:
        if name in statistics:
            ledger.add(metric, name, metric.text("unit") or "", definition, Decimal(statistics[name]))


def find_clock(
    summary: Fields, base: Mapping[str, Decimal | None], window: tuple[int, int] | None
) -> tuple[str, Decimal | None]:
    """Find the duration that the rates are taken over, and its name: versions of the tool differ in it."""
    valid, rate = base["request_count"], summary.find_inside("request_throughput")
    value = rate.find("avg") if rate else None
    clocks = {"benchmark_duration": base["benchmark_duration"]}
    if window is not None:
        clocks["duration of the profiled phase"] = (window[1] - window[0]) * NS
    for name, seconds in clocks.items():
        again = divide(valid, seconds)
        if value is not None and again is not None and is_same(value, again):
            return name, seconds
    implied = divide(valid, value)
    in_file = "duration of the profiled phase, in the file to the microsecond, here request_count / request_throughput"
    return (in_file, implied) if is_phase(summary, implied) else ("benchmark_duration", base["benchmark_duration"])


def is_phase(summary: Fields, seconds: Decimal | None) -> bool:
    """Say whether a duration is that of the phase whose ends the summary gives to the microsecond."""
    try:
        ends = [datetime.fromisoformat(summary.text(key) or "") for key in ("start_time", "end_time")]
    except ValueError:
        return False
    length = ends[1] - ends[0]
    exact = Decimal(length.days * 86400 + length.seconds) + Decimal(length.microseconds) / 10**6
    return seconds is not None and abs(seconds - exact) <= Decimal("2e-6")


def get_totals(
    summary: Fields, entries: Sequence[Entry] | None, window: tuple[int, int] | None
) -> dict[str, tuple[str, Decimal | None]]:
    """Compute the counts, sums and rates, from the records or else from each other."""
    base = count_entries(entries) if entries is not None else read_totals(summary)
    clock, duration = find_clock(summary, base, window)
    valid, errors = base["request_count"], base["error_request_count"]
    every = None if valid is None else valid + (errors or 0)
    tokens = add(base["total_isl"], base["total_osl"])
    known = "" if entries is not None else " (from the summary's own numbers)"
    totals: dict[str, tuple[str, Decimal | None]] = {
        "request_throughput": (f"request_count / {clock}{known}", divide(valid, duration)),
        "output_token_throughput": (f"total_osl / {clock}{known}", divide(base["total_osl"], duration)),
        "input_token_throughput": (f"total_isl / {clock}{known}", divide(base["total_isl"], duration)),
        "total_token_throughput": (f"(total_isl + total_osl) / {clock}{known}", divide(tokens, duration)),
        "goodput": (f"good_request_count / {clock}{known}", divide(base["good_request_count"], duration)),
        "good_request_fraction": ("good / (valid + errors)" + known, divide(base["good_request_count"], every)),
        "completed_request_count": ("valid + errors" + known, every),
        "request_error_rate": ("100 * errors / (valid + errors)" + known, divide((errors or Decimal(0)) * 100, every)),
    }
    if entries is not None:
        totals |= {
            "benchmark_duration": (SPAN, base["benchmark_duration"]),
            "request_count": ("requests without an error", valid),
            "error_request_count": ("requests with an error", errors),
        }
        totals |= sum_tags(summary, entries) | count_discrepancies(entries)
    return totals


def add(first: Decimal | None, second: Decimal | None) -> Decimal | None:
    """Add, giving None where either is unknown."""
    return None if first is None or second is None else first + second


def read_totals(summary: Fields) -> dict[str, Decimal | None]:
    """Take the totals that others are computed from out of the summary itself."""
    names = ("benchmark_duration", "request_count", "error_request_count", "total_isl", "total_osl", "good_request_count")
    inside = {name: summary.find_inside(name) for name in names}
    return {name: None if metric is None else metric.find("avg") for name, metric in inside.items()}


def count_entries(entries: Sequence[Entry]) -> dict[str, Decimal | None]:
    """Compute the same totals from the records."""
    ok = [entry for entry in entries if entry.row.ok]
    last = max((entry.start + round((entry.row.latency or 0) / NS) for entry in ok), default=0)
    first = min((entry.start for entry in ok), default=0)
    span = (to_binary(Decimal(last)) - to_binary(Decimal(first))) * NS
    sums = {name: sum_of(ok, TOTALS[name]) for name in ("total_isl", "total_osl")}
    counts = {"request_count": Decimal(len(ok)), "error_request_count": Decimal(len(entries) - len(ok))}
    return {"benchmark_duration": span, "good_request_count": sum_of(ok, "good_request_count"), **sums, **counts}


def sum_of(entries: Sequence[Entry], tag: str) -> Decimal:
    """Sum the values under a tag."""
    return sum((entry.value(tag) or Decimal(0) for entry in entries), Decimal(0))


def sum_tags(summary: Fields, entries: Sequence[Entry]) -> dict[str, tuple[str, Decimal | None]]:
    """Compute every total_… that is a sum of a tag."""
    known = {tag for entry in entries for tag in entry.tags}
    totals: dict[str, tuple[str, Decimal | None]] = {}
    for key in summary.data:
        tag = TOTALS.get(key, key.removeprefix("total_"))
        if key.startswith("total_") and tag in known:
            totals[key] = (f"sum of {tag}", sum_of(entries, tag))
    return totals


def count_discrepancies(entries: Sequence[Entry]) -> dict[str, tuple[str, Decimal | None]]:
    """Count the requests whose token counts differ by more than the tool's thresholds, as these are by default."""
    usage = sum(any((entry.value(tag) or 0) > 10 for tag in USAGE_DIFFS) for entry in entries)
    overflow = sum(is_overflow(entry) for entry in entries)
    return {
        "osl_mismatch_count": (
            "requests whose output is off the length asked for by more than 5 % and, at most, 50 tokens",
            Decimal(sum(map(is_off, entries))),
        ),
        "usage_discrepancy_count": ("requests whose token counts differ from usage by more than 10 %", Decimal(usage)),
        "context_overflow_count": ("requests that the server refused as too long", Decimal(overflow)),
    }


USAGE_DIFFS = (
    "usage_prompt_tokens_diff_pct",
    "usage_completion_tokens_diff_pct",
    "usage_reasoning_tokens_diff_pct",
)


def is_off(entry: Entry) -> bool:
    """Say whether an output is off the length asked for, which the record gives as a share of it."""
    share, actual = entry.value("osl_mismatch_diff_pct"), entry.value("output_sequence_length")
    if share is None or actual is None or share == -100:
        return False
    requested = (actual / (1 + share / 100)).quantize(Decimal(1))
    return abs(actual - requested) > min(requested * 5 / 100, Decimal(50))


def is_overflow(entry: Entry) -> bool:
    """Say whether the server refused a request as too long for its context."""
    reason = (entry.row.reason or "").lower()
    return "context" in reason and "length" in reason


def add_total(ledger: Ledger, metric: Fields, definition: str, again: Decimal | None, known: bool) -> None:
    """Enter a count, a sum or a rate."""
    unit = metric.text("unit") or ""
    if known or again is not None:
        ledger.add(metric, "avg", unit, definition, again)
    else:
        ledger.skip(metric, "avg", unit, definition, NO_RECORDS)


def skip_metric(ledger: Ledger, metric: Fields, definition: str, reason: str) -> None:
    """Enter all numbers of a metric that cannot be computed from what is there."""
    keys = [key for key in metric.data if key != "unit"]
    ledger.skip_all(metric, keys, metric.text("unit") or "", definition, reason)


# WHAT ELSE THE FILES SAY

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
STATISTICS = {"avg": "mean", "p50": "median", "p99": "p99", "max": "max", "min": "min"}


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
        because = "the server reports usage at the end of a whole stream; a counted success without it was cut or in error"
        return Success(counted, whole, because)
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
    if not parts.entries:
        yield "no records (--export-level records): per-request values, gaps and the longest gap are unknown"
    elif not any(entry.row.gaps is not None for entry in parts.entries):
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


def find_traps(parts: Parts) -> Iterator[Finding]:
    """Find what applies to this tool only."""
    cut = sum(entry.row.ok and entry.whole is False for entry in parts.entries or ())
    if cut:
        yield Finding(
            "truncated-counted",
            f"{cut} counted successes ended without usage, which others have: cut streams or errors inside the stream",
        )
    off = [e for e in parts.entries or () if (e.value("usage_completion_tokens_diff_pct") or 0) > 0]
    if off:
        yield Finding(
            "two-token-counts",
            f"{len(off)} requests have another output length by the client's tokenizer than by the server's usage",
        )
