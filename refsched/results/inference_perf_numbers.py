"""inference-perf's numbers, each computed again from the per-request file."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from refsched.results.fields import Fields
from refsched.results.goodput import is_good, meets
from refsched.results.inference_perf_entries import OUTPUT_KEYS, PROMPT_KEYS, Entry, label_error
from refsched.results.ledger import Ledger, get_statistic
from refsched.results.run import is_same
from refsched.results.sample import Sample, divide

NOTE = "; times subtracted as binary doubles, quantiles linear between ranks"
NO_PLAN = "the per-request file does not hold the intended sends"
NO_BODY = "the per-request file does not hold the request bodies"
Slo = Mapping[str, Decimal]
LATENCIES: Mapping[str, tuple[str, Callable[[Entry, bool], Sequence[Decimal | None]]]] = {
    "request_latency": ("e2e.stream_end: end - start, the client's own work included", lambda e, _: [e.latency()]),
    "normalized_time_per_output_token": (
        "tpot.e2e/n: latency / n, TTFT included; 0 where n = 0",
        lambda e, by_server: [e.normalised(by_server)],
    ),
    "time_per_output_token": (
        "tpot.decode/(n-1): (last - first token) / (n - 1), for two tokens or more",
        lambda e, by_server: [e.tpot(by_server)],
    ),
    "time_to_first_token": (
        "ttft.content: first content - start, only of outputs of more than one token",
        lambda e, _: [e.ttft()],
    ),
    "inter_token_latency": (
        "itl.burst: gaps between tokens, those of a chunk all at its time, pooled",
        lambda e, _: e.gaps(),
    ),
}


def reproduce(ledger: Ledger, report: Fields, entries: Sequence[Entry] | None, slo: Slo, missing: str) -> None:
    """Compute every number of one report again."""
    good, bad = report.inside("successes"), report.inside("failures")
    ok = [entry for entry in entries or () if entry.error is None]
    failed = [entry for entry in entries or () if entry.error is not None]
    if entries is None:
        skip_report(ledger, report, missing)
        return
    by_server = counts_by_server(good, ok, entries)
    reproduce_load(ledger, report, entries)
    ledger.add(good, "count", "requests", "requests without an error", len(ok))
    ledger.add(bad, "count", "requests", "requests with an error", len(failed))
    for key, (definition, values) in LATENCIES.items():
        found = [value for entry in ok for value in values(entry, by_server) if value is not None]
        reproduce_sample(ledger, good.find_inside("latency"), key, "s", definition + NOTE, Sample(found))
    latency = Sample(entry.latency() for entry in failed)
    reproduce_sample(ledger, bad, "request_latency", "s", "end - start of failures" + NOTE, latency)
    reproduce_rates(ledger, good, ok, find_duration(entries), by_server)
    reproduce_tokens(ledger, good, bad, ok, failed)
    reproduce_sizes(ledger, good, ok)
    reproduce_goodput(ledger, good, ok, slo, by_server)
    reproduce_labels(ledger, bad, failed)


def find_duration(entries: Sequence[Entry]) -> Decimal:
    """Give the time from the first start to the last end, failures included."""
    return max(entry.end for entry in entries) - min(entry.start for entry in entries) if entries else Decimal(0)


def counts_by_server(good: Fields, ok: Sequence[Entry], entries: Sequence[Entry]) -> bool:
    """Find out whether the tool was told to take the server's count of output tokens."""
    throughput = good.find_inside("throughput")
    value = throughput.find("output_tokens_per_sec") if throughput else None
    rates = {flag: divide(sum(e.output(flag) for e in ok), find_duration(entries)) for flag in (False, True)}
    same = {flag: value is not None and rate is not None and is_same(value, rate) for flag, rate in rates.items()}
    return same[True] and not same[False]


def reproduce_load(ledger: Ledger, report: Fields, entries: Sequence[Entry]) -> None:
    """Compute the load again; how far sends were late cannot be."""
    load = report.inside("load_summary")
    starts = [entry.start for entry in entries]
    span = max(starts) - min(starts) if starts else Decimal(0)
    definition = "last end - first start, failures included"
    ledger.add(report, "benchmark_time_seconds", "s", definition, find_duration(entries))
    ledger.add(load, "count", "requests", "requests of the file", len(entries))
    ledger.add(load, "send_duration", "s", "last start - first start", span)
    ledger.add(
        load, "achieved_rate", "requests/s", "requests / send_duration", divide(len(entries), span) or Decimal(0)
    )
    delay = load.find_inside("schedule_delay")
    if delay is not None:
        ledger.skip_all(delay, delay.data, "s", "start - intended send", NO_PLAN)


