"""llmperf: the flat summary and the individual responses of one run, read together."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from refsched.errors import InputError
from refsched.results.fields import Fields
from refsched.results.fitting import Pair, check_requests
from refsched.results.ledger import Ledger, Statistic, get_statistic
from refsched.results.load import Odd
from refsched.results.rows import Row, make_record
from refsched.results.run import GAPS, LAST_TOKEN, UNSUPPORTED, Finding, Reported, Run, Success
from refsched.results.sample import Sample, divide
from refsched.units import parse_decimal

TOOL = "llmperf"
PREFIX = "results_"
STATISTIC = re.compile(r"results_(\w+?)_(?:quantiles_(p\d+)|(mean|min|max|stddev))")
DEFINITIONS = {
    "inter_token_latency_s": "(ttft + sum of gaps) / SSE chunks, role and empty ones included: contains the TTFT",
    "ttft_s": "ttft.content: first non-empty content - start; 0 where there is none",
    "end_to_end_latency_s": "e2e.stream_end: end of the stream - start",
    "request_output_throughput_token_per_s": "output tokens / end_to_end_latency_s",
    "number_input_tokens": "tokens of the prompt by the client's tokenizer",
    "number_output_tokens": "tokens of the text by the client's tokenizer, a BOS token included where it adds one",
}
NOTE = " of rows without error_code; standard deviation over n - 1, quantiles linear between ranks"
NO_ROWS = "the individual responses are not there: only the summary is"
NO_CLOCK = "the duration of the run is in the file only through this rate"


@dataclass(frozen=True, slots=True)
class Entry:
    """Hold one response."""

    fields: Fields
    code: object
    values: Mapping[str, Decimal | None]


def is_responses(data: object) -> bool:
    """Recognise the individual responses by the fields of the first."""
    first = data[0] if isinstance(data, list) and data else None
    return isinstance(first, dict) and "error_code" in first and "number_total_tokens" in first


def is_summary(data: Mapping[str, object]) -> bool:
    """Recognise the summary by its fields."""
    return "results_num_completed_requests" in data and "results_number_errors" in data


def read_entry(fields: Fields) -> Entry:
    """Read one response; its times must not be negative."""
    code = fields.get("error_code")
    values = {name: fields.find_time(name) for name in DEFINITIONS}
    if code is None and values["end_to_end_latency_s"] is None:
        fields.complain("end_to_end_latency_s", "is missing")
    return Entry(fields, code, values)


def read_run(entries: Sequence[Entry] | None, summary: Fields | None, files: tuple[str, ...], label: str) -> Run:
    """Read one run; raise InputError where it holds no requests."""
    if summary is None and not entries:
        raise InputError("holds no requests", file=files[0])
    ledger = Ledger()
    if summary is not None:
        reproduce(ledger, summary, entries)
    ok = [entry for entry in entries or () if entry.code is None]
    counted = len(ok) if entries is not None else summary.count(PREFIX + "num_completed_requests") if summary else 0
    return Run(
        tool=TOOL,
        label=label,
        files=files,
        records=tuple(make_record(make_row(entry), None, "retokenised") for entry in entries or ()),
        reported=tuple(ledger.lines),
        success=Success(counted, None, BECAUSE),
        claims=get_claims(summary) if summary else {},
        limits=LIMITS,
        without=GAPS | LAST_TOKEN,
        traps=tuple(find_traps(entries or (), summary)),
        contradictions=tuple(check_requests(map(list_derived, entries or ()))),
    )


# REPRODUCTION


def reproduce(ledger: Ledger, summary: Fields, entries: Sequence[Entry] | None) -> None:
    """Compute every number of the summary again."""
    ok = [entry for entry in entries or () if entry.code is None]
    for key in summary.data:
        match = STATISTIC.fullmatch(key)
        if match is not None and match[1] in DEFINITIONS:
            statistic = get_own_statistic(match[2] or match[3])
            if statistic is not None:
                sample = Sample(v for e in ok if (v := e.values[match[1]]) is not None)
                reproduce_one(ledger, summary, key, match[1], None if entries is None else statistic(sample))
    reproduce_counts(ledger, summary, entries)


def get_own_statistic(name: str) -> Statistic | None:
    """Find a statistic as pandas computes it: the deviation over n - 1."""
    return (lambda sample: sample.deviation(1)) if name == "stddev" else get_statistic(name)


def reproduce_one(ledger: Ledger, summary: Fields, key: str, name: str, again: Decimal | None) -> None:
    """Enter one statistic; the least and greatest counts are written in quotes, and NaN stands for none."""
    raw = summary.get(key)
    unit = "s" if name.endswith("_s") and "per" not in name else "tokens/s" if "per" in name else "tokens"
    definition = DEFINITIONS[name] + NOTE
    value = None if is_nan(raw) else parse_decimal(raw) if isinstance(raw, str) else summary.find(key)
    if again is None and value is not None:
        ledger.lines.append(Reported(summary.name(key), value, unit, UNSUPPORTED, definition, None, NO_ROWS))
    else:
        ledger.add_value(summary, key, value, unit, definition, again)


def is_nan(raw: object) -> bool:
    """Say whether a value is the NaN that pandas gives for the deviation of one value."""
    return isinstance(raw, Odd) and raw.word == "NaN"


def reproduce_counts(ledger: Ledger, summary: Fields, entries: Sequence[Entry] | None) -> None:
    """Compute counts and rates again."""
    per_minute = summary.find("results_num_completed_requests_per_min")
    completed = summary.find("results_num_completed_requests")
    duration = divide((completed or Decimal(0)) * 60, per_minute)
    outputs = sum_outputs(entries)
    definition = "output tokens / the duration that results_num_completed_requests_per_min implies"
    keys = {
        "results_num_requests_started": "rows of the file",
        "results_num_completed_requests": "rows without error_code",
        "results_number_errors": "rows with error_code",
        "results_error_rate": "rows with error_code / rows",
    }
    if entries is None:
        ledger.skip_all(summary, keys, "", "counted over rows", NO_ROWS)
        ledger.skip(summary, "results_mean_output_throughput_token_per_s", "tokens/s", definition, NO_ROWS)
    else:
        failed = sum(entry.code is not None for entry in entries)
        share = divide(failed, len(entries)) or Decimal(0)
        again: tuple[Decimal | int, ...] = (len(entries), len(entries) - failed, failed, share)
        for (key, rule), value in zip(keys.items(), again, strict=True):
            ledger.add(summary, key, "requests" if "rate" not in key else "share", rule, value)
        rate = divide(outputs, duration)
        ledger.add(summary, "results_mean_output_throughput_token_per_s", "tokens/s", definition, rate)
        reproduce_codes(ledger, summary, entries)
    rule = "completed / the duration from before the clients were made, * 60"
    ledger.skip(summary, "results_num_completed_requests_per_min", "requests/min", rule, NO_CLOCK)


def reproduce_codes(ledger: Ledger, summary: Fields, entries: Sequence[Entry]) -> None:
    """Count the error codes again; the file writes them as a text of its own."""
    text = summary.text("results_error_code_frequency") or "{}"
    try:
        codes = json.loads(text.replace("'", '"'))
    except ValueError:
        return
    for code, count in codes.items() if isinstance(codes, dict) else ():
        if isinstance(count, int):
            inside = Fields({code: count}, summary.file, None, "results_error_code_frequency")
            again = sum(str(entry.code) == str(code) for entry in entries)
            ledger.add(inside, code, "requests", "rows with this error_code", again)


def sum_outputs(entries: Sequence[Entry] | None) -> Decimal:
    """Sum the output tokens of the rows without an error."""
    found = (e.values["number_output_tokens"] for e in entries or () if e.code is None)
    return sum((value for value in found if value is not None), Decimal(0))


# WHAT ELSE THE FILES SAY

BECAUSE = "the files keep no finish reason and no [DONE], and a failed request may never be stored"
LIMITS = (
    "no per-chunk times: longest gap unknown",
    "no start times: nothing can be said across requests (arrivals, concurrency, windows)",
    "no time of the last token: TPOT cannot be computed from its parts",
)


def make_row(entry: Entry) -> Row:
    """Give a response as a row; a TTFT of 0 is none."""
    output, prompt = entry.values["number_output_tokens"], entry.values["number_input_tokens"]
    return Row(
        id=str(entry.fields.row),
        ok=entry.code is None,
        prompt=None if prompt is None else int(prompt),
        output=None if output is None else int(output),
        first=entry.values["ttft_s"] or None,
        latency=entry.values["end_to_end_latency_s"],
        reason=None if entry.code is None else f"{entry.code}: {entry.fields.get('error_msg')}"[:200],
    )


CLAIMS = {
    "completed": "num_completed_requests",
    "failed": "number_errors",
    "total": "num_requests_started",
    "output_throughput": "mean_output_throughput_token_per_s",
    "mean_ttft": "ttft_s_mean",
    "p99_ttft": "ttft_s_quantiles_p99",
    "max_ttft": "ttft_s_max",
    "mean_e2e": "end_to_end_latency_s_mean",
    "p99_e2e": "end_to_end_latency_s_quantiles_p99",
    "max_e2e": "end_to_end_latency_s_max",
}


def get_claims(summary: Fields) -> dict[str, Decimal]:
    """Give the summary under shared names."""
    claims = {name: summary.find(PREFIX + key) for name, key in CLAIMS.items()}
    claims["cap"] = summary.find("num_concurrent_requests")
    rate = summary.find("results_num_completed_requests_per_min")
    claims["request_throughput"] = None if rate is None else rate / 60
    claims["duration"] = divide(claims["completed"], claims["request_throughput"])
    return {name: value for name, value in claims.items() if value is not None}


def list_derived(entry: Entry) -> tuple[str, dict[str, Pair]]:
    """Give the derived number of a response as written and as it follows from the others."""
    latency, count = entry.values["end_to_end_latency_s"], entry.values["number_output_tokens"]
    name = "request_output_throughput_token_per_s"
    known = entry.code is None and count is not None and latency
    return str(entry.fields.row), {name: (entry.values[name], divide(count, latency))} if known else {}


def find_traps(entries: Sequence[Entry], summary: Fields | None) -> Iterator[Finding]:
    """Find what applies to this tool only."""
    yield Finding(
        "itl-includes-ttft",
        "inter_token_latency_s is (ttft + gaps) / chunks: it contains the time to first token and counts chunks",
    )
    clock = "the clock of the rates starts before the clients are made: throughput is too low by their start-up"
    yield Finding("clock-too-long", clock)
    errors = summary.find("results_number_errors") if summary else None
    if errors == 0:
        lost = "a failed request has latency 0 and divides by it, which kills its worker before the record is stored"
        yield Finding("failures-dropped", f"0 errors are reported, but that proves nothing: {lost}")
    zero = sum(entry.code is None and not entry.values["ttft_s"] for entry in entries)
    if zero:
        yield Finding("zero-entries", f"{zero} responses without content enter with TTFT 0")
