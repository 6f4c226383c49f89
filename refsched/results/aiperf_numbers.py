"""AIPerf's numbers, each computed again from the records."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

from refsched.results.aiperf_records import NS, Entry
from refsched.results.aiperf_sweep import compute_swept
from refsched.results.fields import Fields
from refsched.results.ledger import Ledger, get_statistic
from refsched.results.run import is_same
from refsched.results.sample import Sample, divide, to_binary

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
IMPLIED = "duration of the profiled phase, taken from request_throughput, which agrees with its ends to the microsecond"
TO_THE_MICROSECOND = "the ends of the profiled phase are in the summary to the microsecond, and agree to that"
SPAN = "last (start + latency) - first start of valid requests; epoch nanoseconds as binary doubles of 256 ns"
NO_WINDOW = "time-weighted over the phase, whose start and end are in the file only to the microsecond"


def reproduce(ledger: Ledger, summary: Fields, entries: Sequence[Entry] | None, window: tuple[int, int] | None) -> None:
    """Compute every number of the summary again."""
    totals = get_totals(summary, entries, window)
    pools = pool(entries) if entries is not None else {}
    swept = compute_swept(entries, window) if entries and window else {}
    for key, value in summary.data.items():
        if not isinstance(value, dict) or "unit" not in value:
            continue
        metric = summary.inside(key)
        if key == "request_throughput" and totals[key][0].startswith(f"request_count / {IMPLIED}"):
            ledger.skip(metric, "avg", metric.text("unit") or "", totals[key][0], TO_THE_MICROSECOND)
        elif key in totals:
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
    if key.endswith("_count") and not metric.has("count"):
        ledger.add(metric, "avg", unit, f"sum of {key} over requests", sample.total())
        return
    for name in metric.data:
        statistic = get_statistic(name)
        if statistic is not None:
            ledger.add(metric, name, unit, definition, statistic(sample))


def reproduce_adjusted(ledger: Ledger, metric: Fields, sample: Sample, entries: Sequence[Entry]) -> None:
    """Compute the statistics again in which each failure counts as +inf; those that are infinite are left out."""
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
    return (IMPLIED, implied) if is_phase(summary, implied) else ("benchmark_duration", base["benchmark_duration"])


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
    names = (
        "benchmark_duration",
        "request_count",
        "error_request_count",
        "total_isl",
        "total_osl",
        "good_request_count",
    )
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
