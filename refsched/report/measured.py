"""A measured block as JSON and as text; made the same way for every command that has one."""

from collections.abc import Mapping
from fractions import Fraction

from refsched.metrics.measure import Measured, Summary
from refsched.report.json_text import get_exact
from refsched.report.table import format_table
from refsched.units import TICKS_PER_SECOND, round_decimal, to_seconds

NAMES = {"ttft": "TTFT", "tpot": "TPOT", "gap": "single gap", "longest_gap": "longest gap", "total": "total time"}
MEANINGS = {
    "ttft": "first token received - request sent",
    "tpot": "(last token - first token) / (tokens - 1) of a request; undefined below two tokens",
    "gap": "between two deliveries of a request; all gaps of all requests",
    "longest_gap": "the longest gap of each request",
    "total": "last token received - request sent",
}


def to_json(measured: Measured) -> dict[str, object]:
    """Give a block as a JSON object; times in seconds, rates per second."""
    latency: dict[str, object] = {"quantile_method": measured.method}
    latency |= {f"{name}_s": summary_to_json(summary) for name, summary in measured.latency.items()}
    block: dict[str, object] = {
        "counts": dict(measured.counts),
        "latency": latency,
        "throughput": throughput_to_json(measured),
        "backlog": {
            "peak": measured.backlog.peak,
            "at_last_send": measured.backlog.at_last_send,
            "peak_without_first_token": measured.backlog.peak_without_first_token,
        },
    }
    if measured.groups:
        block["groups"] = {name: to_json(group) for name, group in measured.groups.items()}
    return block


def summary_to_json(summary: Summary) -> dict[str, object]:
    """Give a summary in seconds; what is no finite decimal is rounded, and stands exactly under `exact`."""
    ticks = {"mean": summary.mean, **summary.quantiles, "max": summary.max}
    seconds = {name: None if value is None else value / TICKS_PER_SECOND for name, value in ticks.items()}
    exact = get_exact(seconds)
    return {"n": summary.n, "undefined": summary.undefined, **seconds} | ({"exact": exact} if exact else {})


def throughput_to_json(measured: Measured) -> dict[str, object]:
    """Give the rates, and the window they are taken over."""
    rates = {
        "output_tokens_per_s": measured.throughput.output_tokens,
        "total_tokens_per_s": measured.throughput.total_tokens,
        "requests_per_s": measured.throughput.requests,
    }
    window = {"start_s": to_seconds(measured.window.start), "stop_s": to_seconds(measured.window.stop)}
    exact = get_exact(rates)
    return {**rates, "window": window} | ({"exact": exact} if exact else {})


def format_latency(latency: Mapping[str, Summary], unit: str = "s") -> str:
    """Lay out the latency summaries as a table in seconds, or in iterations where time is only counted."""
    header = (f"in {unit}", "n", "undefined", "mean", *next(iter(latency.values())).quantiles, "max")
    rows = [
        (
            NAMES[name],
            f"{each.n:,}",
            f"{each.undefined:,}",
            *map(format_seconds, (each.mean, *each.quantiles.values(), each.max)),
        )
        for name, each in latency.items()
    ]
    return format_table(header, rows)


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
