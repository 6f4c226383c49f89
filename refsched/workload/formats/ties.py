"""Equal arrival times, as a clock of coarse steps leaves them: kept, or put into the tick that they hide.

`raw` keeps them: requests come in bursts that may never have been. `spread` puts a group at even steps in its tick:
the smoothest arrivals that the file allows. `scatter` draws each place in the tick from a seed, as if arrivals within
a tick were independent. A tick lasts to the next time in the file, or the median step where that is less.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from random import Random

from refsched.units import Ticks
from refsched.workload.arrivals import make_stream
from refsched.workload.offer import Offer


def keep_ties(offers: Sequence[Offer], seed: int) -> tuple[Offer, ...]:
    """Leave every offer where the file puts it."""
    return tuple(offers)


def spread_ties(offers: Sequence[Offer], seed: int) -> tuple[Offer, ...]:
    """Move offer k of a group of n by k * tick // n; order is kept."""
    return tuple(
        move(offer, k * tick // len(group)) for tick, group in group_by_tick(offers) for k, offer in enumerate(group)
    )


def scatter_ties(offers: Sequence[Offer], seed: int) -> tuple[Offer, ...]:
    """Move the offers of a group to places drawn evenly from its tick; order is kept, and the first is at 0 again."""
    stream = make_stream(seed, "ties")
    scattered = [
        move(offer, place)
        for tick, group in group_by_tick(offers)
        for offer, place in zip(group, draw_places(len(group), tick, stream), strict=True)
    ]
    return tuple(move(offer, -scattered[0].at) for offer in scattered)


def draw_places(n: int, tick: Ticks, stream: Random) -> list[Ticks]:
    """Draw n places from 0 … tick - 1, in order; a request alone stays where it is."""
    return sorted(stream.randrange(tick) for _ in range(n)) if n > 1 else [0]


def group_by_tick(offers: Sequence[Offer]) -> Iterator[tuple[Ticks, list[Offer]]]:
    """Give the offers of each time, with the length of the tick that begins there."""
    groups = [list(group) for _, group in groupby(offers, key=lambda offer: offer.at)]
    steps = [after[0].at - before[0].at for before, after in pairwise(groups)]
    median = sorted(steps)[len(steps) // 2] if steps else 1
    return zip([min(step, median) for step in (*steps, median)], groups, strict=True)


def move(offer: Offer, by: Ticks) -> Offer:
    """Give the offer `by` ticks later, and its cancellation too: a client's patience stays the same."""
    if by == 0:
        return offer
    cancel_at = None if offer.cancel_at is None else offer.cancel_at + by
    return replace(offer, at=offer.at + by, cancel_at=cancel_at)


TIES: Mapping[str, Callable[[Sequence[Offer], int], tuple[Offer, ...]]] = {
    "raw": keep_ties,
    "spread": spread_ties,
    "scatter": scatter_ties,
}
