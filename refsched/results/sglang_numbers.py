"""The numbers of SGLang's bench_serving, each computed again where its file allows it."""

import re
from collections.abc import Sequence
from decimal import Decimal

from refsched.results.fields import Fields
from refsched.results.goodput import meets
from refsched.results.ledger import Ledger, Statistic, get_statistic
from refsched.results.rows import Row, to_milliseconds
from refsched.results.run import is_same
from refsched.results.sample import Sample, divide

STATISTIC = re.compile(r"(mean|median|std|p[\d.]+)_(e2e_latency|ttft|tpot|itl)_ms")
DEFINITIONS = {
    "ttft": "ttft.any over successes, ms; 0 for a stream without text",
    "itl": "gaps between chunks of successes, pooled, ms; the native backend divides each by its tokens",
    "e2e_latency": "e2e.stream_end: to the last line, [DONE] included, over successes, ms",
    "tpot": "(e2e.stream_end - ttft) / (n - 1) per success with n > 1, mean over requests, ms",
}
NO_DETAIL = "the file has no per-request arrays (--output-details): only the summary is there"
NO_END = "the file keeps the time of each chunk, but not the end of the stream, to which this tool's latency runs"
NO_START = "the file does not hold when each request started"
NO_TEXT = "the file does not hold the tokenizer's count for each request"


def reproduce_counts(ledger: Ledger, fields: Fields, rows: Sequence[Row]) -> None:
    """Count requests and tokens again; the input total is of the data set's lengths, not always of input_lens."""
    ok = [row for row in rows if row.ok]
    inputs = sum(row.prompt or 0 for row in ok)
    if not rows and not fields.has("ttfts"):
        counts = ("completed", "total_input_tokens", "total_input_text_tokens", "total_output_tokens")
        ledger.skip_all(fields, counts, "count", "over successes", NO_DETAIL)
    else:
        ledger.add(fields, "completed", "requests", "requests without an error text", len(ok))
        ledger.add(
            fields, "total_output_tokens", "tokens", "output_lens over successes", sum(r.output or 0 for r in ok)
        )
        for key in ("total_input_tokens", "total_input_text_tokens"):
            reproduce_input(ledger, fields, key, inputs)
    retokenised = "tokenizer's count of the generated texts of successes"
    ledger.skip(fields, "total_output_tokens_retokenized", "tokens", retokenised, NO_TEXT)
    ledger.skip(fields, "duration", "s", "clock around the run, /stop_profile and /server_info included", NO_START)


def reproduce_input(ledger: Ledger, fields: Fields, key: str, inputs: int) -> None:
    """Sum the inputs again where the file keeps the data set's lengths; the server's counts replace them."""
    if fields.find(key) == inputs:
        ledger.add(fields, key, "tokens", "input_lens over successes", inputs)
    else:
        reason = f"input_lens holds the server's counts (sum {inputs}), this total the data set's lengths"
        ledger.skip(fields, key, "tokens", "lengths of the data set's prompts over successes", reason)


def reproduce_rates(ledger: Ledger, fields: Fields) -> None:
    """Compute the rates again, from the counts and the duration in the file."""
    duration, completed = fields.find("duration"), fields.find("completed")
    inputs, outputs = fields.find("total_input_tokens"), fields.find("total_output_tokens")
    both = None if inputs is None or outputs is None else inputs + outputs
    latency = fields.find("mean_e2e_latency_ms")
    busy = None if latency is None or completed is None else latency * completed / 1000
    rates = {
        "request_throughput": (completed, "requests/s", "completed / duration"),
        "input_throughput": (inputs, "tokens/s", "total_input_tokens / duration"),
        "output_throughput": (outputs, "tokens/s", "total_output_tokens / duration"),
        "total_throughput": (both, "tokens/s", "(total_input_tokens + total_output_tokens) / duration"),
        "concurrency": (busy, "requests", "sum of latencies / duration, from the file's own mean latency"),
    }
    for key, (amount, unit, definition) in rates.items():
        ledger.add(fields, key, unit, definition, divide(amount, duration))
    peaks = {"max_output_tokens_per_s": "chunks/s", "max_concurrent_requests": "requests"}
    for key, unit in peaks.items():
        ledger.skip(fields, key, unit, "the most in one second of the run", NO_START)
    accept = "tokens accepted per step, as the server reports them"
    ledger.skip(fields, "accept_length", "tokens", accept, "the server's own number; not in the file otherwise")


