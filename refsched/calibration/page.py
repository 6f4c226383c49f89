"""The calibration file: what was measured on what, what was fitted to it, how wrong that is, and where it holds.

Its schema is spec/schema/calibration-1.json. Errors are those of the model as the simulator loads it: integer
coefficients, layers folded in.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from refsched.calibration.forms import Fit, Knots, Regime
from refsched.calibration.samples import Errors, Sample, Step, count_tokens, quantile, split_by_kind, sum_up
from refsched.report.json_text import to_json_text
from refsched.simulation.cost import parse_page
from refsched.simulation.cost_file import CALIBRATION_FORMAT, read_calibration
from refsched.simulation.cost_fitted import FittedCost
from refsched.units import TICKS_PER_SECOND

DIGITS = 7
ALARMS = {"held_out_median": 0.05, "held_out_p95": 0.15, "bias": 0.03, "spread": 0.05}
ABOVE_FLOOR = 0.97  # a time below this share of its floor means that something was counted wrong
MONOTONE = 0.97
Page = dict[str, object]


@dataclass(frozen=True, slots=True)
class Point:
    """Hold one measured point as it stands in the file: seconds of one layer, or of an iteration where layers is 1."""

    use: str  # table | train | held_out
    step: Step
    seconds: float
    spread: float = 0.0
    n: int = 1
    floor_share: float | None = None
    launch_bound: bool = False

    @property
    def sample(self) -> Sample:
        """Give it as the fit sees it."""
        return Sample(self.step.work, self.seconds, self.spread)


@dataclass(frozen=True, slots=True)
class Result:
    """Hold a chosen fit, its errors by use and kind, those of other forms, and the alarms."""

    fit: Fit
    cost: FittedCost
    train: Errors | None
    held_out: Errors | None
    by_kind: Mapping[str, Errors]
    alternatives: Mapping[str, Errors]


def number(value: float) -> float:
    """Round a measured number to what is worth writing down."""
    return float(f"{value:.{DIGITS}g}")


def load_fit(fit: Fit) -> FittedCost:
    """Make the cost model that the simulator would load for this fit, without measured ranges."""
    page = {"schema": CALIBRATION_FORMAT, "device": {}, "fit": fit_to_json(fit), "quality": {"held_out": {}}}
    return read_calibration(parse_page(json.dumps(page), fit.form), fit.form)


def predict(cost: FittedCost, samples: Iterable[Sample]) -> list[float]:
    """Predict each iteration's seconds."""
    return [cost.duration(sample.work) / TICKS_PER_SECOND for sample in samples]


def judge(cost: FittedCost, samples: Sequence[Sample], layers: int = 1) -> Errors | None:
    """Sum up a loaded model's errors over samples that hold `layers` layers' share; None where there are no samples."""
    if not samples:
        return None
    return sum_up(predict(cost, samples), [sample.seconds * layers for sample in samples])


def judge_by_kind(cost: FittedCost, samples: Sequence[Sample], layers: int = 1) -> dict[str, Errors]:
    """Sum up a loaded model's errors by kind of iteration."""
    judged = {kind: judge(cost, part, layers) for kind, part in split_by_kind(samples).items()}
    return {kind: errors for kind, errors in judged.items() if errors is not None}


def make_result(fits: Sequence[Fit], chosen: str | None, train: Sequence[Sample], held_out: Sequence[Sample]) -> Result:
    """Judge all fits, and choose the one asked for or that with the least held-out median error."""
    layers = fits[0].layers
    costs = [(fit, load_fit(fit)) for fit in fits]
    judged = [(fit, cost, judge(cost, held_out or train, layers)) for fit, cost in costs]
    known = [(fit, cost, errors) for fit, cost, errors in judged if errors is not None]
    asked = [each for each in known if each[0].form == chosen] or known
    fit, cost, _ = min(asked, key=lambda each: each[2].median)
    others = {other.form: errors for other, _, errors in known if other is not fit}
    by_kind = judge_by_kind(cost, held_out, layers)
    return Result(fit, cost, judge(cost, train, layers), judge(cost, held_out, layers), by_kind, others)


def find_point_validity(points: Sequence[Point]) -> dict[str, list[int]]:
    """Give the ranges of own points; the table's have no attention, so they count for tokens only."""
    train = [point for point in points if point.use == "train"]
    contexts = [context for point in train for context in point.step.contexts]
    ranges = find_validity([point.sample for point in train], contexts)
    tokens = [point.step.tokens for point in points if point.use != "held_out"]
    return {**ranges, "tokens": [min(tokens), max(tokens)]} if tokens else ranges


