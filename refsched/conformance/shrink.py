"""The shrinker: a smaller scenario that still breaks the same clause.

Requests and cancellations are dropped, then every number is lowered and every limit lifted, again and again until
nothing smaller breaks the clause any more, or until enough runs were made.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from refsched.conformance.scenario_file import Arrival, Scenario
from refsched.model import Limits, Request

Breaks = Callable[[Scenario], bool]
MOST_RUNS = 3000
Item = TypeVar("Item")


def shrink(scenario: Scenario, breaks: Breaks, most_runs: int = MOST_RUNS) -> Scenario:
    """Find a smaller scenario for which `breaks` holds as well; `scenario` is one for which it holds."""
    runs = 0
    goes_on = True
    while goes_on:
        goes_on = False
        for smaller in list_smaller(scenario):
            runs += 1
            if runs > most_runs:
                return rename(scenario, breaks)
            if breaks(smaller):
                scenario, goes_on = smaller, True
                break
    return rename(scenario, breaks)


def rename(scenario: Scenario, breaks: Breaks) -> Scenario:
    """Name the requests r0, r1, … in order, where the clause is broken all the same."""
    names = {id: f"r{number}" for number, id in enumerate(dict.fromkeys(each.request.id for each in scenario.arrivals))}
    arrivals = tuple(
        replace(each, request=replace(each.request, id=names[each.request.id])) for each in scenario.arrivals
    )
    renamed = replace(
        scenario, arrivals=arrivals, cancels=tuple(replace(each, id=names[each.id]) for each in scenario.cancels)
    )
    return renamed if renamed == scenario or breaks(renamed) else scenario


def list_smaller(scenario: Scenario) -> Iterator[Scenario]:
    """Give the scenarios that are one step smaller, the boldest first."""
    yield from drop_arrivals(scenario)
    for place in range(len(scenario.cancels)):
        yield replace(scenario, cancels=drop(scenario.cancels, place))
    for limits in list_simpler_limits(scenario.limits):
        yield replace(scenario, limits=limits)
    for place, arrival in enumerate(scenario.arrivals):
        for simpler in list_simpler_arrivals(arrival):
            yield replace(scenario, arrivals=put(scenario.arrivals, place, simpler))
    for place, cancel in enumerate(scenario.cancels):
        for at in lower(cancel.at, 0):
            yield replace(scenario, cancels=put(scenario.cancels, place, replace(cancel, at=at)))
        if cancel.inside:
            yield replace(scenario, cancels=put(scenario.cancels, place, replace(cancel, inside=False)))


def drop_arrivals(scenario: Scenario) -> Iterator[Scenario]:
    """Drop one request, with the cancellations that name nobody then; or its lead over all others."""
    for place in range(len(scenario.arrivals) if len(scenario.arrivals) > 1 else 0):
        left = drop(scenario.arrivals, place)
        ids = {each.request.id for each in left}
        yield replace(scenario, arrivals=left, cancels=tuple(each for each in scenario.cancels if each.id in ids))
    first = min([each.at for each in scenario.arrivals] + [each.at for each in scenario.cancels])
    if first > 0:
        yield replace(
            scenario,
            arrivals=tuple(replace(each, at=each.at - first) for each in scenario.arrivals),
            cancels=tuple(replace(each, at=each.at - first) for each in scenario.cancels),
        )


def list_simpler_limits(limits: Limits) -> Iterator[Limits]:
    """Lift one limit, or lower one number."""
    for name in ("chunk_cap", "max_len", "num_blocks"):
        if getattr(limits, name) is not None:
            yield set_limit(limits, name, None)
    if limits.block_size > 1:
        yield replace(limits, block_size=1)
        yield replace(limits, block_size=limits.block_size - 1)
    if limits.max_seqs is None or limits.max_seqs > 8:
        yield replace(limits, max_seqs=8)
    for name in ("token_budget", "max_seqs", "num_blocks", "max_len", "chunk_cap"):
        for value in lower(getattr(limits, name) or 1, 1):
            yield set_limit(limits, name, value)


def set_limit(limits: Limits, name: str, value: int | None) -> Limits:
    """Change one limit by its name."""
    changes: dict[str, Any] = {name: value}
    return replace(limits, **changes)


def list_simpler_arrivals(arrival: Arrival) -> Iterator[Arrival]:
    """Lower one number of an arrival, or take away what is special about it."""
    request = arrival.request
    if arrival.inside:
        yield replace(arrival, inside=False)
    for at in lower(arrival.at, 0):
        yield replace(arrival, at=at)
    for simpler in list_simpler_requests(request):
        yield replace(arrival, request=simpler)


def list_simpler_requests(request: Request) -> Iterator[Request]:
    """Lower one number of a request, or take away what is special about it."""
    if request.prefix or request.output_blocks:
        yield replace(request, prefix=(), output_blocks=())
        yield replace(request, prefix=request.prefix[:-1], output_blocks=())
    for priority in {0, 1, -1} if abs(request.priority) > 1 else {0} if request.priority else set():
        yield replace(request, priority=priority)
    yield from (replace(request, prompt=value) for value in lower(request.prompt, 1))
    yield from (replace(request, output=value) for value in lower(request.output, 1))


def lower(value: int, least: int) -> Iterator[int]:
    """Give smaller numbers, the smallest first."""
    tried = sorted({least, value // 2, value - 1})
    yield from (each for each in tried if least <= each < value)


def drop(items: tuple[Item, ...], place: int) -> tuple[Item, ...]:
    """Leave out one item."""
    return items[:place] + items[place + 1 :]


def put(items: tuple[Item, ...], place: int, item: Item) -> tuple[Item, ...]:
    """Replace one item."""
    return (*items[:place], item, *items[place + 1 :])
