"""The parts of a measured block as JSON: seconds and rates as numbers, and under `exact` what is no finite decimal."""

from collections.abc import Mapping
from dataclasses import asdict
from decimal import Decimal
from fractions import Fraction

from refsched.metrics.confidence import Interval
from refsched.metrics.failures import Bounds
from refsched.metrics.fidelity import Fidelity
from refsched.metrics.goodput import Attainment, Goodput
from refsched.metrics.measure import Across, Means, Measured, Summary, WholeRun
from refsched.metrics.stalls import Deadlines, Playback, Stalls
from refsched.metrics.steady import ColdStart, InWindow, Steadiness
from refsched.metrics.window import Window
from refsched.report.json_text import format_number
from refsched.units import TICKS_PER_SECOND, format_decimal, to_seconds

Json = dict[str, object]
Number = Fraction | int | None
DIGITS = 17


def with_exact(values: Mapping[str, Number]) -> Json:
    """Give numbers, and beside them as text the rationals among them that are no finite decimal."""
    exact = {
        name: exact_text(value)
        for name, value in values.items()
        if isinstance(value, Fraction) and format_decimal(value) is None
    }
    return {**values} | ({"exact": exact} if exact else {})


def exact_text(value: Fraction) -> str:
    """Write a rational of any length; str() stops at 4,300 digits."""
    return f"{Decimal(value.numerator):f}/{Decimal(value.denominator):f}"


def in_seconds(ticks: Number) -> Fraction | None:
    """Turn ticks into seconds, leaving None."""
    return None if ticks is None else Fraction(ticks) / TICKS_PER_SECOND


def seconds_of(ticks: Mapping[str, Number]) -> Json:
    """Give ticks as seconds, exactly."""
    return with_exact({name: in_seconds(value) for name, value in ticks.items()})


def divide(part: int, whole: int) -> Fraction | None:
    """Give a share, None of nothing."""
    return Fraction(part, whole) if whole else None


def take_root(square: Fraction | None) -> Decimal | None:
    """Give a square root to 17 digits; only for reading, since it is rarely a rational."""
    return None if square is None else Decimal(format_number(square)).sqrt()


def summary_to_json(summary: Summary) -> Json:
    """Give a summary in seconds."""
    ticks = {"mean": summary.mean, **summary.quantiles, "max": summary.max}
    return {"n": summary.n, "undefined": summary.undefined, **seconds_of(ticks)}


def populations_to_json(measured: Measured) -> Json:
    """Give every population under its canonical name, with the definition of its quantiles."""
    return {name: summary_to_json(each) | {"method": measured.method} for name, each in measured.populations.items()}


def confidence_to_json(measured: Measured) -> Json:
    """Give the bounds of each quantile, and what too small a sample would need."""
    return {
        name: {label: interval_to_json(interval, each.n) for label, interval in each.intervals.items()}
        for name, each in measured.populations.items()
        if each.intervals
    }


def interval_to_json(interval: Interval, n: int) -> Json:
    """Give one interval; null where the sample has no such bound."""
    bounds = seconds_of({"lower": interval.lower, "upper": interval.upper})
    few = {"too_few_samples": f"{n} of {interval.needed} needed"} if n < interval.needed else {}
    return {"level": interval.level, **bounds} | few


def means_to_json(means: Mapping[str, Means]) -> Json:
    """Give the three means of each time per token."""
    return {name: seconds_of(asdict(each)) for name, each in means.items()}


def failures_to_json(failures: Mapping[str, Mapping[str, Bounds]]) -> Json:
    """Give between what each quantile lies when failures count; null where it has no finite bound."""
    return {
        name: {label: seconds_of({"at_least": each.least, "at_most": each.most}) for label, each in bounds.items()}
        for name, bounds in failures.items()
    }


def goodput_to_json(goodput: Goodput) -> Json:
    """Give goodput with its policy and how each condition fared."""
    policy = asdict(goodput.policy) | {"joint": True}
    rates: dict[str, Number] = {
        "attainment": goodput.share,
        "requests_per_s": goodput.per_second,
        "tokens_per_s": goodput.good_tokens_per_second,
    }
    name = f"goodput.joint.{goodput.policy.not_applicable}.{goodput.policy.denominator}"
    conditions = [attainment_to_json(each) for each in goodput.conditions]
    return {"name": name, "policy": policy, "good": goodput.good, "of": goodput.of, **with_exact(rates)} | {
        "slos": conditions,
        "warnings": [each["warning"] for each in conditions if "warning" in each],
    }


def attainment_to_json(each: Attainment) -> Json:
    """Give how one condition fared."""
    shares = with_exact({"attainment": divide(each.met, each.met + each.missed)})
    counts = {name: getattr(each, name) for name in ("met", "missed", "not_applicable", "unknown")}
    page: Json = {"name": each.slo.name, "at_most_s": to_seconds(each.slo.most), **counts, **shares}
    return page | ({"warning": f"{each.slo.name}: {each.warning}"} if each.warning else {})


def stalls_to_json(stalls: Stalls) -> Json:
    """Give the gaps above a threshold."""
    shares = {"share_of_requests": divide(stalls.requests, stalls.of), "share_of_decode": stalls.share_of_decode}
    counts: Json = {"requests": stalls.requests, "of": stalls.of, "gaps": stalls.gaps}
    return {"above_s": to_seconds(stalls.threshold), **counts, **with_exact(shares)}


