"""The forms of a step-time model, and fitting each: what the table is, which terms there are, how many regimes.

- linear in tokens: constant + prefill tokens + decodes; what many simulators use. Kept to show its error.
- linear: the same with KV read by decodes and pairs of prefill attention.
- two-regime knee: iterations with and without prefill fitted apart, the latter with a knee over tokens.
- two-regime: the same beside a measured table over tokens.
- component: a measured table over tokens, and attention terms that are the same in every iteration (kernels run apart).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from refsched.calibration.fit import ROUNDS, bootstrap, fit_relative, get_loss, multiply
from refsched.calibration.samples import Sample, count_tokens
from refsched.model import Work
from refsched.simulation.cost_fitted import TERMS, count_terms

Knots = tuple[tuple[int, float], ...]  # (count, seconds)
Names = tuple[str, ...]
PLACE = {name: place for place, name in enumerate(TERMS)}
TOKENS: Names = ("chunk_token", "decode")
LINEAR: Names = ("chunk_token", "decode", "kv", "pair")
ATTENTION: Names = tuple(TERMS)
DECODES: Names = ("decode_call", "decode", "kv")
KNEE_DECODES: Names = ("decode", "kv")
KNEE_PREFILL: Names = ("chunk", "pair", "history", "decode_call", "decode", "kv")
KNEES = tuple(round(16 * 2 ** (i / 3)) for i in range(22))
BOOTSTRAPS = 100


@dataclass(frozen=True, slots=True)
class Regime:
    """Hold one regime: a table over tokens, each term's seconds, and their intervals (5 % to 95 %)."""

    table: Knots
    coefficients: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Fit:
    """Hold a fitted model in seconds per layer; `rows` is per iteration, over the sequences that sample."""

    form: str
    decode_only: Regime
    with_prefill: Regime
    rows: Knots = ((1, 0.0),)
    layers: int = 1
    overhead: float = 0.0


@dataclass(frozen=True, slots=True)
class Measured:
    """Hold what was measured apart from whole iterations: token-wise work, and logits by sequences; in seconds."""

    table: Knots
    rows: Knots = ((1, 0.0),)
    layers: int = 1

    def known(self, work: Work) -> float:
        """Give the part of one layer's time that needs no fitting; what runs once is shared out over the layers."""
        once = interpolate(self.rows, len(work.chunks) + work.decodes) / self.layers
        return interpolate(self.table, count_tokens(work)) + once


def interpolate(knots: Knots, count: int) -> float:
    """Interpolate linearly; the first value below, the last value's slope is not continued above."""
    for (low, before), (high, after) in zip(knots, knots[1:], strict=False):
        if count <= high:
            return before if count <= low else before + (after - before) * (count - low) / (high - low)
    return knots[-1][1] if count >= knots[-1][0] else knots[0][1]


def fit_component(samples: Sequence[Sample], measured: Measured, seed: int = 0) -> Fit:
    """Fit the attention terms over all iterations at once, beside a measured table."""
    regime = fit_terms(samples, ATTENTION, measured, seed)
    return Fit("component", regime, regime, measured.rows, measured.layers)


def fit_two_regimes(samples: Sequence[Sample], measured: Measured, seed: int = 0) -> Fit:
    """Fit iterations with and without prefill apart, beside a measured table; a regime without points is the other."""
    decodes, prefills = split_regimes(samples)
    found = [
        fit_terms(part, terms, measured, seed) for part, terms in ((decodes, DECODES), (prefills, ATTENTION)) if part
    ]
    return Fit("two-regime", found[0], found[-1], measured.rows, measured.layers)


def fit_knees(samples: Sequence[Sample], seed: int = 0) -> Fit:
    """Fit iterations with and without prefill apart, the knee of the latter by search over whole iterations."""
    decodes, prefills = split_regimes(samples)
    found = [fit_ramp(decodes, (0,), KNEE_DECODES, seed)] if decodes else []
    if prefills:
        found.append(fit_ramp(prefills, find_knee(prefills), KNEE_PREFILL, seed))
    return Fit("two-regime knee", found[0], found[-1])


def find_knee(samples: Sequence[Sample]) -> tuple[int, ...]:
    """Find the knots of the ramp with the smallest loss: none, or one knee below the largest iteration."""
    most = max(count_tokens(sample.work) for sample in samples)
    ramps = [(0,), *((0, knee, most) for knee in KNEES if knee < most)]
    return min(ramps, key=lambda ramp: get_ramp_loss(samples, ramp, KNEE_PREFILL))


def fit_linear(samples: Sequence[Sample], seed: int = 0, terms: Names = LINEAR) -> Fit:
    """Fit one linear model to all iterations."""
    regime = fit_ramp(samples, (0,), terms, seed)
    return Fit("linear" if terms == LINEAR else "linear in tokens", regime, regime)


