"""The numbers of `vllm bench serve`, each computed again from the arrays of its file."""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal

from refsched.results.fields import Fields
from refsched.results.goodput import count_good
from refsched.results.ledger import Ledger, get_statistic
from refsched.results.rows import Row, count_by_second, to_milliseconds
from refsched.results.sample import Sample, divide

STATISTIC = re.compile(r"(mean|median|std|p[\d.]+)_(\w+)_ms")
DEFINITIONS = {
    "ttft": "ttft over successes, ms; the first event with choices (completions) or with text (chat)",
    "tpot": "tpot.decode/(n-1): (latency - ttft) / (n - 1) per success with n > 1, mean over requests, ms",
    "itl": "itl.chunk: gaps between chunks of successes, pooled, ms",
    "e2el": "e2e.last_token: latency to the last chunk over successes, ms",
    "client_queue_time": "queue_times over successes, ms",
    "e2el_including_client_queue": "latency + queue_times over successes, ms",
}
QUANTILE = "; standard deviation over n, quantiles linear between ranks, 0 for an empty sample"
NO_DETAIL = "the file has no per-request arrays (--save-detailed): only the summary is there"
Slo = Mapping[str, Decimal]


def reproduce_counts(ledger: Ledger, fields: Fields, rows: Sequence[Row]) -> None:
    """Count requests and tokens again."""
    ok = [row for row in rows if row.ok]
    has_rows = fields.has("ttfts", "output_lens")
    counts = {
        "num_prompts": (len(rows), "requests", "requests sent"),
        "completed": (len(ok), "requests", "requests without an error text"),
        "failed": (len(rows) - len(ok), "requests", "requests with an error text"),
        "total_input_tokens": (sum(row.prompt or 0 for row in ok), "tokens", "input_lens over successes"),
        "total_output_tokens": (sum(row.output or 0 for row in ok), "tokens", "output_lens over successes"),
    }
    for key, (again, unit, definition) in counts.items():
        if has_rows:
            ledger.add(fields, key, unit, definition, again)
        else:
            reproduce_bare_count(ledger, fields, key, unit, definition)


def reproduce_bare_count(ledger: Ledger, fields: Fields, key: str, unit: str, definition: str) -> None:
    """Check the counts of a file without details against each other, where that is possible."""
    planned, failed, completed = (fields.find(name) for name in ("num_prompts", "failed", "completed"))
    if key in ("completed", "failed") and None not in (planned, failed, completed):
        other = failed if key == "completed" else completed
        ledger.add(fields, key, unit, "num_prompts less the others", (planned or 0) - (other or 0))
    else:
        ledger.skip(fields, key, unit, definition, NO_DETAIL)


def reproduce_rates(ledger: Ledger, fields: Fields, slo: Slo, ok: Sequence[Row]) -> None:
    """Compute the rates again, from the counts and the duration in the file."""
    duration = fields.find("duration")
    inputs, outputs = fields.find("total_input_tokens"), fields.find("total_output_tokens")
    both = None if inputs is None or outputs is None else inputs + outputs
    ledger.skip(fields, "duration", "s", "clock around the whole run", "the file holds no clock of the run to check it")
    rates = {
        "request_throughput": (fields.find("completed"), "requests/s", "completed / duration"),
        "output_throughput": (outputs, "tokens/s", "total_output_tokens / duration"),
        "total_token_throughput": (both, "tokens/s", "(total_input_tokens + total_output_tokens) / duration"),
        "input_throughput": (inputs, "tokens/s", "total_input_tokens / duration"),
    }
    for key, (amount, unit, definition) in rates.items():
        ledger.add(fields, key, unit, definition, divide(amount, duration))
    reproduce_goodput(ledger, fields, slo, ok)
    ledger.skip(fields, "rtfx", "ratio", "seconds of audio in / duration", "the file holds no audio lengths")


def reproduce_goodput(ledger: Ledger, fields: Fields, slo: Slo, ok: Sequence[Row]) -> None:
    """Count good requests again, where the targets are known; a one-token output has TPOT 0 and passes."""
    definition = "successes that meet every target / duration; TPOT of a one-token output is 0 and passes"
    if fields.get("request_goodput") is None:
        return
    if not slo or not ok or ok[0].first is None:
        ledger.skip(fields, "request_goodput", "requests/s", definition, "the file does not hold the targets (--slo)")
        return
    good = count_good(({"ttft": row.first, "tpot": row.tpot(), "e2e": row.latency} for row in ok), slo, "pass")
    ledger.add(fields, "request_goodput", "requests/s", definition, divide(good, fields.find("duration")))


def reproduce_peaks(ledger: Ledger, fields: Fields, ok: Sequence[Row]) -> None:
    """Count the peaks again; both need the start of each request."""
    names = {
        "max_output_tokens_per_s": ("chunks/s", "most chunks of successes that came in one second of the run"),
        "max_concurrent_requests": ("requests", "most successes that touch one second of the run"),
    }
    known = bool(ok) and all(row.start is not None and row.first is not None for row in ok)
    peaks = count_by_second(ok) if known else (0, 0)
    for (key, (unit, definition)), again in zip(names.items(), peaks, strict=True):
        if known or (fields.has("ttfts") and not ok):
            ledger.add(fields, key, unit, definition, again)
        else:
            ledger.skip(fields, key, unit, definition, "the file does not hold when each request started")


def reproduce_latency(ledger: Ledger, fields: Fields, rows: Sequence[Row]) -> None:
    """Compute every latency statistic again."""
    samples = make_samples(fields, rows)
    for key in fields.data:
        match = STATISTIC.fullmatch(key)
        if match is None or match[2] not in DEFINITIONS:
            continue
        statistic, sample = get_statistic(match[1]), samples.get(match[2])
        definition = DEFINITIONS[match[2]] + QUANTILE
        if sample is None or statistic is None:
            ledger.skip(fields, key, "ms", definition, NO_DETAIL)
        else:
            ledger.add(fields, key, "ms", definition, to_milliseconds(statistic(sample)) or Decimal(0))


def make_samples(fields: Fields, rows: Sequence[Row]) -> dict[str, Sample]:
    """Give the sample behind each family of statistics that the file supports."""
    ok = [row for row in rows if row.ok]
    samples = {}
    if fields.has("ttfts"):
        samples["ttft"] = Sample(row.first for row in ok if row.first is not None)
        samples["tpot"] = Sample(value for value in map(Row.tpot, ok) if value is not None)
        samples["itl"] = Sample(gap for row in ok for gap in row.gaps or ())
    if ok or fields.has("ttfts"):
        samples["e2el"] = Sample(row.latency for row in ok if row.latency is not None)
    if fields.has("queue_times") and samples:
        samples["client_queue_time"] = Sample(row.wait or Decimal(0) for row in ok)
        samples["e2el_including_client_queue"] = Sample((row.latency or 0) + (row.wait or Decimal(0)) for row in ok)
    return samples