def playback_to_json(playback: Playback) -> Json:
    """Give how readers at a steady rate fared."""
    times = seconds_of({"waited_together": playback.waited, "waited_at_most": playback.longest})
    counts: Json = {"requests": playback.requests, "of": playback.of, "waits": playback.waits}
    shares = with_exact({"share_of_requests": divide(playback.requests, playback.of)})
    return {"tokens_per_s": playback.per_second, **counts, **shares, "times_s": times}


def deadlines_to_json(deadlines: Deadlines) -> Json:
    """Give the deadlines met and missed."""
    counts: Json = {"met": deadlines.met, "missed": deadlines.missed}
    return counts | with_exact({"miss_rate": deadlines.miss_rate})


def window_to_json(window: Window | None) -> Json | None:
    """Give a window in seconds on the clock of the run."""
    return None if window is None else {"start_s": to_seconds(window.start), "stop_s": to_seconds(window.stop)}


def across_to_json(across: Across) -> Json:
    """Give the rates over their window, and the requests in the system."""
    return {
        "throughput": throughput_to_json(across),
        "backlog": asdict(across.backlog),
    }


def throughput_to_json(across: Across) -> Json:
    """Give the rates, the window they are taken over, and the rule by which requests belong to it."""
    rates, where = across.throughput, "T_all" if across.rule is None else "W"
    values: dict[str, Number] = {
        "output_tokens_per_s": rates.output_tokens,
        "total_tokens_per_s": rates.total_tokens,
        "requests_per_s": rates.requests,
        "delivered_tokens_per_s": rates.delivered_tokens,
    }
    names = {f"tput.completed/{where}": "output_tokens_per_s", f"tput.delivered/{where}": "delivered_tokens_per_s"}
    window = window_to_json(across.window) or {}
    if across.rule is not None:
        window["rule"] = across.rule
    return {**with_exact(values), "window": window, "definitions": names}


def run_to_json(run: WholeRun) -> Json:
    """Give what is said of a whole run."""
    return {
        "fidelity": fidelity_to_json(run.fidelity),
        "steadiness": steadiness_to_json(run.steadiness),
        "cold_start": None if run.cold_start is None else cold_start_to_json(run.cold_start),
        "windows": {name: in_window_to_json(each) for name, each in run.windows.items()},
    }


def fidelity_to_json(fidelity: Fidelity) -> Json:
    """Give what became of the plan of sends."""
    lag = fidelity.lag
    times: dict[str, Number] = dict.fromkeys(("mean", "p50", "p99", "max"))
    if lag.n:
        ranks = {"p50": -(-lag.n // 2), "p99": -(-lag.n * 99 // 100), "max": lag.n}
        times |= {"mean": lag.mean()} | {name: lag.at(rank) for name, rank in ranks.items()}
    rates: dict[str, Number] = {
        "intended_per_s": fidelity.intended_rate,
        "achieved_per_s": fidelity.achieved_rate,
        "lag_trend": fidelity.trend,
    }
    cvs = {"intended": take_root(fidelity.intended_cv2), "achieved": take_root(fidelity.achieved_cv2)}
    return {
        "verdict": fidelity.verdict,
        "planned": fidelity.planned,
        "sent": fidelity.sent,
        "dropped": fidelity.dropped,
        "late": fidelity.late,
        "tolerance_s": to_seconds(fidelity.tolerance),
        "cap": fidelity.cap,
        **with_exact(rates),
        "lag_s": {"n": lag.n, **seconds_of(times), "method": "nearest-rank"},
        "gap_cv": {name: None if root is None else Fraction(root) for name, root in cvs.items()},
        "gap_cv_squared": with_exact({"intended": fidelity.intended_cv2, "achieved": fidelity.achieved_cv2}),
    }


def steadiness_to_json(steadiness: Steadiness) -> Json:
    """Give ramp and drain, and whether the time between them was steady."""
    return {
        "verdict": steadiness.verdict,
        "window": window_to_json(steadiness.window),
        "ramp_s": in_seconds(steadiness.ramp),
        "drain_s": in_seconds(steadiness.drain),
        "arrivals": steadiness.arrivals,
        "departures": steadiness.departures,
        "growth": steadiness.growth,
        **with_exact({"utilisation": steadiness.utilisation}),
    }


def cold_start_to_json(cold: ColdStart) -> Json:
    """Give the requests sent before the first one ended, apart from the rest."""
    means = seconds_of({"ttft_mean_burst": cold.ttft_burst, "ttft_mean_rest": cold.ttft_rest})
    share = divide(cold.burst, cold.offered)
    page: Json = {"burst": cold.burst, "of": cold.offered, **with_exact({"share": share}), "mean_s": means}
    if share is not None and cold.burst < cold.offered and share >= Fraction(1, 100):
        page["note"] = "the start burst is 1 % of all requests or more: it can be the whole p99"
    return page


def in_window_to_json(each: InWindow) -> Json:
    """Give what each rule attributes to a window, the rates, and the p99 of the first wait."""
    seconds = each.window.seconds()
    rates: dict[str, Number] = {rule: count / seconds if seconds else None for rule, count in each.requests.items()}
    tokens = {"delivered_tokens_per_s": each.tokens / seconds if seconds else None}
    return {
        "window": window_to_json(each.window),
        "requests": dict(each.requests),
        "requests_per_s": with_exact(rates),
        "tokens": each.tokens,
        **with_exact(tokens),
        "ttft_any_p99_start_in": seconds_of({"s": each.ttft_p99}),
    }
