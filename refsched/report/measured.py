"""A measured block as JSON and as text; made the same way for every command that has one."""

from collections.abc import Iterable, Mapping
from fractions import Fraction

from refsched.metrics.definitions import MEANINGS as DEFINITIONS
from refsched.metrics.goodput import Goodput
from refsched.metrics.measure import Across, Measured, Summary, WholeRun
from refsched.report import measured_parts as parts
from refsched.report.table import format_table
from refsched.units import TICKS_PER_SECOND, format_decimal, round_decimal, to_seconds

NAMES = {"ttft": "TTFT", "tpot": "TPOT", "gap": "single gap", "longest_gap": "longest gap", "total": "total time"}
MEANINGS = {
    "ttft": "first token received - request sent",
    "tpot": "(last token - first token) / (tokens - 1) of a request; undefined below two tokens",
    "gap": "between two deliveries of a request; all gaps of all requests",
    "longest_gap": "the longest gap of each request",
    "total": "last token received - request sent",
}
NOTHING_ACROSS: dict[str, object] = dict.fromkeys(
    ("throughput", "backlog", "fidelity", "steadiness", "cold_start", "windows")
)


def to_json(measured: Measured) -> dict[str, object]:
    """Give a block as a JSON object; times in seconds, rates per second; null is what the records cannot say."""
    latency: dict[str, object] = {"quantile_method": measured.method}
    latency |= {f"{name}_s": parts.summary_to_json(summary) for name, summary in measured.latency.items()}
    block: dict[str, object] = {
        "counts": dict(measured.counts),
        "clock": measured.clock,
        "populations": parts.populations_to_json(measured),
        "confidence": parts.confidence_to_json(measured),
        "latency": latency,
        "means": parts.means_to_json(measured.means),
        "with_failures": parts.failures_to_json(measured.failures),
        "tokens": dict(measured.tokens),
        "goodput": None if measured.goodput is None else parts.goodput_to_json(measured.goodput),
        "stalls": None if measured.stalls is None else parts.stalls_to_json(measured.stalls),
    }
    if measured.playback is not None:
        block["playback"] = parts.playback_to_json(measured.playback)
    if measured.deadlines is not None:
        block["deadlines"] = parts.deadlines_to_json(measured.deadlines)
    block |= NOTHING_ACROSS if measured.across is None else parts.across_to_json(measured.across)
    block |= {} if measured.run is None else parts.run_to_json(measured.run)
    if measured.groups:
        block["groups"] = {name: to_json(group) for name, group in measured.groups.items()}
    return block


# TEXT


def format_latency(latency: Mapping[str, Summary], unit: str = "s", names: Mapping[str, str] = NAMES) -> str:
    """Lay out latency summaries as a table in seconds, or in iterations where time is only counted."""
    header = (f"in {unit}", "n", "undefined", "mean", *next(iter(latency.values())).quantiles, "max")
    rows = [
        (
            names.get(name, name),
            f"{each.n:,}",
            f"{each.undefined:,}",
            *map(format_seconds, (each.mean, *each.quantiles.values(), each.max)),
        )
        for name, each in latency.items()
    ]
    return format_table(header, rows)


def format_measured(measured: Measured) -> Iterable[str]:
    """Lay out a whole block for a person: counts, populations, rates, and what to beware of."""
    counts = ", ".join(f"{count:,} {name}" for name, count in measured.counts.items() if count and name != "offered")
    yield f"{measured.counts['offered']:,} requests offered: {counts or 'nothing'}"
    yield ""
    yield format_latency(measured.populations, names={})
    yield ""
    yield from (f"{name}: {DEFINITIONS[name]}" for name in measured.populations)
    yield f"quantiles: {measured.method}, over completed requests"
    yield from format_small_samples(measured)
    yield from format_failures(measured)
    yield ""
    yield from format_rates(measured)
    if measured.goodput is not None:
        yield from format_goodput(measured.goodput)
    if measured.stalls is not None:
        stalls = measured.stalls
        limit = format_decimal(to_seconds(stalls.threshold))
        yield f"stalls     {stalls.requests:,} of {stalls.of:,} requests have a gap above {limit} s"
    yield from format_reading(measured)
    if measured.run is not None:
        yield from format_run(measured.run)
    for name, group in measured.groups.items():
        yield f"\ngroup {name}"
        yield format_latency(group.latency)


def format_reading(measured: Measured) -> Iterable[str]:
    """Say how readers at a steady rate fared, and which deadlines were missed."""
    playback, deadlines = measured.playback, measured.deadlines
    if playback is not None:
        yield (
            f"playback   {playback.requests:,} of {playback.of:,} readers had to wait, {playback.waits:,} times, "
            f"at most {format_seconds(playback.longest)} s"
        )
    if deadlines is not None:
        yield f"deadlines  {deadlines.missed:,} missed, {deadlines.met:,} met"


