"""What a server exports about itself: histograms read as bounds, never as more than their buckets say [A7, A24].

A quantile of a histogram is known only to lie between two edges; in the overflow bucket it has no upper one. Two
scrapes are subtracted; where a counter went down, the server was restarted between them and the later scrape stands
for itself.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Protocol, cast

from refsched.errors import InputError
from refsched.extras import MissingPackage
from refsched.results.load import decode, open_bytes

Edge = Fraction | None  # None: +inf
PREFIXES = ("vllm:", "sglang:")
HISTOGRAMS: Mapping[str, str] = {
    "time_to_first_token_seconds": "ttft",
    "inter_token_latency_seconds": "itl",
    "request_time_per_output_token_seconds": "tpot",
    "time_per_output_token_seconds": "tpot",
    "e2e_request_latency_seconds": "e2e",
    "request_queue_time_seconds": "queue",
    "queue_time_seconds": "queue",
    "request_prefill_time_seconds": "prefill",
    "request_decode_time_seconds": "decode",
    "request_inference_time_seconds": "inference",
}
MEANINGS: Mapping[str, str] = {
    "ttft": "from arrival at the server to its first output",
    "itl": "vllm: one value for each engine output, whatever tokens it has; sglang: one for each token",
    "tpot": "decode time / (n - 1); vllm enters 0 for outputs of one token",
    "e2e": "from arrival at the server to the last output",
    "queue": "from arrival to being scheduled",
    "prefill": "from being scheduled to the first output",
    "decode": "from the first output to the last",
    "inference": "from being scheduled to the last output",
}
USAGE = ("kv_cache_usage_perc", "gpu_cache_usage_perc", "token_usage")
PARTS = ("queue", "prefill", "decode")


class Sample(Protocol):
    """Be one line of the parser's output."""

    name: str
    labels: Mapping[str, str]
    value: float


class Family(Protocol):
    """Be one metric of the parser's output."""

    name: str
    type: str
    samples: Iterable[Sample]


@dataclass(frozen=True, slots=True)
class Histogram:
    """Hold cumulative counts up to each edge, the last edge being +inf, and the sum of all values."""

    edges: tuple[Edge, ...]
    upto: tuple[int, ...]
    total: Fraction

    @property
    def n(self) -> int:
        """Give the number of values."""
        return self.upto[-1]

    def mean(self) -> Fraction | None:
        """Give the exact mean, which the sum allows."""
        return self.total / self.n if self.n else None

    def bound(self, p: Fraction) -> tuple[Fraction, Edge] | None:
        """Bound the quantile p of nearest rank: above one edge, and at most the next; None for an empty histogram."""
        if not self.n:
            return None
        rank = max(1, ceil(p * self.n))
        place = next(i for i, count in enumerate(self.upto) if count >= rank)
        lower = self.edges[place - 1] if place else Fraction(0)
        return lower if lower is not None else Fraction(0), self.edges[place]

    def share_above(self, edge: Fraction) -> Fraction | None:
        """Give the share of values above an edge; None where it is no edge, or there are no values."""
        if edge not in self.edges or not self.n:
            return None
        return 1 - Fraction(self.upto[self.edges.index(edge)], self.n)


@dataclass(frozen=True, slots=True)
class Scrape:
    """Hold what one scrape says, by name without the engine's prefix; replicas are added up."""

    file: str
    histograms: Mapping[str, Histogram]
    counters: Mapping[str, Fraction]
    gauges: Mapping[str, Fraction]
    resets: tuple[str, ...] = field(default=())


def get_parser() -> Callable[[str], Iterable[Family]]:
    """Find the parser of prometheus-client; raise MissingPackage where it is not installed."""
    try:
        from prometheus_client.parser import text_string_to_metric_families
    except ImportError:
        raise MissingPackage("prometheus-client", "read server metrics", "server-metrics") from None
    return cast(Callable[[str], Iterable[Family]], text_string_to_metric_families)  # its classes have no strict types


def read_scrape(path: str) -> Scrape:
    """Read one scrape, plain or gzipped; raise InputError for what is none, or of no known engine."""
    parse = get_parser()
    with open_bytes(Path(path)) as file:
        text = decode(file.read(), path, None)
    try:
        families = list(parse(text))
    except (ValueError, KeyError, IndexError):
        raise InputError("is not in the Prometheus text format", file=path) from None
    known = [family for family in families if family.name.startswith(PREFIXES)]
    if not known:
        raise InputError(f"has no metric that begins with {' or '.join(PREFIXES)}", file=path)
    return sort_families(known, path)