def reproduce_sample(
    ledger: Ledger, parent: Fields | None, key: str, unit: str, definition: str, sample: Sample
) -> None:
    """Compute the statistics of one sample again; an empty one has none."""
    part = parent.find_inside(key) if parent else None
    for name in part.data if part else ():
        statistic = get_statistic(name)
        if part is not None and statistic is not None:
            ledger.add(part, name, unit, definition, statistic(sample))


def reproduce_rates(ledger: Ledger, good: Fields, ok: Sequence[Entry], duration: Decimal, by_server: bool) -> None:
    """Compute the rates again."""
    rates = good.find_inside("throughput")
    inputs, outputs = sum(entry.prompt for entry in ok), sum(entry.output(by_server) for entry in ok)
    source = "the server's" if by_server else "the client tokenizer's"
    amounts = {
        "input_tokens_per_sec": (inputs, "tokens/s", "input tokens of successes"),
        "output_tokens_per_sec": (outputs, "tokens/s", f"output tokens of successes by {source} count"),
        "total_tokens_per_sec": (inputs + outputs, "tokens/s", f"both, outputs by {source} count"),
        "requests_per_sec": (len(ok), "requests/s", "successes"),
        "images_per_sec": (sum(entry.media["image"] for entry in ok), "1/s", "images of successes"),
        "videos_per_sec": (sum(entry.media["video"] for entry in ok), "1/s", "videos of successes"),
        "audios_per_sec": (sum(entry.media["audio"] for entry in ok), "1/s", "audios of successes"),
    }
    for key, (amount, unit, definition) in amounts.items():
        if rates is not None:
            again = divide(amount, duration) or Decimal(0)
            ledger.add(rates, key, unit, definition + " / (last end - first start)", again)


def reproduce_tokens(ledger: Ledger, good: Fields, bad: Fields, ok: Sequence[Entry], failed: Sequence[Entry]) -> None:
    """Count the tokens again: prompts, the client's outputs, and the server's where it said them."""
    reproduce_prompts(ledger, good, ok)
    reproduce_prompts(ledger, bad, failed)
    lengths = Sample(Decimal(e.client_output) for e in ok if e.client_output is not None)
    reproduce_sample(ledger, good, "output_len", "tokens", "the client tokenizer's count", lengths)
    part = good.find_inside("output_tokens")
    outputs = Sample(Decimal(entry.output(True)) for entry in ok)
    if part is not None:
        ledger.add(part, "total", "tokens", "usage where the server said it, else the client's count", outputs.total())
    reproduce_sample(ledger, good, "output_tokens", "tokens", "usage where said, else the client's count", outputs)
    off = [e for e in ok if e.streamed and (n := e.server_count(OUTPUT_KEYS)) is not None and n != len(e.token_times)]
    ledger.add(good, "token_count_mismatches", "requests", "usage differs from the tokens found in chunks", len(off))
    fallback = good.find_inside("client_fallback_requests")
    for name, keys in (("prompt", PROMPT_KEYS), ("output", OUTPUT_KEYS)) if fallback else ():
        without = sum(entry.server_count(keys) is None for entry in ok)
        if fallback is not None:
            ledger.add(fallback, name, "requests", "successes without the server's count", without)


def reproduce_prompts(ledger: Ledger, parent: Fields, entries: Sequence[Entry]) -> None:
    """Count the prompt tokens again."""
    part = parent.find_inside("prompt_tokens")
    total, cached = sum(entry.prompt for entry in entries), sum(entry.cached() for entry in entries)
    totals = {"total": total, "cached": cached, "uncached": max(total - cached, 0)}
    for key, again in totals.items() if part else ():
        if part is not None:
            ledger.add(part, key, "tokens", f"{key} prompt tokens", again)
    sample = Sample(Decimal(entry.prompt) for entry in entries)
    reproduce_sample(ledger, parent, "prompt_tokens", "tokens", "prompt tokens", sample)