def format_small_samples(measured: Measured) -> Iterable[str]:
    """Say which quantiles have too few values behind them to be bounded above."""
    for label in ("p90", "p95", "p99"):
        few = [
            (name, each.n, each.intervals[label].needed)
            for name, each in measured.populations.items()
            if label in each.intervals and each.n < each.intervals[label].needed
        ]
        if few:
            counts = ", ".join(sorted({f"{n:,}" for _, n, _ in few}))
            yield f"too few values for {label}: {counts}; a two-sided 95 % interval needs {few[0][2]:,}"


def format_failures(measured: Measured) -> Iterable[str]:
    """Say what the quantiles are when failures count."""
    for name, bounds in measured.failures.items():
        words = ", ".join(f"{label} {format_bound(each.least, each.most)}" for label, each in bounds.items())
        yield f"with failures in view, {name}: {words}"


def format_bound(least: Fraction, most: Fraction | None) -> str:
    """Write a value, or from what it lies up to what."""
    if least == most:
        return f"{format_seconds(least)} s"
    return f"at least {format_seconds(least)} s" + ("" if most is None else f", at most {format_seconds(most)} s")


def format_rates(measured: Measured) -> Iterable[str]:
    """Say the rates and the backlog, or that there is no common clock for them."""
    if measured.across is None:
        yield "every record has a clock of its own: rates, backlog and fidelity are unknown"
        return
    rates, backlog = measured.throughput, measured.backlog
    yield (
        f"throughput {format_rate(rates.output_tokens)} output tokens of completed requests, "
        f"{format_rate(rates.delivered_tokens)} delivered, {format_rate(rates.total_tokens)} input + output, "
        f"{format_rate(rates.requests)} requests, over {format_window(measured.across)}"
    )
    yield (
        f"backlog    at most {backlog.peak:,} in the system ({backlog.peak_without_first_token:,} without a first "
        f"token), {backlog.at_last_send:,} when the last was sent"
    )


def format_window(across: Across) -> str:
    """Write a window, and by which rule requests belong to it where it is not the whole run."""
    length = f"{round_decimal(across.window.seconds(), 3)} s"
    if across.rule is None:
        return length
    start, stop = (format_seconds(Fraction(edge)) for edge in (across.window.start, across.window.stop))
    return f"{length} from {start} to {stop} (requests: {across.rule}; delivered: tokens in it)"


def format_goodput(goodput: Goodput) -> Iterable[str]:
    """Say goodput, its policy, and how each condition fared."""
    policy = goodput.policy
    share = "undefined" if goodput.share is None else f"{round_decimal(goodput.share * 100, 2)} %"
    yield (
        f"goodput    {format_rate(goodput.per_second)}: {goodput.good:,} of {goodput.of:,} {policy.denominator} "
        f"({share}); not applicable: {policy.not_applicable}, failures: {policy.failures}, all conditions together"
    )
    for each in goodput.conditions:
        limit = f"{each.slo.name} <= {format_seconds(Fraction(each.slo.most))} s"
        unknown = f", {each.unknown:,} unknown" if each.unknown else ""
        yield f"  {limit}: {each.met:,} met, {each.missed:,} missed, {each.not_applicable:,} not applicable{unknown}"
        if each.warning:
            yield f"  warning: {each.warning}"


def format_run(run: WholeRun) -> Iterable[str]:
    """Say whether the plan was kept, whether there was a steady state, and what the cold start was."""
    fidelity, steadiness = run.fidelity, run.steadiness
    yield (
        f"sends      {fidelity.verdict}: {fidelity.planned:,} planned, {fidelity.sent:,} sent, {fidelity.late:,} late "
        f"by more than {format_seconds(Fraction(fidelity.tolerance))} s, {fidelity.dropped:,} dropped"
    )
    if fidelity.cap is not None:
        yield f"  sends waited for one of {fidelity.cap:,} places: the client's concurrency cap was binding"
    utilisation = (
        ""
        if steadiness.utilisation is None
        else (
            f", {steadiness.arrivals:,} sent and {steadiness.departures:,} ended between ramp and drain "
            f"(utilisation {round_decimal(steadiness.utilisation, 3)})"
        )
    )
    words = {"growing": "no steady state: the backlog grew", "draining": "no steady state: the backlog shrank"}
    yield f"steadiness {words.get(steadiness.verdict, steadiness.verdict)}{utilisation}"
    if run.cold_start is not None:
        yield f"cold start {run.cold_start.burst:,} of {run.cold_start.offered:,} were sent before the first one ended"


def format_seconds(ticks: Fraction | None) -> str:
    """Round a time for reading, to a tenth of a millisecond."""
    return "-" if ticks is None else round_decimal(ticks / TICKS_PER_SECOND, 4)


def format_rate(rate: Fraction | None) -> str:
    """Round a rate for reading."""
    return "undefined" if rate is None else f"{round_decimal(rate, 3)}/s"


def format_share(share: Fraction | None) -> str:
    """Round a share for reading, as per cent."""
    return "undefined" if share is None else f"{round_decimal(share * 100, 1)} %"


def divide(part: int, whole: int) -> Fraction | None:
    """Give a share exactly, or None of nothing."""
    return Fraction(part, whole) if whole else None
