"""The named definitions: which two times a latency lies between, and what a time per token is divided by.

Each name is defined in spec/40-metrics.md. All are taken on the client's clock, but for those that begin with
`server.`, which are differences on the server's own.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import compress, repeat
from operator import gt, sub
from typing import NamedTuple

from refsched.metrics.columns import MISSING, Columns
from refsched.metrics.gaps import make_gap_populations
from refsched.metrics.population import Population, Run, make_ratio_runs, make_runs, to_array

SPANS: Mapping[str, tuple[str, str]] = {  # name: (from, to)
    "ttft.any": ("sent", "first"),
    "ttft.content": ("sent", "first_content"),
    "ttft.reasoning": ("sent", "first_reasoning"),
    "ttft.chunk": ("sent", "opened"),
    "e2e.last_token": ("sent", "last"),
    "e2e.usage": ("sent", "usage"),
    "e2e.stream_end": ("sent", "stream_end"),
    "ttft.from_schedule": ("planned", "first"),
    "latency.from_schedule": ("planned", "last"),
    "latency.from_send": ("sent", "last"),
    "server.queued": ("queued", "scheduled"),
    "server.prefill": ("scheduled", "server_first"),
    "server.first_token": ("queued", "server_first"),
}
RATIOS: Mapping[str, tuple[str, str, str | int]] = {  # name: (from, to, what the tokens are lessened by)
    "tpot.decode/(n-1)": ("first", "last", 1),
    "tpot.decode/(n-k1)": ("first", "last", "first_tokens"),
    "tpot.e2e/n": ("sent", "last", 0),
}
OPTIONAL = ("ttft.chunk", "server.queued", "server.prefill", "server.first_token", "transport.first_token")
MEANINGS: Mapping[str, str] = {
    "ttft.any": "first chunk with tokens, content or reasoning - sent",
    "ttft.content": "first chunk with content - sent",
    "ttft.reasoning": "first chunk with reasoning - sent",
    "ttft.chunk": "first chunk of any kind, even of no tokens - sent",
    "ttft.from_schedule": "first chunk with tokens - planned",
    "e2e.last_token": "last chunk with tokens - sent",
    "e2e.usage": "usage chunk - sent",
    "e2e.stream_end": "end of the stream - sent",
    "tpot.decode/(n-1)": "(last - first token) / (tokens - 1); undefined below two tokens",
    "tpot.decode/(n-k1)": "(last - first token) / tokens after the first chunk",
    "tpot.e2e/n": "(last token - sent) / tokens: contains the first wait",
    "itl.chunk": "from each chunk with tokens to the next, whatever they hold",
    "itl.even": "the same gaps, each divided evenly among the tokens that ended it",
    "itl.burst": "the same gaps, and 0 between tokens of one chunk",
    "longest_gap": "the longest gap between two chunks of a request",
    "latency.from_schedule": "last chunk with tokens - planned",
    "latency.from_send": "last chunk with tokens - sent",
    "server.queued": "on the server: from queued to scheduled",
    "server.prefill": "on the server: from scheduled to first token",
    "server.first_token": "on the server: from queued to first token",
    "transport.first_token": "ttft.any less server.first_token: what lies outside the server",
}


class Ratios(NamedTuple):
    """Hold one ratio for each row that has it, and the tokens of that row."""

    times: Sequence[int]
    divisors: Sequence[int]
    tokens: Sequence[int]


def compute_span(columns: Columns, start: str, stop: str) -> list[int]:
    """Compute stop - start for each row where both are known."""
    begun, ended = columns.get(start), columns.get(stop)
    if MISSING not in begun and MISSING not in ended:
        return list(map(sub, ended, begun))
    return [to - since for since, to in zip(begun, ended, strict=True) if since != MISSING and to != MISSING]


def compute_ratio(columns: Columns, start: str, stop: str, less: str | int) -> Ratios:
    """Compute (stop - start) / (tokens - less) where all are known and the divisor is positive."""
    begun, ended, tokens = columns.get(start), columns.get(stop), columns.get("tokens")
    lessened = columns.get(less) if isinstance(less, str) else to_array(repeat(less, len(columns)))
    if any(MISSING in column for column in (begun, ended, tokens, lessened)):
        rows = zip(begun, ended, tokens, lessened, strict=True)
        has = [count > fewer and MISSING not in (since, to, fewer) for since, to, count, fewer in rows]
    else:
        has = list(map(gt, tokens, lessened))
    if not all(has):
        begun, ended, tokens, lessened = (list(compress(each, has)) for each in (begun, ended, tokens, lessened))
    divisors = to_array(map(sub, tokens, lessened))
    return Ratios(to_array(map(sub, ended, begun)), divisors, tokens)


def compute_transport(columns: Columns) -> list[int]:
    """Compute, for each row that knows all four times, the first wait at the client less that on the server."""
    names = ("sent", "first", "queued", "server_first")
    return [
        first - sent - (at_server - queued)
        for sent, first, queued, at_server in zip(*map(columns.get, names), strict=True)
        if MISSING not in (sent, first, queued, at_server)
    ]


class PopulationMaker:
    """Make the populations of some rows, each once: definitions that see the same times share one."""

    def __init__(self, columns: Columns):
        self.columns = columns
        self.offered = len(columns)
        self.made: list[tuple[tuple[Sequence[int] | int, ...], Population]] = []

    def make_all(self) -> dict[str, tuple[Population, int]]:
        """Give every population, each with the number of requests that have no such value."""
        found = {name: self.make_span(start, stop) for name, (start, stop) in SPANS.items()}
        found |= {name: self.make_ratio(start, stop, less) for name, (start, stop, less) in RATIOS.items()}
        found["longest_gap"] = self.add_undefined(Population(runs=make_runs(self.columns.known("longest"))))
        found["transport.first_token"] = self.add_undefined(Population(runs=make_runs(compute_transport(self.columns))))
        found |= make_gap_populations(self.columns)
        if found["ttft.chunk"][0] is found["ttft.any"][0]:
            del found["ttft.chunk"]
        return {name: found[name] for name in MEANINGS if name in found and (name not in OPTIONAL or found[name][0].n)}

    def make_span(self, start: str, stop: str) -> tuple[Population, int]:
        """Order the differences of two times."""
        seen = self.columns.get(start), self.columns.get(stop)
        return self.share(seen, lambda: make_runs(compute_span(self.columns, start, stop)))

    def make_ratio(self, start: str, stop: str, less: str | int) -> tuple[Population, int]:
        """Order times per token."""
        seen = self.columns.get(start), self.columns.get(stop), self.simplify(less)

        def make() -> list[Run]:
            ratios = compute_ratio(self.columns, start, stop, less)
            return make_ratio_runs(ratios.times, ratios.divisors)

        return self.share(seen, make)

    def simplify(self, less: str | int) -> Sequence[int] | int:
        """Give what the tokens are lessened by: one number where it is 1 in every row."""
        if not isinstance(less, str):
            return less
        column = self.columns.get(less)
        return 1 if column.count(1) == len(column) else column

    def share(self, seen: tuple[Sequence[int] | int, ...], make: Callable[[], list[Run]]) -> tuple[Population, int]:
        """Give the population made before from equal columns, or make it now."""
        for known, population in self.made:
            if len(known) == len(seen) and all(map(is_same, known, seen)):
                return self.add_undefined(population)
        population = Population(runs=make())
        self.made.append((seen, population))
        return self.add_undefined(population)

    def add_undefined(self, population: Population) -> tuple[Population, int]:
        """Add how many requests have no value in a population of one value each."""
        return population, self.offered - population.n


def is_same(known: Sequence[int] | int, seen: Sequence[int] | int) -> bool:
    """Tell whether two columns, or two numbers, are equal."""
    return known is seen or known == seen
