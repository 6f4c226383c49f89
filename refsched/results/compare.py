"""Two runs side by side: a difference counts only where the intervals of both lie apart."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from refsched.metrics.measure import Summary
from refsched.results.reference import Reference

NOT_RESOLVED = "not resolved"
TOO_FEW = "not resolved: too few values for an interval"


@dataclass(frozen=True, slots=True)
class Side:
    """Hold one run's value in ticks, and the interval that holds the true one with 95 % confidence."""

    n: int
    value: Fraction
    lower: Fraction | None
    upper: Fraction | None


@dataclass(frozen=True, slots=True)
class Difference:
    """Hold one quantity of two runs, and which is lower, if the data can tell."""

    name: str
    statistic: str
    first: Side
    second: Side
    verdict: str


def compare(first: Reference, second: Reference) -> Iterator[Difference]:
    """Compare the quantiles that both runs have, by their order-statistic intervals."""
    for name, one in first.populations.items():
        other = second.populations.get(name)
        for statistic in one.intervals if other is not None else ():
            if other is not None and statistic in other.intervals:
                sides = make_side(one, statistic), make_side(other, statistic)
                if sides[0] is not None and sides[1] is not None:
                    yield Difference(name, statistic, sides[0], sides[1], judge(sides[0], sides[1]))


def make_side(summary: Summary, statistic: str) -> Side | None:
    """Take one quantile and its interval."""
    value, interval = summary.quantiles[statistic], summary.intervals[statistic]
    return None if value is None else Side(summary.n, value, interval.lower, interval.upper)


def judge(first: Side, second: Side) -> str:
    """Say which is lower: only where the intervals do not meet."""
    if first.upper is not None and second.lower is not None and first.upper < second.lower:
        return "first is lower"
    if second.upper is not None and first.lower is not None and second.upper < first.lower:
        return "second is lower"
    bounds = (first.lower, first.upper, second.lower, second.upper)
    return TOO_FEW if None in bounds else NOT_RESOLVED


def change(difference: Difference) -> Decimal | None:
    """Give the change from the first to the second in percent, for reading."""
    before, after = difference.first.value, difference.second.value
    return None if not before else Decimal(round((after - before) / before * 1000)) / 10
