"""Arrival processes: constant, Poisson and gamma gaps, as an absolute schedule from 0.

Gaps are drawn as floats in units of the mean gap, from `random.Random` and nothing else; their exact sum is turned
into ticks and rounded once for each arrival, so that errors never add up. The stream of draws depends on the seed
and on a label, never on how many lengths were drawn.

Gamma: `shape` k gives gaps with coefficient of variation 1 / sqrt(k): 0.25 -> 2, 1 -> 1 (Poisson), and no k gives 0
but in the limit, which is `constant`.
"""

import math
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TypeAlias

from refsched.units import TICKS_PER_SECOND, Ticks

Draw: TypeAlias = Callable[[random.Random], float]  # one gap of mean 1

_LARGEST_LOG = 600.0  # exp() of more, in steps, is beyond a float
_FINE = 1 << 53  # a drawn gap counts in steps of this part of a mean gap


def make_stream(seed: int, label: str) -> random.Random:
    """Start the stream of random numbers that belongs to a seed and a label."""
    return random.Random(f"{seed}/{label}")


def draw_exponential(stream: random.Random) -> float:
    """Draw a gap of a Poisson process."""
    return -math.log(1.0 - stream.random())


def take_fine(draw: Draw, stream: random.Random) -> int:
    """Draw one gap as a whole number of steps of 2^-53 mean gaps."""
    return int(draw(stream) * _FINE)


def make_weibull(shape: Fraction) -> Draw:
    """Make the draw of a Weibull gap of shape `shape` and scale 1 (its mean is not 1)."""
    power = 1 / float(shape)

    def draw(stream: random.Random) -> float:
        exponential = draw_exponential(stream)
        return math.exp(min(_LARGEST_LOG, power * math.log(exponential))) if exponential else 0.0

    return draw


def make_gamma(shape: Fraction) -> Draw:
    """Make the draw of a gamma gap of shape `shape` and mean 1."""
    k = float(shape)
    return lambda stream: stream.gammavariate(k, 1 / k)


def schedule_constant(rate: Fraction, n: int) -> Iterator[Ticks]:
    """Give n arrivals at `rate` a second, evenly: arrival k at k / rate."""
    return (divide_nearest(k * TICKS_PER_SECOND * rate.denominator, rate.numerator) for k in range(n))


def schedule_draws(rate: Fraction, n: int, draw: Draw, stream: random.Random) -> Iterator[Ticks]:
    """Give n arrivals whose gaps are drawn, with a mean of 1 / rate; the first is at 0."""
    total = 0
    for _ in range(n):
        yield divide_nearest(total * TICKS_PER_SECOND * rate.denominator, rate.numerator * _FINE)
        total += take_fine(draw, stream)


def divide_nearest(value: int, divisor: int) -> int:
    """Divide and round to the nearest integer, halves up (divisor positive)."""
    return (2 * value + divisor) // (2 * divisor)
