"""Where a run's offers come from: all known beforehand, read as the run goes on, or dealt to it by a router."""

from collections import deque
from collections.abc import Iterable, Iterator

from refsched.errors import InputError
from refsched.units import Ticks
from refsched.workload.offer import Offer


class Intake:
    """Give offers in order of time, numbered from 0.

    An iterator is read one offer ahead and must be in order of time; anything else is sorted, equal times keeping
    their order, and its names must differ. Raise InputError otherwise.
    """

    def __init__(self, offers: Iterable[Offer]):
        self.source: Iterator[Offer] = offers if isinstance(offers, Iterator) else iter(sort_offers(offers))
        self.queue: deque[Offer] = deque()
        self.taken = 0
        self.latest: Ticks = 0

    def peek(self) -> Ticks | None:
        """Give the time of the next offer, or None if there is none."""
        if self.queue:
            return self.queue[0].at
        offer = next(self.source, None)
        if offer is None:
            return None
        self.queue.append(offer)
        return offer.at

    def take(self) -> tuple[int, Offer]:
        """Take the next offer, and its number."""
        offer = self.queue.popleft()
        if offer.at < self.latest:
            raise InputError(f"request {offer.request.id} comes before the one above it", field="arrival")
        self.latest = offer.at
        self.taken += 1
        return self.taken - 1, offer

    def add(self, offer: Offer) -> None:
        """Add an offer behind all others."""
        self.queue.append(offer)


def sort_offers(offers: Iterable[Offer]) -> list[Offer]:
    """Sort offers by time; raise InputError where two have the same name."""
    ordered = sorted(offers, key=lambda offer: offer.at)
    if len({offer.request.id for offer in ordered}) != len(ordered):
        raise InputError("two offers have the same request id", field="id")
    return ordered
