"""inference-perf: the summary, the stages and the per-request file of one run, read together."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from refsched.errors import InputError
from refsched.results.fields import Fields
from refsched.results.fitting import check_requests
from refsched.results.inference_perf_entries import Entry, count_hidden, judge_whole, list_derived, make_records
from refsched.results.inference_perf_numbers import Slo, counts_by_server, reproduce
from refsched.results.ledger import Ledger
from refsched.results.run import Finding, Run, Success

TOOL = "inference-perf"
NO_ENTRIES = "the per-request file is not there: only the summary is"
NO_STAGE = "the per-request file does not say to which stage a request belongs"


@dataclass(frozen=True, slots=True)
class Parts:
    """Hold the files of one run."""

    entries: Sequence[Entry] | None
    summary: Fields | None
    stages: Sequence[Fields]
    files: tuple[str, ...]
    slo: Slo


def is_entries(data: object) -> bool:
    """Recognise the per-request file by the fields of its first entry."""
    first = data[0] if isinstance(data, list) and data else None
    return isinstance(first, dict) and all(key in first for key in ("start_time", "end_time", "error"))


def is_summary(data: Mapping[str, object]) -> bool:
    """Recognise a summary, of the run or of a stage, by its fields."""
    return all(key in data for key in ("load_summary", "successes", "failures"))


def read_config(text: str) -> dict[str, Decimal]:
    """Take the goodput targets out of config.yaml: the numbers right under its line `constraints:`."""
    match = re.search(r"^( *)goodput:\n\1 +constraints:\n((?:\1 {3,}\w+: [\d.eE+-]+\n)+)", text, re.MULTILINE)
    pairs = re.findall(r"(\w+): ([\d.eE+-]+)", match[2]) if match else []
    return {name: Decimal(value) for name, value in pairs}


def read_run(parts: Parts, label: str) -> Run:
    """Read one run from its files; raise InputError where they hold no requests at all."""
    if parts.entries is not None and not parts.entries and parts.summary is None:
        raise InputError("holds no requests", file=parts.files[0])
    ledger = Ledger()
    if parts.summary is not None:
        reproduce(ledger, parts.summary, parts.entries, parts.slo, NO_ENTRIES)
    for stage, entries in split_stages(parts):
        reproduce(ledger, stage, entries, parts.slo, NO_ENTRIES if parts.entries is None else NO_STAGE)
    entries = parts.entries or ()
    whole = judge_whole(entries)
    return Run(
        tool=TOOL,
        label=label,
        files=parts.files,
        records=tuple(make_records(entries, whole)),
        reported=tuple(ledger.lines),
        success=judge_success(parts, whole),
        claims=get_claims(parts) if parts.summary else {},
        limits=tuple(find_limits(parts)),
        traps=tuple(find_traps(parts, whole)),
        contradictions=(*find_contradictions(parts), *check_requests(map(list_derived, entries))),
        without=HIDDEN if count_hidden(entries) else frozenset(),
        slo={NAMES.get(name, name): value for name, value in parts.slo.items()},
    )


HIDDEN = frozenset(("ttft.any", "ttft.reasoning", "ttft.chunk", "tpot.decode/(n-1)", "tpot.decode/(n-k1)", "itl.even"))
NAMES = {"request_latency": "e2e"}


def split_stages(parts: Parts) -> Iterator[tuple[Fields, Sequence[Entry] | None]]:
    """Give each stage its requests: in order of start, as many as it counts, if the counts add up to all."""
    counts = [stage.inside("load_summary").count("count") for stage in parts.stages]
    ordered = sorted(parts.entries or (), key=lambda entry: entry.start)
    known = parts.entries is not None and sum(counts) == len(ordered)
    place = 0
    for stage, count in zip(parts.stages, counts, strict=True):
        yield stage, ordered[place : place + count] if known else None
        place += count


THROUGHPUTS = {
    "request_throughput": "requests_per_sec",
    "output_throughput": "output_tokens_per_sec",
    "total_throughput": "total_tokens_per_sec",
}
LATENCIES = {
    "time_to_first_token": "ttft",
    "time_per_output_token": "tpot",
    "inter_token_latency": "itl",
    "request_latency": "e2e",
}


def get_claims(parts: Parts) -> dict[str, Decimal]:
    """Give the summary under shared names."""
    summary = parts.summary
    if summary is None:
        return {}
    good, load = summary.inside("successes"), summary.inside("load_summary")
    rates, outputs = good.find_inside("throughput"), good.find_inside("output_tokens")
    claims: dict[str, Decimal | None] = {
        "duration": summary.find("benchmark_time_seconds"),
        "completed": good.find("count"),
        "failed": summary.inside("failures").find("count"),
        "total": load.find("count"),
        "rate": load.find("requested_rate"),
        "cap": load.find("concurrency"),
        "mean_wait": get_wait(parts, load),
        "output_tokens": outputs.find("total") if outputs else None,
    }
    claims |= {name: rates.find(key) if rates else None for name, key in THROUGHPUTS.items()}
    claims |= get_latencies(good.find_inside("latency"))
    return {name: value for name, value in claims.items() if value is not None}


def get_wait(parts: Parts, load: Fields) -> Decimal | None:
    """Give how late sends were; with a fixed concurrency, there is no schedule to be late against."""
    delay = load.find_inside("schedule_delay")
    fixed = any(each.inside("load_summary").get("concurrency") for each in parts.stages)
    return None if delay is None or fixed or load.get("concurrency") else delay.find("mean")


def get_latencies(latency: Fields | None) -> dict[str, Decimal | None]:
    """Give the latency statistics under shared names, in seconds."""
    claims = {}
    for key, name in LATENCIES.items():
        part = latency.find_inside(key) if latency else None
        for statistic in ("mean", "median", "p99", "min", "max"):
            claims[f"{statistic}_{name}"] = part.find(statistic) if part else None
    return claims


def judge_success(parts: Parts, whole: Mapping[str, bool] | None) -> Success:
    """Say what the files show of true success."""
    entries = parts.entries
    counted = sum(entry.error is None for entry in entries or ())
    if entries is not None and whole is not None:
        because = (
            "the server reports usage at the end of a whole stream; a counted success without it was cut or in error"
        )
        return Success(counted, sum(whole.values()), because)
    if parts.summary is None:
        return Success(counted, None, "no usage in the entries: a stream cut short looks like a whole one")
    good = parts.summary.inside("successes")
    fallback = good.find_inside("client_fallback_requests")
    without = fallback.find_count("output") if fallback else None
    total = good.count("count")
    if without is not None and without < total:
        because = f"{without} successes came without usage, which the others have: cut streams or errors inside"
        return Success(total, total - without, because)
    return Success(total, None, "the summary does not tell a stream that was cut from a whole one")


def find_limits(parts: Parts) -> Iterator[str]:
    """Say what these files cannot support."""
    if parts.entries is None:
        yield "no per-request file: per-request values, gaps and the longest gap are unknown"
    yield "no intended sends per request: how late each send was is unknown"


def find_traps(parts: Parts, whole: Mapping[str, bool] | None) -> Iterator[Finding]:
    """Find what applies to this tool only."""
    ok = [entry for entry in parts.entries or () if entry.error is None]
    if whole is not None and not all(whole.values()):
        cut = sum(not each for each in whole.values())
        yield Finding("truncated-counted", f"{cut} counted successes were cut before their end or hold an error")
    short = [entry for entry in ok if not entry.has_times()]
    if short:
        yield Finding("short-outputs-dropped", f"{len(short)} successes of at most one token are in no TTFT statistic")
    hidden = count_hidden(parts.entries or ())
    if hidden:
        yield Finding(
            "reasoning-ignored",
            f"in {hidden} successes the server counts more tokens than the content has: reasoning is neither timed nor "
            "counted here, so TTFT is ttft.content and throughput leaves the reasoning out",
        )
    zeros = sum(not entry.output(False) for entry in ok)
    if zeros:
        yield Finding("zero-entries", f"{zeros} outputs of no tokens enter the normalised time per token as 0")
    bursts = sum(gap == 0 for entry in ok for gap in entry.gaps())
    if bursts:
        yield Finding("burst-zeros", f"{bursts} gaps inside a chunk are 0 because all its tokens have the chunk's time")
    tails = [e.end - e.token_times[-1] for e in ok if e.token_times]
    if tails and max(tails) > Decimal("0.005"):
        yield Finding(
            "tail-inside-clock",
            f"latency runs up to {max(tails):.4g} s past the last token: stream end and client tokenisation are inside",
        )


def check_rate(stage: Fields) -> Iterator[Finding]:
    """Find a stage whose sends came at another rate than was asked for."""
    load = stage.inside("load_summary")
    asked, achieved, count = (load.find(key) for key in ("requested_rate", "achieved_rate", "count"))
    if not asked or achieved is None or not count or count < 20 or load.get("concurrency"):
        return
    if abs(achieved / asked - 1) > max(Decimal("0.2"), 4 / count.sqrt()):
        yield Finding(
            "rate-not-kept",
            f"{stage.path or 'the run'} asked for {asked:.6g} sends/s and made {achieved:.6g}: the load that was asked "
            "for is not the load that was offered",
        )


def find_contradictions(parts: Parts) -> Iterator[Finding]:
    """Find two counts of output tokens in one report, and stages that were sent slower or faster than asked for."""
    yield from (finding for stage in parts.stages for finding in check_rate(stage))
    ok = [entry for entry in parts.entries or () if entry.error is None]
    if parts.summary is None or counts_by_server(parts.summary.inside("successes"), ok, parts.entries or ()):
        return
    client, server = sum(entry.output(False) for entry in ok), sum(entry.output(True) for entry in ok)
    if ok and client != server:
        yield Finding(
            "two-token-counts",
            f"output_tokens.total is {server} (usage), but output_tokens_per_sec stands on another count than that "
            f"({client} by the client's tokenizer)",
        )