def sort_families(families: Iterable[Family], path: str) -> Scrape:
    """Sort metrics by their type."""
    histograms, counters, gauges = {}, {}, {}
    for family in families:
        name = family.name.partition(":")[2]
        if family.type == "histogram":
            histograms[name] = read_histogram(family, path)
        elif family.type == "counter":
            counters[name] = add_samples(family, "_total", path)
        elif family.type == "gauge":
            gauges[name] = add_samples(family, "", path)
    return Scrape(path, histograms, counters, gauges)


def add_samples(family: Family, ending: str, path: str) -> Fraction:
    """Add up the samples of a metric over all its labels."""
    wanted = family.name + ending
    return sum((to_exact(s.value, family.name, path) for s in family.samples if s.name == wanted), Fraction(0))


def to_exact(value: float, name: str, path: str) -> Fraction:
    """Give a sample's value as the decimal it was written as; raise InputError for NaN and infinity."""
    exact = Decimal(repr(value))
    if not exact.is_finite():
        raise InputError(f"is {value}, not a number", file=path, field=name)
    return Fraction(exact)


def read_histogram(family: Family, path: str) -> Histogram:
    """Read a histogram, adding up replicas; raise InputError where its counts fall or it has no +Inf bucket."""
    counts: dict[Edge, int] = {}
    total = Fraction(0)
    for sample in family.samples:
        value = to_exact(sample.value, family.name, path)
        if sample.name.endswith("_bucket"):
            edge = read_edge(sample.labels.get("le", ""), family.name, path)
            counts[edge] = counts.get(edge, 0) + int(value)
        elif sample.name.endswith("_sum"):
            total += value
    finite = sorted(edge for edge in counts if edge is not None)
    if None not in counts:
        raise InputError("has no +Inf bucket", file=path, field=family.name)
    edges: tuple[Edge, ...] = (*finite, None)
    upto = tuple(counts[edge] for edge in edges)
    if any(after < before for before, after in pairwise(upto)):
        raise InputError("has counts that fall from one bucket to the next", file=path, field=family.name)
    return Histogram(edges, upto, total)


def read_edge(text: str, name: str, path: str) -> Edge:
    """Read the upper edge of a bucket."""
    if text.lower() in ("+inf", "inf"):
        return None
    try:
        return Fraction(Decimal(text))
    except ArithmeticError:
        raise InputError(f"has the bucket edge {text!r}", file=path, field=name) from None


# TWO SCRAPES


def subtract(after: Scrape, before: Scrape) -> Scrape:
    """Give what happened between two scrapes; after a reset, the later one stands for itself."""
    resets: list[str] = []
    histograms = {
        name: subtract_histogram(name, each, before.histograms.get(name), resets, after.file)
        for name, each in after.histograms.items()
    }
    counters = {
        name: subtract_counter(name, value, before.counters.get(name, Fraction(0)), resets)
        for name, value in after.counters.items()
    }
    return Scrape(after.file, histograms, counters, after.gauges, tuple(resets))


def subtract_histogram(
    name: str, after: Histogram, before: Histogram | None, resets: list[str], path: str
) -> Histogram:
    """Subtract bucket by bucket; raise InputError where the buckets differ."""
    if before is None:
        return after
    if before.edges != after.edges:
        raise InputError("has other buckets than in the scrape before", file=path, field=name)
    pairs = list(zip(after.upto, before.upto, strict=True))
    if any(now < then for now, then in pairs) or after.total < before.total:
        resets.append(name)
        return after
    left = tuple(now - then for now, then in pairs)
    if any(b < a for a, b in pairwise(left)):
        resets.append(name)
        return after
    return Histogram(after.edges, left, after.total - before.total)


def subtract_counter(name: str, after: Fraction, before: Fraction, resets: list[str]) -> Fraction:
    """Subtract one counter."""
    if after < before:
        resets.append(name)
        return after
    return after - before


# WHAT THEY SAY


def name_histograms(scrape: Scrape) -> Iterator[tuple[str, Histogram]]:
    """Give the latencies that are known, under short names."""
    for name, histogram in scrape.histograms.items():
        if name in HISTOGRAMS:
            yield HISTOGRAMS[name], histogram


def compute_shares(scrape: Scrape) -> dict[str, Fraction]:
    """Give the shares of queueing, prefill and decode in the time from arrival to last output; {} where unknown."""
    sums = {short: each.total for short, each in name_histograms(scrape)}
    whole = sums.get("e2e", Fraction(0))
    return {name: sums[name] / whole for name in PARTS if name in sums} if whole else {}


def get_kv_usage(scrape: Scrape) -> Fraction | None:
    """Give the share of the KV cache in use at the scrape; of several replicas, their sum."""
    return next((scrape.gauges[name] for name in USAGE if name in scrape.gauges), None)
