"""Quantiles that keep what failed in view: a request without an answer waited at least until it was given up.

A quantile lies between two bounds: with every failure counted at the time until which it was watched, and with every
failure counted as infinite.
"""

from dataclasses import dataclass
from fractions import Fraction

from refsched.metrics.columns import COMPLETED, OUTCOMES, Columns
from refsched.metrics.compact import MISSING
from refsched.metrics.population import Population, make_runs
from refsched.metrics.quantile import compute_nearest_rank
from refsched.record import Outcome
from refsched.units import Ticks

WITHOUT_ANSWER = {
    OUTCOMES.index(outcome) for outcome in (Outcome.ERROR, Outcome.TIMEOUT, Outcome.CANCELLED, Outcome.UNFINISHED)
}


@dataclass(frozen=True, slots=True)
class Bounds:
    """Hold between what a quantile lies; `most` is None where it has no finite bound."""

    least: Fraction
    most: Fraction | None


@dataclass(frozen=True, slots=True)
class Censored:
    """Hold the latencies of completed requests, and for how long each failed one was watched."""

    answered: Population
    watched: Population

    @property
    def n(self) -> int:
        """Count both."""
        return self.answered.n + self.watched.n

    def compute_bounds(self, p: Fraction) -> Bounds | None:
        """Bound the nearest-rank quantile p; None where there is no request."""
        if not self.n:
            return None
        rank = max(1, -(-self.n * p.numerator // p.denominator))
        least = compute_nearest_rank(Population(runs=[*self.answered.runs, *self.watched.runs]), p)
        return Bounds(least, self.answered.at(rank) if rank <= self.answered.n else None)


def censor(columns: Columns, start: str, stop: str) -> Censored:
    """Split a latency into what was answered and how long the rest was watched: to its end or its timeout."""
    rows = zip(columns.outcomes, *map(columns.get, (start, stop, "ended", "timeout", "sent")), strict=True)
    answered: list[Ticks] = []
    watched: list[Ticks] = []
    for code, since, to, ended, timeout, sent in rows:
        if since == MISSING:
            continue
        if code == COMPLETED and to != MISSING:
            answered.append(to - since)
        elif code in WITHOUT_ANSWER:
            until = ended if ended != MISSING else sent + timeout if MISSING not in (sent, timeout) else since
            watched.append(max(until - since, 0))
    return Censored(Population(runs=make_runs(answered)), Population(runs=make_runs(watched)))
