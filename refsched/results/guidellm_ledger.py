"""Entering GuideLLM's distributions, their percentiles and their confidence intervals."""

import math
from decimal import Decimal

from refsched.results.fields import Fields
from refsched.results.guidellm_distribution import PROBABILITIES, Distribution
from refsched.results.guidellm_intervals import bound_mean, bound_quantile
from refsched.results.ledger import Ledger

SAMPLED = "the file keeps a sample of the requests (sample_size), so this cannot be computed again"
MEAN_RULE = "interval of the mean by Student's t over n - 1"
RANK_RULE = "interval of the quantile between two ranks, by the binomial distribution"
NOTE = "; in the tool's binary doubles, quantiles by cumulative sum, standard deviation over the weights"


def enter(ledger: Ledger, part: Fields, definition: str, again: Distribution, known: bool) -> None:
    """Enter the statistics of one distribution."""
    percentiles = part.find_inside("percentiles")
    unit = get_unit(part.path)
    for name, value in again.statistics.items():
        add_float(ledger, part, name, unit, definition, value if known else None)
    for name, value in again.percentiles.items() if percentiles else ():
        if percentiles is not None:
            add_float(ledger, percentiles, name, unit, definition, value if known else None)


UNITS = (
    ("_ms", "ms"),
    ("requests_per_second", "requests/s"),
    ("request_goodput", "requests/s"),
    ("_per_second", "tokens/s"),
    ("latency", "s"),
    ("delay", "s"),
    ("_token", "tokens"),
)


def get_unit(path: str) -> str:
    """Give the unit of a metric from its name."""
    return next((unit for mark, unit in UNITS if mark in path), "")


def enter_intervals(ledger: Ledger, part: Fields, again: Distribution, level: float, known: bool) -> None:
    """Enter the confidence intervals of one distribution, where the tool gives any."""
    mean, quantiles = part.find_inside("mean_ci"), part.find_inside("percentile_cis")
    for interval in (mean,) if mean else ():
        pair = bound_mean(again.statistics["mean"], again.statistics["std_dev"], len(again.sample), level)
        enter_interval(ledger, interval, MEAN_RULE, pair, known)
    for name in quantiles.data if quantiles else ():
        inside = quantiles.find_inside(name) if quantiles else None
        if inside is not None and name in PROBABILITIES:
            enter_interval(ledger, inside, RANK_RULE, bound_quantile(again.sample, PROBABILITIES[name], level), known)


def enter_interval(
    ledger: Ledger, part: Fields, definition: str, pair: tuple[float, float] | None, known: bool
) -> None:
    """Enter both ends of one interval."""
    ends = pair if pair is not None else (math.nan, math.nan)
    for name, value in zip(("lower", "upper"), ends, strict=True):
        add_float(ledger, part, name, get_unit(part.path), definition, value if known and pair is not None else None)


def add_float(ledger: Ledger, part: Fields, name: str, unit: str, definition: str, value: float | None) -> None:
    """Enter one number; None stands for one that the sample in the file cannot give."""
    if value is None:
        ledger.skip(part, name, unit, definition + NOTE, SAMPLED)
    else:
        ledger.add(part, name, unit, definition + NOTE, Decimal(value))
