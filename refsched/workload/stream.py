"""A workload as a stream: offers are read or drawn while a run goes on, and described when it is over."""

from collections.abc import Callable, Iterator
from itertools import islice

from refsched.workload.formats.read import Reading, ReadOptions
from refsched.workload.formats.servegen import is_servegen
from refsched.workload.generate import ARRIVALS, describe_drawn, draw_one_by_one
from refsched.workload.load import is_file, load_workload, split_kind
from refsched.workload.offer import Offer, Workload
from refsched.workload.spacing import Spacer

AHEAD = 256  # offers read at once: reading and simulating in turns for each would cost a tenth more


class Stream:
    """Give offers once, in order of time; `describe` says what they were when all have been given.

    `estimate_total` says meanwhile how many there will be, None where that cannot be told.
    """

    def __init__(
        self, offers: Iterator[Offer], describe: Callable[[], Workload], estimate_total: Callable[[], int | None]
    ):
        self.offers, self.describe, self.estimate_total = offers, describe, estimate_total

    def __iter__(self) -> Iterator[Offer]:
        while ahead := list(islice(self.offers, AHEAD)):
            yield from ahead


def open_stream(text: str, seed: int = 0, first: int | None = None, ties: str = "raw") -> Stream:
    """Open the workload that the text names, as `load_workload` would load it; raise InputError if it names none.

    Files and drawn arrivals are streamed; a scenario, ServeGen's rates and spread ties are small or need all of it.
    """
    if split_kind(text) in ARRIVALS and first is None:
        return stream_drawn(text, seed)
    if is_file(text) and ties == "raw" and not is_servegen(text):
        reading = Reading(text, ReadOptions(first))
        return Stream(iter(reading), reading.describe, reading.estimate_total)
    workload = load_workload(text, seed, first, ties)
    return Stream(iter(workload.offers), lambda: workload, lambda: len(workload.offers))


def stream_drawn(text: str, seed: int) -> Stream:
    """Draw a generator's offers one at a time."""
    spacer = Spacer()

    def draw() -> Iterator[Offer]:
        for offer in drawn:
            spacer.add(offer.at)
            yield offer

    n, drawn = draw_one_by_one(text, seed)
    return Stream(draw(), lambda: describe_drawn(text, seed, spacer.describe(), spacer.count()), lambda: n)
