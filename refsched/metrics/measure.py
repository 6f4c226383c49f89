"""One block of numbers for any set of Records, whoever made them.

Latency populations are taken over completed requests; all others are counted by outcome and stay visible [B11].
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from refsched.metrics import latency
from refsched.metrics.quantile import DEFAULT_METHOD, Population, Value, compute_quantile, count_values
from refsched.metrics.throughput import Backlog, Throughput, Window, compute_backlog, compute_throughput, get_window
from refsched.record import Outcome, Record

QUANTILES = {"p50": Fraction(1, 2), "p90": Fraction(9, 10), "p95": Fraction(19, 20), "p99": Fraction(99, 100)}


@dataclass(frozen=True, slots=True)
class Summary:
    """Summarise a population in ticks; `undefined` counts the requests that have no such value."""

    n: int
    undefined: int
    mean: Fraction | None
    quantiles: Mapping[str, Fraction | None]
    max: Fraction | None


@dataclass(frozen=True, slots=True)
class Measured:
    """Hold the block: counts by outcome, latency summaries by name, rates, backlog, and the same by group [A13]."""

    method: str
    window: Window
    counts: Mapping[str, int]
    latency: Mapping[str, Summary]
    throughput: Throughput
    backlog: Backlog
    groups: Mapping[str, "Measured"]


def measure(records: Sequence[Record], method: str = DEFAULT_METHOD) -> Measured:
    """Measure `records` and each of their groups; raise InputError for an unknown definition of quantiles.

    Every group is measured over the window of the whole run.
    """
    names = sorted({record.group for record in records})
    window = get_window(records)
    groups = {name: [record for record in records if record.group == name] for name in names if names != [""]}
    parts = {name: measure_part(part, method, window, {}) for name, part in groups.items()}
    return measure_part(records, method, window, parts)


def measure_part(records: Sequence[Record], method: str, window: Window, groups: Mapping[str, Measured]) -> Measured:
    """Measure some records over a given window."""
    return Measured(
        method=method,
        window=window,
        counts=count_outcomes(records),
        latency=summarise_latency([record for record in records if record.outcome is Outcome.COMPLETED], method),
        throughput=compute_throughput(records, window),
        backlog=compute_backlog(records),
        groups=groups,
    )


def count_outcomes(records: Sequence[Record]) -> dict[str, int]:
    """Count what was offered and how each request ended."""
    counts = {"offered": len(records)} | {outcome.value: 0 for outcome in Outcome}
    for record in records:
        counts[record.outcome.value] += 1
    return counts


def summarise_latency(completed: Sequence[Record], method: str) -> dict[str, Summary]:
    """Summarise the five populations of completed requests [A8, A9, A12, B13]."""
    gaps = latency.Gaps()
    single = Population(gaps.count(completed))
    without_gaps = sum(len(record.deliveries) < 2 for record in completed)
    return {
        "ttft": summarise_each(map(latency.compute_ttft, completed), method),
        "tpot": summarise_each(map(latency.compute_tpot, completed), method),
        "gap": summarise(single, without_gaps, method),
        "longest_gap": summarise_each(map(gaps.longest, completed), method),
        "total": summarise_each(map(latency.compute_total, completed), method),
    }


def summarise_each(values: Iterable[Value | None], method: str) -> Summary:
    """Summarise one value per request, counting those that are undefined."""
    every = list(values)
    defined = [value for value in every if value is not None]
    return summarise(Population(count_values(defined)), len(every) - len(defined), method)


def summarise(population: Population, undefined: int, method: str) -> Summary:
    """Summarise a population; an empty one has neither mean nor quantiles."""
    if population.n == 0:
        return Summary(0, undefined, None, dict.fromkeys(QUANTILES), None)
    quantiles = {name: compute_quantile(population, p, method) for name, p in QUANTILES.items()}
    return Summary(population.n, undefined, population.mean(), quantiles, Fraction(population.values[-1]))
