"""Requests drawn from ServeGen's windows of rates: `servegen:trace=FILE,dataset=FILE,start=3600,span=1200,n=5000`.

A window of rate r and length w gets round(r * w) requests, the number that was observed. Their gaps are drawn from the
window's family and shape and stretched to fill the window exactly, so a heavy tail (CV 360) moves requests but never
changes their number; ServeGen's own generator stretches in the same way. Idle windows stay idle. Each window has a
stream of draws of its own: a part of a trace (`start` and `span`, in seconds) equals that part of the whole.

Lengths come from the table in force at the window's start (`dataset`; by default the file beside the trace whose name
ends in dataset.json where the trace's ends in trace.csv), or from `prompt` and `output`, or `lengths`, as in
lengths.py. `n` keeps the first requests only.
"""

import random
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, islice

from refsched.errors import InputError
from refsched.model import Request
from refsched.units import TICKS_PER_SECOND, Ticks, Tokens, round_to_ticks
from refsched.workload.arrivals import Draw, make_gamma, make_stream, make_weibull, take_fine
from refsched.workload.formats.cells import parse_number
from refsched.workload.formats.servegen import Table, Window, read_tables, read_windows
from refsched.workload.lengths import Pair, take_lengths
from refsched.workload.offer import Offer, Workload
from refsched.workload.settings import Settings, parse_whole
from refsched.workload.spacing import compute_spacing, write_rate_note

MOST_REQUESTS = 10**8
GAPS: Mapping[str, Callable[[Window], Draw]] = {
    "Gamma": lambda window: make_gamma(window.shape),
    "Weibull": lambda window: make_weibull(window.shape),
}


def draw_servegen(text: str, settings: Settings, seed: int) -> Workload:
    """Draw the requests of a trace; raise InputError for wrong settings or files, and for more than 10^8 requests."""
    trace = settings.take("trace", str)
    windows, sha256 = read_windows(trace)
    chosen = _choose_windows(windows, settings)
    n = settings.take("n", parse_whole, MOST_REQUESTS)
    group = settings.take("group", str, "")
    source: dict[str, str | int] = {"generator": text, "seed": seed, "trace_sha256": sha256}
    pair_of = _take_pairs(settings, trace, seed, source)
    settings.check_all_taken()
    _check_total(chosen, n)
    offers = tuple(islice(draw_offers(chosen, pair_of, seed, group), n))
    source["rows"] = len(offers)
    notes = (_describe(chosen), *write_rate_note(compute_spacing(offer.at for offer in offers)))
    return Workload(text, "servegen", offers, notes, source)


def draw_offers(
    windows: Sequence[Window], pair_of: Callable[[Window], Pair], seed: int, group: str
) -> Iterator[Offer]:
    """Give the offers of the windows in order; the first is at 0."""
    first: Ticks | None = None
    number = 0
    for window in windows:
        times = schedule_window(window, make_stream(seed, f"arrivals/{window.start}"))
        pair = pair_of(window)
        for at in times:
            first = at if first is None else first
            yield Offer(at - first, Request(f"r{number}", *pair()), group)
            number += 1


def schedule_window(window: Window, stream: random.Random) -> list[Ticks]:
    """Give the arrivals of one window, in order, inside it."""
    n, length = count_requests(window), window.end - window.start
    if n == 0:
        return []
    draw = GAPS[window.family](window)
    sums = list(accumulate(take_fine(draw, stream) for _ in range(n + 1)))
    if sums[-1] == 0:  # every gap was below the smallest step: as good as even
        sums = list(range(1, n + 2))
    return [window.start + length * part // sums[-1] for part in sums[:n]]


def count_requests(window: Window) -> int:
    """Count the requests of a window: its rate times its length, to the nearest whole number."""
    return round(window.rate * (window.end - window.start) / TICKS_PER_SECOND)


def draw_from_table(table: Table, stream: random.Random) -> Pair:
    """Give the draw of prompts and outputs by their weights, apart from each other as the file has them."""
    prompt, output = make_weighted(table.prompt), make_weighted(table.output)
    return lambda: (prompt(stream), output(stream))


def make_weighted(weights: Sequence[tuple[Tokens, float]]) -> Callable[[random.Random], Tokens]:
    """Draw a length by its weight."""
    tokens = [each for each, _ in weights]
    sums = list(accumulate(weight for _, weight in weights))
    return lambda stream: tokens[min(bisect_right(sums, stream.random() * sums[-1]), len(tokens) - 1)]


def _choose_windows(windows: Sequence[Window], settings: Settings) -> list[Window]:
    start = settings.take("start", _parse_seconds, windows[0].start)
    span = settings.take("span", _parse_seconds, windows[-1].end - min(start, windows[-1].start))
    chosen = [window for window in windows if start <= window.start < start + span]
    if not any(count_requests(window) for window in chosen):
        raise InputError("the chosen windows are idle, or there are none", field="start")
    return chosen


def _parse_seconds(text: str) -> Ticks:
    number = parse_number(text, "start")
    if number < 0:
        raise InputError(f"{text} is negative")
    return round_to_ticks(number).ticks


def _take_pairs(
    settings: Settings, trace: str, seed: int, source: dict[str, str | int]
) -> Callable[[Window], Pair]:
    if any([settings.has("lengths"), settings.has("prompt"), settings.has("output")]):
        pair = take_lengths(settings, seed, "servegen")
        return lambda window: pair
    dataset = settings.take("dataset", str, "") or name_dataset(trace)
    tables, source["dataset_sha256"] = read_tables(dataset)
    starts = [table.start for table in tables]

    def pair_of(window: Window) -> Pair:
        table = tables[max(0, bisect_right(starts, window.start) - 1)]
        if count_requests(window) and not (_weigh(table.prompt) and _weigh(table.output)):
            name = f"window {table.start // TICKS_PER_SECOND}"
            at = window.start // TICKS_PER_SECOND
            raise InputError(f"has no lengths for the requests at {at} s", file=dataset, field=name)
        return draw_from_table(table, make_stream(seed, f"lengths/{window.start}"))

    return pair_of


def _weigh(weights: Sequence[tuple[Tokens, float]]) -> float:
    return sum(weight for _, weight in weights)


def name_dataset(trace: str) -> str:
    """Name the file of lengths beside a trace; raise InputError if the trace's name does not tell it."""
    stem = trace.removesuffix("trace.csv")
    if stem == trace:
        raise InputError("is missing: the lengths' file, or prompt=… and output=…", field="dataset")
    return f"{stem}dataset.json"


def _check_total(windows: Sequence[Window], n: int) -> None:
    total = sum(map(count_requests, windows))
    if min(total, n) > MOST_REQUESTS or (total > MOST_REQUESTS and n == MOST_REQUESTS):
        raise InputError(f"{total} requests are more than {MOST_REQUESTS}; choose a part with start and span, or n")


def _describe(windows: Sequence[Window]) -> str:
    idle = sum(1 for window in windows if count_requests(window) == 0)
    return f"Windows: {len(windows)}, idle among them: {idle}; the gaps fill each window exactly."