def find_validity(samples: Iterable[Sample], contexts: Iterable[int] = ()) -> dict[str, list[int]]:
    """Give the range of each kind that samples cover; every range is marginal: not every corner was measured."""
    works = [sample.work for sample in samples]
    counts = [count for work in works for _, count in work.chunks]
    means = [work.context // work.decodes for work in works if work.decodes]
    ranges = {
        "tokens": [count_tokens(work) for work in works],
        "chunk": counts,
        "history": [start for work in works for start, _ in work.chunks],
        "decode_batch": [work.decodes for work in works if work.decodes],
        "decode_context": [*means, *contexts],
    }
    return {name: [min(values), max(values)] if values else [0, 0] for name, values in ranges.items()}


def find_checks(result: Result, points: Sequence[Point]) -> dict[str, bool]:
    """Sound the alarms: true is well; what could not be looked at is left out."""
    errors = result.held_out
    checks: dict[str, bool] = {}
    if errors is not None:
        checks["held_out_median_ok"] = errors.median <= ALARMS["held_out_median"]
        checks["held_out_p95_ok"] = errors.p95 <= ALARMS["held_out_p95"]
        checks["unbiased"] = abs(errors.bias) <= ALARMS["bias"]
    shares = [point.floor_share for point in points if point.floor_share is not None]
    if shares:
        checks["nothing_below_floor"] = max(shares) <= 1 / ABOVE_FLOOR
    spreads = [point.spread for point in points if point.n > 1]
    if spreads:
        checks["repeat_spread_ok"] = quantile(spreads, 0.9) <= ALARMS["spread"]
        checks["no_launch_bound_point"] = not any(point.launch_bound for point in points)
    checks["table_monotone"] = is_monotone(result.fit.decode_only.table)
    return checks


def is_monotone(table: Knots) -> bool:
    """Tell whether a table nowhere falls by more than 3 %."""
    return all(after >= MONOTONE * before for (_, before), (_, after) in zip(table, table[1:], strict=False))


# TO JSON


def fit_to_json(fit: Fit) -> Page:
    """Give a fit as it stands in the file."""
    return {
        "form": fit.form,
        "unit": "seconds per layer; row_table and overhead_s: seconds per iteration",
        "layers": fit.layers,
        "overhead_s": number(fit.overhead),
        "decode_only": regime_to_json(fit.decode_only),
        "with_prefill": regime_to_json(fit.with_prefill),
        "row_table": knots_to_json(fit.rows),
    }


def regime_to_json(regime: Regime) -> Page:
    """Give a regime: its table, and each coefficient with its interval where one was estimated."""
    coefficients: Page = {}
    for term, value in regime.coefficients.items():
        low, high = regime.intervals.get(term, (value, value))
        coefficients[term] = {"value": number(value), "p5": number(low), "p95": number(high)}
    return {"token_table": knots_to_json(regime.table), "coefficients": coefficients}


def knots_to_json(knots: Knots) -> list[object]:
    """Give a table."""
    return [[count, number(seconds)] for count, seconds in knots]


def point_to_json(point: Point) -> Page:
    """Give a point; its decodes are run-length: [context, how many]."""
    return {
        "use": point.use,
        "prefill": [list(chunk) for chunk in point.step.chunks],
        "decode": run_lengths(point.step.contexts),
        "seconds": number(point.seconds),
        "spread": number(point.spread),
        "n": point.n,
        "floor_share": None if point.floor_share is None else number(point.floor_share),
        "launch_bound": point.launch_bound,
    }


def run_lengths(values: Iterable[int]) -> list[list[int]]:
    """Write equal neighbours once, with their number."""
    runs: list[list[int]] = []
    for value in values:
        if runs and runs[-1][0] == value:
            runs[-1][1] += 1
        else:
            runs.append([value, 1])
    return runs


def errors_to_json(errors: Errors | None) -> Page:
    """Give errors, or an empty object where there was nothing to judge."""
    if errors is None:
        return {}
    return {"n": errors.n} | {name: number(value) for name, value in asdict(errors).items() if name != "n"}


def quality_to_json(result: Result, checks: Mapping[str, bool], spreads: Sequence[float]) -> Page:
    """Give how wrong the model is."""
    median, p90 = (quantile(spreads, share) if spreads else 0.0 for share in (0.5, 0.9))
    return {
        "train": errors_to_json(result.train),
        "held_out": errors_to_json(result.held_out),
        "held_out_by_kind": {kind: errors_to_json(errors) for kind, errors in result.by_kind.items()},
        "alternatives_held_out": {form: errors_to_json(errors) for form, errors in result.alternatives.items()},
        "repeat_spread": {"median": number(median), "p90": number(p90)},
        "largest_relative_rounding": number(float(result.cost.rounding)),
        "checks": dict(checks),
    }


def make_page(result: Result, points: Sequence[Point], parts: Mapping[str, object]) -> Page:
    """Make the whole file; `parts` holds what only the one who measured knows: name, device, workload, model, …"""
    spreads = [point.spread for point in points if point.n > 1]
    return {
        "schema": CALIBRATION_FORMAT,
        **parts,
        "fit": fit_to_json(result.fit),
        "quality": quality_to_json(result, find_checks(result, points), spreads),
        "validity": find_point_validity(points),
        "points": [point_to_json(point) for point in points],
    }


def to_text(page: Mapping[str, object]) -> str:
    """Write a file's text."""
    return to_json_text(page) + "\n"
