"""genai-bench: one JSON object for each scenario and concurrency, with aggregated and individual metrics."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from refsched.errors import InputError
from refsched.results.fields import Fields
from refsched.results.fitting import Pair, check_requests
from refsched.results.ledger import Ledger, get_statistic
from refsched.results.rows import Row, make_record
from refsched.results.run import GAPS, LAST_TOKEN, Finding, Run, Success, is_same
from refsched.results.sample import Sample, divide

TOOL = "genai-bench"
UNITS = {"s": Decimal(1), "ms": Decimal("0.001")}
TIMES = ("ttft", "tpot", "e2e_latency", "output_latency")
COUNTS = ("num_input_tokens", "num_output_tokens", "num_reasoning_tokens", "total_tokens")
DEFINITIONS = {
    "ttft": "ttft.any: first content or reasoning - start, of successes",
    "tpot": "(e2e.stream_end - ttft) / (n - 1) of successes that have one",
    "e2e_latency": "e2e.stream_end: end of the stream, usage and [DONE] included - start, of successes",
    "output_latency": "e2e_latency - ttft of successes",
    "output_inference_speed": "1 / tpot of successes that have one",
    "output_throughput": "(n - 1) / output_latency of successes",
    "input_throughput": "input tokens / ttft of successes",
}
NOTE = "; standard deviation over n, quantiles linear between ranks"


@dataclass(frozen=True, slots=True)
class Entry:
    """Hold one request; values as in the file, times in its unit."""

    fields: Fields
    code: object
    values: Mapping[str, Decimal | None]

    def is_ok(self) -> bool:
        """Say whether the tool counts it as success."""
        return not self.code


def is_run(data: Mapping[str, object]) -> bool:
    """Recognise the object by its fields."""
    return "aggregated_metrics" in data and "individual_request_metrics" in data


def read_run(fields: Fields, label: str) -> Run:
    """Read one run; raise InputError where it holds no requests."""
    unit = fields.text("_time_unit") or "s"
    if unit not in UNITS:
        fields.complain("_time_unit", f"{unit!r} is not s or ms")
    entries = [read_entry(each) for each in fields.rows("individual_request_metrics")]
    if not entries:
        raise InputError("holds no requests", file=fields.file, field="individual_request_metrics")
    totals = fields.inside("aggregated_metrics")
    kept = find_kept(totals, entries)
    ledger = Ledger()
    reproduce(ledger, totals, entries, kept, unit)
    return Run(
        tool=TOOL,
        label=label,
        files=(fields.file,),
        records=tuple(make_record(make_row(entry, UNITS[unit]), None, "usage") for entry in entries),
        reported=tuple(ledger.lines),
        success=judge_success(entries),
        claims=get_claims(totals, UNITS[unit]),
        limits=LIMITS,
        without=GAPS | LAST_TOKEN,
        traps=tuple(find_traps(entries, kept)),
        contradictions=(*find_contradictions(totals), *check_requests(map(list_derived, entries))),
    )


def read_entry(fields: Fields) -> Entry:
    """Read one request; its times must not be negative."""
    names = (*TIMES, *COUNTS, "output_inference_speed", "input_throughput", "output_throughput")
    values = {name: fields.find_time(name) for name in names}
    code = fields.get("error_code")
    if not code and values["e2e_latency"] is None:
        fields.complain("e2e_latency", "is missing")
    return Entry(fields, code, values)


def find_kept(totals: Fields, entries: Sequence[Entry]) -> Sequence[Entry]:
    """Find which requests the statistics are of: all, or those between a warm-up and a cool-down by order.

    The file does not say how many were left out; the count and the sum of latencies do.
    """
    ok = [entry for entry in entries if entry.is_ok()]
    part = totals.inside("stats").find_inside("e2e_latency")
    total, mean = (part.find("sum"), part.find("mean")) if part else (None, None)
    if total is None or not mean or is_same(total, Sample(get_values(ok, "e2e_latency")).total()):
        return ok
    count = int((total / mean).to_integral_value())
    for start in range(len(ok) - count + 1) if 0 < count <= len(ok) else ():
        if is_same(total, Sample(get_values(ok[start : start + count], "e2e_latency")).total()):
            return ok[start : start + count]
    return ok


def get_values(entries: Sequence[Entry], key: str) -> list[Decimal]:
    """List the values under one name."""
    return [value for entry in entries if (value := entry.values.get(key)) is not None]


# REPRODUCTION


def reproduce(ledger: Ledger, totals: Fields, entries: Sequence[Entry], kept: Sequence[Entry], unit: str) -> None:
    """Compute every number again."""
    reproduce_totals(ledger, totals, entries, kept)
    stats = totals.inside("stats")
    left = sum(entry.is_ok() for entry in entries) - len(kept)
    trimmed = f"; {left} requests at the ends left out as warm-up and cool-down" if left else ""
    for key in stats.data:
        part = stats.find_inside(key)
        sample = Sample(get_values(kept, key))
        for name in part.data if part else ():
            statistic = get_statistic(name)
            if part is not None and statistic is not None:
                again = statistic(sample) if sample.n else None
                definition = DEFINITIONS.get(key, key.replace("_", " ")) + trimmed + NOTE
                ledger.add(part, name, unit if key in TIMES else "", definition, again)


def reproduce_totals(ledger: Ledger, totals: Fields, entries: Sequence[Entry], kept: Sequence[Entry]) -> None:
    """Compute counts and rates again."""
    duration = totals.find("run_duration")
    ok = [entry for entry in entries if entry.is_ok()]
    failed = len(entries) - len(ok)
    sums = {key: Sample(get_values(kept, key)).total() for key in COUNTS}
    reason = "the file holds no clock of the run to check it"
    ledger.skip(totals, "run_duration", "s", "clock from before the start to after the stop, in ticks of 1 s", reason)
    numbers: Mapping[str, tuple[Decimal | int | None, str, str]] = {
        "mean_output_throughput_tokens_per_s": (
            divide(sums["num_output_tokens"], duration),
            "tokens/s",
            "output tokens",
        ),
        "mean_input_throughput_tokens_per_s": (divide(sums["num_input_tokens"], duration), "tokens/s", "input tokens"),
        "mean_total_tokens_throughput_tokens_per_s": (divide(sums["total_tokens"], duration), "tokens/s", "all tokens"),
        "requests_per_second": (divide(len(ok), duration), "requests/s", "successes"),
    }
    for key, (again, unit, what) in numbers.items():
        ledger.add(totals, key, unit, f"{what}, after trimming where there is any, / run_duration", again)
    ledger.add(totals, "num_requests", "requests", "successes and errors", len(entries))
    ledger.add(totals, "num_completed_requests", "requests", "requests without error_code", len(ok))
    ledger.add(totals, "num_error_requests", "requests", "requests with error_code", failed)
    reproduce_errors(ledger, totals, entries, failed)


def reproduce_errors(ledger: Ledger, totals: Fields, entries: Sequence[Entry], failed: int) -> None:
    """Compute the error rate and the counts of error codes again."""
    rate = divide(failed, len(entries)) or Decimal(0)
    if totals.find("error_rate") == 0 and rate:
        ledger.add(totals, "error_rate", "share", "errors / num_requests before that is set: always 0", 0)
    else:
        ledger.add(totals, "error_rate", "share", "errors / all requests", rate)
    codes = totals.find_inside("error_codes_frequency")
    for code in codes.data if codes else ():
        if codes is not None:
            same = sum(str(entry.code) == code for entry in entries)
            ledger.add(codes, code, "requests", "requests with this error_code", same)


# WHAT ELSE THE FILE SAYS

LIMITS = (
    "no per-chunk times: longest gap unknown",
    "no start times: nothing can be said across requests (arrivals, concurrency, windows)",
    "no time of the last token: latency and TPOT run to the end of the stream",
    "requests under way when the run stopped are not in the file, nor are replies that the tool could not count",
)


def make_row(entry: Entry, unit: Decimal) -> Row:
    """Give a request as a row, its times in seconds."""
    first, latency = (None if (v := entry.values[key]) is None else v * unit for key in ("ttft", "e2e_latency"))
    output, prompt = entry.values["num_output_tokens"], entry.values["num_input_tokens"]
    return Row(
        id=str(entry.fields.row),
        ok=entry.is_ok(),
        prompt=None if prompt is None else int(prompt),
        output=None if output is None else int(output),
        first=first,
        latency=latency,
        reason=None if entry.is_ok() else f"{entry.code}: {entry.fields.get('error_message')}"[:200],
    )


CLAIMS = {
    "duration": "run_duration",
    "completed": "num_completed_requests",
    "failed": "num_error_requests",
    "total": "num_requests",
    "cap": "num_concurrency",
    "request_throughput": "requests_per_second",
    "output_throughput": "mean_output_throughput_tokens_per_s",
    "total_throughput": "mean_total_tokens_throughput_tokens_per_s",
}
LATENCIES = {"ttft": "ttft", "tpot": "tpot", "e2e_latency": "e2e"}


def get_claims(totals: Fields, unit: Decimal) -> dict[str, Decimal]:
    """Give the summary under shared names; latencies in seconds."""
    claims = {name: totals.find(key) for name, key in CLAIMS.items()}
    stats = totals.inside("stats")
    for key, name in LATENCIES.items():
        part = stats.find_inside(key)
        for statistic, shared in {"mean": "mean", "p50": "median", "p99": "p99", "min": "min", "max": "max"}.items():
            value = part.find(statistic) if part else None
            claims[f"{shared}_{name}"] = None if value is None else value * unit
    return {name: value for name, value in claims.items() if value is not None}


def judge_success(entries: Sequence[Entry]) -> Success:
    """Say what is known of true success: nothing in the file tells a stream that was cut from a whole one."""
    because = "the file keeps no finish reason, no usage mark and no [DONE]; a stream cut short looks like a whole one"
    return Success(sum(entry.is_ok() for entry in entries), None, because)


def find_traps(entries: Sequence[Entry], kept: Sequence[Entry]) -> Iterator[Finding]:
    """Find what applies to this tool only."""
    tail = "the clock runs to the end of the stream: usage and [DONE] are inside latency and TPOT"
    yield Finding("tail-inside-clock", tail)
    ok = [entry for entry in entries if entry.is_ok()]
    if len(kept) < len(ok):
        yield Finding(
            "trimmed-unevenly",
            f"{len(ok) - len(kept)} requests are left out of latencies and tokens, but not out of the duration",
        )
    if not any(entry.values["num_output_tokens"] == 1 for entry in ok):
        yield Finding(
            "one-token-replies-dropped",
            "no one-token reply is in the file: version 0.0.5 fails on them and drops them from every count",
        )


def find_contradictions(totals: Fields) -> Iterator[Finding]:
    """Find an error rate of 0 beside errors."""
    failed = totals.find_count("num_error_requests") or 0
    if totals.find("error_rate") == 0 and failed:
        total = totals.find_count("num_requests")
        yield Finding("error-rate-zero", f"error_rate is 0, but {failed} of {total} requests are counted as errors")


def list_derived(entry: Entry) -> tuple[str, dict[str, Pair]]:
    """Give each derived number of a request as written and as it follows from the others."""
    value = entry.values
    ttft, latency, count, prompt = (value[k] for k in ("ttft", "e2e_latency", "num_output_tokens", "num_input_tokens"))
    pairs: dict[str, Pair] = {}
    if ttft is not None and latency is not None:
        pairs["output_latency"] = (value["output_latency"], latency - ttft)
        if count is not None and count > 1:
            pairs["tpot"] = (value["tpot"], (latency - ttft) / (count - 1))
    if count is not None and prompt is not None:
        pairs["total_tokens"] = (value["total_tokens"], prompt + count)
    return str(entry.fields.row), pairs
