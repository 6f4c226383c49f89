"""Generated workloads, written in one line: `poisson:rate=4,n=1000,prompt=1024,output=128`.

Kinds: `batch` (all at once), `constant`, `poisson`, `gamma` (with `shape`, CV = 1 / sqrt(shape)); all but `batch` need
`rate`, requests a second. All need `n` and lengths: `prompt` and `output` as in lengths.py, or `lengths=PATH` to draw
whole (prompt, output) rows of a file. `group` names the requests' group. The first request arrives at 0.
`servegen` is described in servegen.py.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import repeat
from typing import TypeAlias

from refsched.errors import InputError
from refsched.model import Request
from refsched.units import LONGEST, TICKS_PER_SECOND, Ticks
from refsched.workload.arrivals import draw_exponential, make_gamma, make_stream, schedule_constant, schedule_draws
from refsched.workload.formats.cells import parse_number
from refsched.workload.lengths import take_lengths
from refsched.workload.offer import Offer, Workload
from refsched.workload.servegen import draw_servegen
from refsched.workload.settings import Settings, parse_settings, parse_whole
from refsched.workload.spacing import Spacing, compute_spacing, write_rate_note

MOST_REQUESTS = 10**8
FASTEST = 10**9  # requests a second
LEAST_SHAPE, LARGEST_SHAPE = Fraction(1, 1000), 10**6
Arrivals: TypeAlias = Callable[[Settings, int, int, str], Iterator[Ticks]]


def generate(text: str, seed: int) -> Workload:
    """Generate the workload that the text describes; raise InputError naming the setting that is wrong."""
    try:
        kind, settings = parse_settings(text)
        if kind == "servegen":
            return draw_servegen(text, settings, seed)
        if kind not in ARRIVALS:
            raise InputError(f"{kind!r} is not one of {', '.join(KINDS)}")
        offers = tuple(_draw(ARRIVALS[kind], settings, seed)[1])
    except InputError as error:
        raise error.at(file=text) from None
    spacing = compute_spacing(offer.at for offer in offers)
    return replace(describe_drawn(text, seed, spacing, len(offers)), offers=offers)


def draw_one_by_one(text: str, seed: int) -> tuple[int, Iterator[Offer]]:
    """Generate the same offers, one at a time, and say how many; raise InputError for a wrong setting, at once."""
    try:
        kind, settings = parse_settings(text)
        return _draw(ARRIVALS[kind], settings, seed)
    except InputError as error:
        raise error.at(file=text) from None


def describe_drawn(text: str, seed: int, spacing: Spacing, rows: int) -> Workload:
    """Say what was generated, offers apart."""
    return Workload(text, "generator", (), write_rate_note(spacing), {"generator": text, "seed": seed, "rows": rows})


def _draw(arrivals: Arrivals, settings: Settings, seed: int) -> tuple[int, Iterator[Offer]]:
    n = settings.take("n", parse_n)
    group = settings.take("group", str, "")
    times = arrivals(settings, n, seed, group)
    draw = take_lengths(settings, seed, group)
    settings.check_all_taken()
    return n, (Offer(at, Request(f"r{k}", *draw()), group) for k, at in enumerate(times))


def parse_n(text: str) -> int:
    """Read a number of requests, at most 10^8."""
    n = parse_whole(text)
    if n > MOST_REQUESTS:
        raise InputError(f"{n} requests are more than {MOST_REQUESTS}")
    return n


def parse_rate(text: str) -> Fraction:
    """Read a rate in requests a second, above 0 and at most 10^9."""
    if text.lower() in ("inf", "infinity"):
        raise InputError("at an infinite rate all come at once, whatever the gaps: write batch:n=…")
    rate = Fraction(parse_number(text, "rate"))
    if not 0 < rate <= FASTEST:
        raise InputError(f"{text} is not above 0 and at most {FASTEST} requests/s")
    return rate


def parse_shape(text: str) -> Fraction:
    """Read the shape of a gamma distribution, from 0.001 (CV 31.6) to 10^6 (CV 0.001)."""
    if text.lower() in ("inf", "infinity"):
        raise InputError("an infinite shape makes even gaps: write constant:rate=…")
    shape = Fraction(parse_number(text, "shape"))
    if not LEAST_SHAPE <= shape <= LARGEST_SHAPE:
        raise InputError(f"{text} is not from {float(LEAST_SHAPE)} to {LARGEST_SHAPE}")
    return shape


def _arrive_at_once(settings: Settings, n: int, seed: int, label: str) -> Iterator[Ticks]:
    return repeat(0, n)


def _arrive_evenly(settings: Settings, n: int, seed: int, label: str) -> Iterator[Ticks]:
    return schedule_constant(_take_rate(settings, n), n)


def _arrive_poisson(settings: Settings, n: int, seed: int, label: str) -> Iterator[Ticks]:
    return schedule_draws(_take_rate(settings, n), n, draw_exponential, make_stream(seed, f"{label}/arrivals"))


def _arrive_gamma(settings: Settings, n: int, seed: int, label: str) -> Iterator[Ticks]:
    draw = make_gamma(settings.take("shape", parse_shape))
    return schedule_draws(_take_rate(settings, n), n, draw, make_stream(seed, f"{label}/arrivals"))


def _take_rate(settings: Settings, n: int) -> Fraction:
    rate = settings.take("rate", parse_rate)
    if n / rate > LONGEST // TICKS_PER_SECOND:
        raise InputError(f"{n} requests would take more than {LONGEST // TICKS_PER_SECOND} s", field="rate")
    return rate


ARRIVALS: Mapping[str, Arrivals] = {
    "batch": _arrive_at_once,
    "constant": _arrive_evenly,
    "poisson": _arrive_poisson,
    "gamma": _arrive_gamma,
}
KINDS = (*ARRIVALS, "servegen")
