"""GuideLLM's distributions, in the tool's own binary doubles.

Its times are epoch seconds as doubles, whose steps are 0.24 µs, and its quantiles come from a cumulative sum of
doubles; exact arithmetic would give other ranks and other rates.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

PROBABILITIES = {
    "p001": 0.001,
    "p01": 0.01,
    "p05": 0.05,
    "p10": 0.1,
    "p25": 0.25,
    "p50": 0.5,
    "p75": 0.75,
    "p90": 0.9,
    "p95": 0.95,
    "p99": 0.99,
    "p999": 0.999,
}
LEAST = 1e-6  # weights that sum to less than this are all taken as equal; also the least length of a last interval
NEAR = 1e-4  # events closer than this, in seconds, are one event
Weighted = Sequence[tuple[float, float]]
Statistics = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Distribution:
    """Hold the statistics of one distribution under the tool's names."""

    statistics: Statistics
    percentiles: Statistics
    sample: Sequence[float] = ()  # the values in order, where each has the weight 1


def summarise(pairs: Weighted, count: int | None = None) -> Distribution:
    """Summarise values with weights; an empty sample has 0 everywhere."""
    weights: dict[float, float] = {}
    for value, weight in sorted(pairs, key=lambda pair: pair[0]):
        weights[value] = weights.get(value, 0.0) + weight
    if count is None:
        count = round(math.fsum(weight for _, weight in pairs))
    kept = {value: weight for value, weight in weights.items() if weight > 0}
    if not kept:
        return make_empty(count if pairs else 0)
    total = math.fsum(kept.values())
    if total <= LEAST:
        kept, total = dict.fromkeys(kept, 1.0), float(len(kept))
    plain = all(weight == 1.0 for _, weight in pairs)
    sample = sorted(value for value, _ in pairs) if plain else ()
    return replace(summarise_shares(list(kept), [weight / total for weight in kept.values()], count), sample=sample)


def make_empty(count: int) -> Distribution:
    """Give the statistics of no values at all."""
    names = ("mean", "median", "mode", "variance", "std_dev", "min", "max", "total_sum")
    return Distribution(dict.fromkeys(names, 0.0) | {"count": float(count)}, dict.fromkeys(PROBABILITIES, 0.0))


def summarise_shares(values: Sequence[float], shares: Sequence[float], count: int) -> Distribution:
    """Summarise distinct values in ascending order with their shares."""
    upto = list(accumulate(shares))
    places = {name: min(bisect_left(upto, p), len(values) - 1) for name, p in PROBABILITIES.items()}
    percentiles = {name: values[place] for name, place in places.items()}
    mean = math.fsum(value * share for value, share in zip(values, shares, strict=True))
    variance = math.fsum((value - mean) ** 2 * share for value, share in zip(values, shares, strict=True))
    statistics = {
        "mean": mean,
        "median": percentiles["p50"],
        "mode": values[shares.index(max(shares))],
        "variance": variance,
        "std_dev": math.sqrt(variance),
        "min": values[0],
        "max": values[-1],
        "count": float(count),
        "total_sum": mean * count,
    }
    return Distribution(statistics, percentiles)


def merge_near(events: Weighted) -> list[tuple[float, float]]:
    """Merge events that follow the first of their group within a tenth of a millisecond."""
    at: dict[float, float] = {}
    for time, weight in sorted(events, key=lambda event: event[0]):
        at[time] = at.get(time, 0.0) + weight
    times = list(at)
    merged: list[tuple[float, float]] = []
    place = 0
    while place < len(times):
        stop = find_group_end(times, place)
        merged.append((times[place], sum(at[time] for time in times[place:stop])))
        place = stop
    return merged


def find_group_end(times: Sequence[float], place: int) -> int:
    """Find where the group that starts at `place` ends: at a gap to its neighbour, or too far from its first."""
    stop = place + 1
    limit = bisect_right(times, times[place] + NEAR)
    while stop < limit and times[stop] - times[stop - 1] <= NEAR:
        stop += 1
    return stop


def summarise_rate(events: Weighted, start: float | None, end: float | None) -> Distribution:
    """Summarise events per second: each event's weight over the time from midway before it to midway after it."""
    inside = [event for event in events if (start is None or event[0] >= start) and (end is None or event[0] <= end)]
    edges = [(time, 0.0) for time in (start, end) if time is not None]
    merged = merge_near([*edges[:1], *inside, *edges[1:]])
    if len(merged) <= 1:
        return summarise([], len(merged))
    times = [time for time, _ in merged]
    middles = [(after + before) / 2 for before, after in pairwise(times)]
    inner = [after - before for before, after in pairwise(middles)]
    spans = [middles[0] - times[0], *inner, max(times[-1] - middles[-1], LEAST)]
    rates = [(weight / span, span) for (_, weight), span in zip(merged, spans, strict=True)]
    return summarise(rates, round(math.fsum(weight for _, weight in merged)))


def summarise_concurrency(
    spans: Sequence[tuple[float, float, float]], start: float | None, end: float | None
) -> Distribution:
    """Summarise how much is under way at once, weighted by time; each span counts with its weight."""
    kept = [s for s in spans if (start is None or s[1] >= start) and (end is None or s[0] <= end)]
    changes = merge_near([*((s[0], s[2]) for s in kept), *((s[1], -s[2]) for s in kept)])
    changes = cut_window(changes, start, end) if changes else changes
    levels = [max(level, 0.0) for level in accumulate(change for _, change in changes)]
    if len(levels) <= 1:
        return summarise([(levels[0], 1.0)] if kept else [])
    lengths = [max(after[0] - before[0], 0.0) for before, after in pairwise(changes)]
    pieces = list(zip(levels[:-1], lengths, strict=True))
    return summarise(pieces if any(lengths) else [], len(kept))


def cut_window(changes: Weighted, start: float | None, end: float | None) -> list[tuple[float, float]]:
    """Cut a sequence of changes at the window's ends."""
    kept = list(changes)
    if start is not None:
        place = bisect_left(kept, start, key=lambda change: change[0])
        kept = [(start, sum(change for _, change in kept[:place])), *kept[place:]]
    if end is not None:
        place = bisect_right(kept, end, key=lambda change: change[0])
        kept = [*kept[:place], (end, 0.0)]
    return kept