def reproduce_latency(ledger: Ledger, fields: Fields, ok: Sequence[Row]) -> None:
    """Compute every latency statistic again; those that run to the end of the stream only where a chunk ended it."""
    samples = make_samples(ok) if fields.has("ttfts") else {}
    for key in fields.data:
        match = STATISTIC.fullmatch(key)
        if match is None:
            continue
        statistic, sample = get_statistic(match[1]), samples.get(match[2])
        if statistic is None or sample is None:
            ledger.skip(fields, key, "ms", DEFINITIONS[match[2]], NO_DETAIL)
        elif match[2] in ("ttft", "itl"):
            again = to_milliseconds(statistic(sample)) or Decimal(0)
            ledger.add(fields, key, "ms", DEFINITIONS[match[2]], again)
        else:
            reproduce_to_end(ledger, fields, key, DEFINITIONS[match[2]], (statistic, sample))


def reproduce_to_end(
    ledger: Ledger, fields: Fields, key: str, definition: str, again: tuple[Statistic, Sample]
) -> None:
    """Enter a number that runs to the end of the stream: reproduced where the last chunk ended it, else unsupported."""
    statistic, sample = again
    computed = to_milliseconds(statistic(sample)) or Decimal(0)
    if is_same(fields.number(key), computed):
        ledger.add(fields, key, "ms", definition + "; here the last chunk ended it", computed)
    else:
        ledger.skip(fields, key, "ms", definition, f"{NO_END}; to the last chunk it is {computed:.6g} ms")


def make_samples(ok: Sequence[Row]) -> dict[str, Sample]:
    """Give the sample behind each family; the latency and TPOT end at the last chunk."""
    zero = Decimal(0)
    return {
        "ttft": Sample(row.first or zero for row in ok),
        "itl": Sample(gap for row in ok for gap in row.gaps or ()),
        "e2e_latency": Sample(row.latency or zero for row in ok),
        "tpot": Sample(value for value in map(Row.tpot, ok) if value is not None),
    }


def get_slo(fields: Fields) -> dict[str, Decimal]:
    """Give the targets that the tool was given, in seconds under shared names."""
    names = {"ttft": "ttft", "tpot": "tpot", "e2el": "e2e"}
    slos = fields.find_inside("goodput_slos_ms")
    return {names.get(key, key): slos.number(key) / 1000 for key in slos.data} if slos else {}


def reproduce_goodput(ledger: Ledger, fields: Fields, rows: Sequence[Row]) -> None:
    """Compute the attainments again where they do not need the end of the stream."""
    if not fields.has("goodput_slos_ms") or fields.get("goodput_slos_ms") is None:
        return
    definition = "successes that meet every target / duration; TPOT of a one-token output is 0 and passes"
    ledger.skip(fields, "request_goodput", "requests/s", definition, NO_END)
    sent, duration = len(rows), fields.find("duration")
    goodput = fields.find("request_goodput")
    good = None if goodput is None or duration is None else goodput * duration
    if rows:
        ledger.add(fields, "slo_attainment", "share", "request_goodput * duration / requests sent", divide(good, sent))
    shares = fields.find_inside("slo_attainment_by_metric")
    target = get_slo(fields).get("ttft")
    for key in shares.data if shares else ():
        about = f"successes that meet the {key} target / requests sent"
        if shares and key == "ttft" and rows and target is not None:
            met = sum(row.ok and meets(row.first or Decimal(0), target, "pass") for row in rows)
            ledger.add(shares, key, "share", about, divide(met, sent))
        elif shares:
            ledger.skip(shares, key, "share", about, NO_END)
