"""The named definitions: which two times a latency lies between, and what a time per token is divided by.

Each name is defined in spec/40-metrics.md. All are taken on the client's clock, but for those that begin with
`server.`, which are differences on the server's own.
"""

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, compress
from operator import gt, sub
from typing import NamedTuple, TypeAlias

from refsched.metrics.columns import Columns
from refsched.metrics.compact import MISSING, RUN, Repeated, get_kind, to_array
from refsched.metrics.population import Population, make_ratio_runs, make_runs

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


Sight: TypeAlias = tuple[Sequence[int], Sequence[int], Sequence[int] | int | None]  # all that a definition looks at


class Ratios(NamedTuple):
    """Hold one ratio for each row that has it, and the tokens of that row."""

    times: Sequence[int]
    divisors: Sequence[int]
    tokens: Sequence[int]


def list_spans(columns: Columns, start: str, stop: str) -> Iterator[Sequence[int]]:
    """Compute stop - start for each row where both are known, part by part."""
    for begun, ended in list_parts(columns.get(start), columns.get(stop)):
        if MISSING not in begun and MISSING not in ended:
            yield to_array(map(sub, ended, begun))
        else:
            pairs = zip(begun, ended, strict=True)
            yield to_array(to - since for since, to in pairs if since != MISSING and to != MISSING)


def list_ratios(columns: Columns, start: str, stop: str, less: str | int) -> Iterator[Ratios]:
    """Compute (stop - start) / (tokens - less) where all are known and the divisor is positive, part by part."""
    lessened = columns.get(less) if isinstance(less, str) else Repeated(less, len(columns))
    for part in list_parts(columns.get(start), columns.get(stop), columns.get("tokens"), lessened):
        yield compute_ratios(*part)


def list_parts(*columns: Sequence[int]) -> Iterator[tuple[Sequence[int], ...]]:
    """Give columns of one length part by part, so that what is made of them need not be whole at any time."""
    for start in range(0, len(columns[0]), RUN):
        yield tuple(column[start : start + RUN] for column in columns)


def compute_ratios(
    begun: Sequence[int], ended: Sequence[int], tokens: Sequence[int], lessened: Sequence[int]
) -> Ratios:
    """Divide times by tokens less some, in the rows where that can be done."""
    if any(MISSING in column for column in (begun, ended, tokens, lessened)):
        rows = zip(begun, ended, tokens, lessened, strict=True)
        has = array("b", (count > fewer and MISSING not in (since, to, fewer) for since, to, count, fewer in rows))
    else:
        has = array("b", map(gt, tokens, lessened))
    kind = get_kind(tokens)
    return Ratios(
        times=to_array(compress(map(sub, ended, begun), has)),
        divisors=array(kind, compress(map(sub, tokens, lessened), has)),
        tokens=array(kind, compress(tokens, has)),
    )


def compute_transport(columns: Columns) -> list[int]:
    """Compute, for each row that knows all four times, the first wait at the client less that on the server."""
    names = ("sent", "first", "queued", "server_first")
    return [
        first - sent - (at_server - queued)
        for sent, first, queued, at_server in zip(*map(columns.get, names), strict=True)
        if MISSING not in (sent, first, queued, at_server)
    ]


def list_definitions(columns: Columns) -> Iterator[tuple[str, str | None, Callable[[], Population]]]:
    """Give each definition of one value a request: its name, an earlier one that sees the same times, its maker."""
    known: dict[str, Sight] = {}
    for name in (*SPANS, *RATIOS):
        seen = get_sight(columns, name)
        twin = next((other for other, each in known.items() if is_same(each, seen)), None)
        known[name] = seen
        yield name, twin, partial(make_span if name in SPANS else make_ratio, columns, name)
    yield "longest_gap", None, lambda: Population(runs=make_runs(columns.known("longest")))
    yield "transport.first_token", None, lambda: Population(runs=make_runs(compute_transport(columns)))


def get_sight(columns: Columns, name: str) -> Sight:
    """Give all that a definition looks at: two columns, and what the tokens are lessened by."""
    if name in SPANS:
        start, stop = SPANS[name]
        return columns.get(start), columns.get(stop), None
    start, stop, less = RATIOS[name]
    return columns.get(start), columns.get(stop), simplify(columns, less)


def simplify(columns: Columns, less: str | int) -> Sequence[int] | int:
    """Give what the tokens are lessened by: one number where it is 1 in every row."""
    if not isinstance(less, str):
        return less
    column = columns.get(less)
    return 1 if column.count(1) == len(column) else column


def is_same(known: Sight, seen: Sight) -> bool:
    """Tell whether two definitions see the same."""
    return all(one is other or one == other for one, other in zip(known, seen, strict=True))


def make_span(columns: Columns, name: str) -> Population:
    """Order the differences of two times."""
    return Population(runs=chain.from_iterable(map(make_runs, list_spans(columns, *SPANS[name]))))


def make_ratio(columns: Columns, name: str) -> Population:
    """Order times per token."""
    parts = (make_ratio_runs(each.times, each.divisors) for each in list_ratios(columns, *RATIOS[name]))
    return Population(runs=chain.from_iterable(parts))
