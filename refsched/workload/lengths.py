"""Length distributions: fixed, uniform, log-normal and empirical, in whole tokens of at least 1.

Written `1024`, `uniform:100:2000` (both ends included), `lognormal:500:0.8` (the mean in tokens, then the standard
deviation of the logarithm) or `file:PATH` (drawn from the lengths of a workload file or a file of lengths).
"""

import math
import random
from collections.abc import Callable, Sequence
from typing import TypeAlias

from refsched.errors import InputError
from refsched.model import LARGEST_COUNT, check_count
from refsched.units import Tokens
from refsched.workload.arrivals import make_stream
from refsched.workload.formats import read_lengths
from refsched.workload.formats.cells import parse_number
from refsched.workload.settings import Settings, parse_whole

Length: TypeAlias = Callable[[random.Random], Tokens]
Pair: TypeAlias = Callable[[], tuple[Tokens, Tokens]]  # draws a prompt and an output

WIDEST_SIGMA = 10
PROMPT, OUTPUT = 0, 1  # the column that `file:` draws from


def make_fixed(tokens: Tokens) -> Length:
    """Give always the same length."""
    return lambda stream: tokens


def make_uniform(least: Tokens, most: Tokens) -> Length:
    """Draw from least … most, each as likely."""
    if most < least:
        raise InputError(f"uniform:{least}:{most} ends before it starts")
    return lambda stream: least + int(stream.random() * (most - least + 1))


def make_lognormal(mean: float, sigma: float) -> Length:
    """Draw exp(normal) with this mean, rounded to whole tokens, at least 1; a draw beyond 10^12 raises InputError."""
    centre = math.log(mean) - sigma * sigma / 2

    def draw(stream: random.Random) -> Tokens:
        tokens = max(1, round(math.exp(centre + sigma * stream.gauss(0.0, 1.0))))
        return check_count(tokens, "tokens")

    return draw


def make_empirical(values: Sequence[Tokens]) -> Length:
    """Draw from the values with replacement."""
    return lambda stream: values[int(stream.random() * len(values))]


def parse_length(text: str, column: int) -> Length:
    """Read a distribution; raise InputError for an unknown one or a wrong parameter."""
    name, *parts = text.split(":")
    if name == "file":
        return make_empirical([pair[column] for pair in read_lengths(text.partition(":")[2])])
    if not parts:
        return make_fixed(parse_whole(name))
    if name not in _KINDS or len(parts) != 2:
        raise InputError(f"{text!r} is not 1024, uniform:100:2000, lognormal:500:0.8 or file:PATH")
    return _KINDS[name](*parts)


def _parse_uniform(least: str, most: str) -> Length:
    return make_uniform(parse_whole(least), parse_whole(most))


def _parse_lognormal(mean: str, sigma: str) -> Length:
    centre, width = float(parse_number(mean, "mean")), float(parse_number(sigma, "sigma"))
    if not 1 <= centre <= LARGEST_COUNT or not 0 <= width <= WIDEST_SIGMA:
        raise InputError(f"lognormal:{mean}:{sigma} needs a mean from 1 and a sigma from 0 to {WIDEST_SIGMA}")
    return make_lognormal(centre, width)


_KINDS: dict[str, Callable[[str, str], Length]] = {"uniform": _parse_uniform, "lognormal": _parse_lognormal}


def take_lengths(settings: Settings, seed: int, label: str) -> Pair:
    """Give the draw of (prompt, output) pairs that `lengths`, or `prompt` and `output`, describe."""
    if settings.has("lengths"):
        rows, stream = settings.take("lengths", read_lengths), make_stream(seed, f"{label}/lengths")
        return lambda: rows[int(stream.random() * len(rows))]
    prompt = settings.take("prompt", lambda text: parse_length(text, PROMPT))
    output = settings.take("output", lambda text: parse_length(text, OUTPUT))
    prompts, outputs = make_stream(seed, f"{label}/prompt"), make_stream(seed, f"{label}/output")
    return lambda: (prompt(prompts), output(outputs))