def fit_linear_in_tokens(samples: Sequence[Sample], seed: int = 0) -> Fit:
    """Fit constant + prefill tokens + decodes."""
    return fit_linear(samples, seed, TOKENS)


def split_regimes(samples: Sequence[Sample]) -> tuple[list[Sample], list[Sample]]:
    """Split samples into iterations of decodes only and iterations with prefill."""
    decodes = [sample for sample in samples if not sample.work.chunks]
    return decodes, [sample for sample in samples if sample.work.chunks]


# ONE REGIME


def fit_terms(samples: Sequence[Sample], terms: Names, measured: Measured, seed: int) -> Regime:
    """Fit the terms beside a measured table."""
    rows = [take_terms(sample.work, terms) for sample in samples]
    known = [measured.known(sample.work) for sample in samples]
    found, intervals = fit_rows(rows, [sample.seconds for sample in samples], known, seed)
    return Regime(measured.table, dict(zip(terms, found, strict=True)), dict(zip(terms, intervals, strict=True)))


def fit_ramp(samples: Sequence[Sample], knots: tuple[int, ...], terms: Names, seed: int) -> Regime:
    """Fit the terms, and with them a table that rises from knot to knot; its first value is a constant."""
    rows = make_ramp_rows(samples, knots, terms)
    seconds = [sample.seconds for sample in samples]
    found, intervals = fit_rows(rows, seconds, [0.0] * len(rows), seed)
    table = make_table(knots, found[: len(knots)])
    return Regime(
        table,
        dict(zip(terms, found[len(knots) :], strict=True)),
        dict(zip(terms, intervals[len(knots) :], strict=True)),
    )


def fit_rows(
    rows: list[list[float]], seconds: list[float], known: list[float], seed: int
) -> tuple[list[float], list[tuple[float, float]]]:
    """Fit, and fit again to drawn points for the intervals."""

    def refit(places: Sequence[int]) -> list[float]:
        times, parts = [seconds[place] for place in places], [known[place] for place in places]
        return fit_relative([rows[place] for place in places], times, parts, rounds=1)

    return fit_relative(rows, seconds, known, ROUNDS), bootstrap(refit, len(rows), BOOTSTRAPS, seed)


def take_terms(work: Work, terms: Names) -> list[float]:
    """Count the chosen terms of an iteration."""
    counts = count_terms(work)
    return [float(counts[PLACE[name]]) for name in terms]


def make_ramp_rows(samples: Sequence[Sample], knots: tuple[int, ...], terms: Names) -> list[list[float]]:
    """Give each iteration's part in every segment of the table, and its terms."""
    return [[*spread_over(count_tokens(each.work), knots), *take_terms(each.work, terms)] for each in samples]


def spread_over(count: int, knots: tuple[int, ...]) -> list[float]:
    """Give 1, and for each segment between knots the part of it that lies below `count`."""
    return [1.0, *(float(max(0, min(count, high) - low)) for low, high in zip(knots, knots[1:], strict=False))]


def make_table(knots: tuple[int, ...], found: Sequence[float]) -> Knots:
    """Turn a first value and slopes into a table."""
    values = [found[0]]
    for low, high, slope in zip(knots, knots[1:], found[1:], strict=False):
        values.append(values[-1] + slope * (high - low))
    return tuple(zip(knots, values, strict=True))


def get_ramp_loss(samples: Sequence[Sample], knots: tuple[int, ...], terms: Names) -> float:
    """Fit roughly and give the loss, to compare knots."""
    rows, seconds = make_ramp_rows(samples, knots, terms), [sample.seconds for sample in samples]
    found = fit_relative(rows, seconds, [0.0] * len(rows), rounds=2)
    return get_loss([multiply(row, found) / time - 1 for row, time in zip(rows, seconds, strict=True)])


WITHOUT_TABLE: Mapping[str, Callable[[Sequence[Sample], int], Fit]] = {
    "two-regime knee": fit_knees,
    "linear": fit_linear,
    "linear in tokens": fit_linear_in_tokens,
}
WITH_TABLE: Mapping[str, Callable[[Sequence[Sample], Measured, int], Fit]] = {
    "component": fit_component,
    "two-regime": fit_two_regimes,
}
FORMS = (*WITH_TABLE, *WITHOUT_TABLE)


def fit_all(samples: Sequence[Sample], measured: Measured | None = None, layers: int = 1, seed: int = 0) -> list[Fit]:
    """Fit every form that the measurements allow; samples hold the share of one of `layers` layers."""
    beside = [] if measured is None else [fit(samples, measured, seed) for fit in WITH_TABLE.values()]
    return beside + [replace(fit(samples, seed), layers=layers) for fit in WITHOUT_TABLE.values()]