def reproduce_sizes(ledger: Ledger, good: Fields, ok: Sequence[Entry]) -> None:
    """Measure the request bodies again, where the file keeps them, and count images and the like."""
    part = good.find_inside("request_size_bytes")
    if part is not None and any(entry.request is None for entry in ok):
        ledger.skip_all(part, part.data, "bytes", "length of the request body", NO_BODY)
    else:
        sizes = Sample(Decimal(len((entry.request or "").encode())) for entry in ok)
        reproduce_sample(ledger, good, "request_size_bytes", "bytes", "length of the request body", sizes)
    for kind in ("image", "video", "audio"):
        inside = good.find_inside(kind)
        counts = Sample(Decimal(entry.media[kind]) for entry in ok)
        reproduce_sample(ledger, inside, "count", kind, f"{kind}s of a request", counts)


GOODS: Mapping[str, Callable[[Entry, bool], Decimal | None]] = {
    "ttft": lambda entry, _: entry.ttft(),
    "tpot": lambda entry, by_server: entry.tpot(by_server),
    "itl": lambda entry, _: Sample(entry.gaps()).mean(),
    "ntpot": lambda entry, by_server: entry.normalised(by_server),
    "request_latency": lambda entry, _: entry.latency(),
}


def reproduce_goodput(ledger: Ledger, good: Fields, ok: Sequence[Entry], slo: Slo, by_server: bool) -> None:
    """Count good requests again; only successes count, and a missing value fails."""
    part = good.find_inside("goodput_metrics")
    if part is None:
        return
    if not slo and not any(entry.slo for entry in ok):
        reason = "the files do not hold the targets (config.yaml or --slo)"
        ledger.skip_all(part, part.data, "", "successes that meet every target", reason)
        return
    values = [{name: GOODS[name](e, by_server) for name in {**slo, **e.slo} if name in GOODS} for e in ok]
    verdicts = [is_good(v, {**slo, **e.slo}, "fail") for v, e in zip(values, ok, strict=True)]
    chosen = [entry for entry, verdict in zip(ok, verdicts, strict=True) if verdict]
    duration = find_duration(ok)
    tokens = sum(entry.prompt + entry.output(by_server) for entry in chosen)
    rule = "of successes that meet every target; a missing value fails"
    ledger.add(part, "good_requests", "requests", f"number {rule}", len(chosen))
    ledger.add(part, "total_requests", "requests", "successes", len(ok))
    ledger.add(part, "goodput_percentage", "%", f"share {rule}", divide(len(chosen) * 100, len(ok)))
    ledger.add(
        part, "request_goodput", "requests/s", f"number {rule} / span of successes", divide(len(chosen), duration)
    )
    ledger.add(part, "token_goodput", "tokens/s", f"tokens in and out {rule} / span", divide(tokens, duration))
    for name in slo:
        met = sum(meets(each.get(name), slo[name], "fail") for each in values)
        key = f"{name}_attainment_percentage"
        ledger.add(part, key, "%", f"successes that meet {name}", divide(met * 100, len(ok)))


def reproduce_labels(ledger: Ledger, bad: Fields, failed: Sequence[Entry]) -> None:
    """Count the failures by label again."""
    labels = bad.find_inside("by_label")
    for label in labels.data if labels else ():
        inside = labels.find_inside(label) if labels else None
        if inside is not None:
            again = sum(entry.error is not None and label_error(entry.error) == label for entry in failed)
            ledger.add(inside, "count", "requests", "failures with this label", again)


def skip_report(ledger: Ledger, fields: Fields, reason: str) -> None:
    """Enter every number of a report that cannot be computed again, apart from what follows from others."""
    for key, value in fields.data.items():
        if isinstance(value, dict) and key not in ("by_label",):
            skip_report(ledger, fields.inside(key), reason)
        elif isinstance(value, int | Decimal) and not isinstance(value, bool):
            reproduce_alone(ledger, fields, key, reason)


def reproduce_alone(ledger: Ledger, fields: Fields, key: str, reason: str) -> None:
    """Compute one number of a report again from the report alone, or enter it as unsupported."""
    if key == "total_tokens_per_sec" and fields.has("input_tokens_per_sec", "output_tokens_per_sec"):
        again = fields.number("input_tokens_per_sec") + fields.number("output_tokens_per_sec")
        ledger.add(fields, key, "tokens/s", "input_tokens_per_sec + output_tokens_per_sec", again)
    else:
        ledger.skip(fields, key, "", key, reason)
