"""Iterations whose durations are an arithmetic progression: how many of them take a given time."""

from math import isqrt

from refsched.units import Ticks, ceil_div


def count_to_reach(gap: Ticks, duration: Ticks, growth: Ticks) -> int:
    """Count the fewest iterations that take at least `gap` ticks; a positive first duration, growing by `growth`.

    k iterations take k * duration + growth * k * (k - 1) / 2; the least k is found by an exact integer root.
    """
    if growth == 0:
        return ceil_div(gap, duration) if duration else 1
    twice = 2 * duration - growth
    count = (isqrt(twice * twice + 8 * growth * gap) - twice) // (2 * growth)
    while 2 * count * duration + growth * count * (count - 1) < 2 * gap:
        count += 1
    return count
