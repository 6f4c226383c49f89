"""The ledger of one run: each reported number beside what it is computed to, under the tool's definition."""

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from fractions import Fraction

from refsched.results.fields import Fields
from refsched.results.run import UNSUPPORTED, Reported, is_same
from refsched.results.sample import Sample


class Ledger:
    """Collect reported numbers in the order of the file."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self.lines: list[Reported] = []

    def add(self, fields: Fields, key: str, unit: str, definition: str, computed: Decimal | int | None) -> None:
        """Enter a reported number that can be computed again; nothing where the file does not report it.

        null is what a tool writes for a number that is not defined, so it is reproduced by None.
        """
        if not fields.has(key):
            return
        value = fields.find(key)
        again = None if computed is None else Decimal(computed)
        same = again is None if value is None else again is not None and is_same(value, again)
        reason = None if same else describe_difference(value, again)
        self.lines.append(Reported(fields.name(key), value, unit, same, definition, again, reason))

    def add_value(
        self, fields: Fields, key: str, value: Decimal | None, unit: str, definition: str, computed: Decimal | None
    ) -> None:
        """Enter a reported number that the file writes in its own way, such as a number in quotes."""
        same = computed is None if value is None else computed is not None and is_same(value, computed)
        reason = None if same else describe_difference(value, computed)
        self.lines.append(Reported(fields.name(key), value, unit, same, definition, computed, reason))

    def skip(self, fields: Fields, key: str, unit: str, definition: str, reason: str) -> None:
        """Enter a reported number that this file cannot support, and why."""
        if fields.has(key):
            value = fields.find(key)
            self.lines.append(Reported(fields.name(key), value, unit, UNSUPPORTED, definition, None, reason))

    def skip_all(self, fields: Fields, keys: Iterable[str], unit: str, definition: str, reason: str) -> None:
        """Enter several numbers that this file cannot support."""
        for key in keys:
            self.skip(fields, key, unit, definition, reason)


def describe_difference(value: Decimal | None, computed: Decimal | None) -> str:
    """Say how a recomputed number differs."""
    if value is None or computed is None:
        return f"the file says {'null' if value is None else value}, the data gives {show(computed)}"
    return f"the file says {value}, its own data gives {show(computed)}"


def show(value: Decimal | None) -> str:
    """Write a number for a sentence."""
    return "nothing" if value is None else f"{value:.10g}"


Statistic = Callable[[Sample], Decimal | None]


def percentile(text: str) -> Statistic:
    """Make the statistic for a percentile written as "99" or "99.9"; linear between ranks."""
    p = Fraction(text) / 100
    return lambda sample: sample.quantile(p)


COMMON: Mapping[str, Statistic] = {
    "mean": Sample.mean,
    "avg": Sample.mean,
    "min": Sample.least,
    "max": Sample.greatest,
    "std": Sample.deviation,
    "stddev": Sample.deviation,
    "median": percentile("50"),
    "sum": Sample.total,
    "count": lambda sample: Decimal(sample.n),
}


def get_statistic(name: str) -> Statistic | None:
    """Find the statistic that a key names: mean, std, p99, p99.9 and the like; None for any other key."""
    if name in COMMON:
        return COMMON[name]
    digits = name.removeprefix("p")
    is_percentile = name.startswith("p") and digits.replace(".", "", 1).isdigit() and digits.isascii()
    return percentile(digits) if is_percentile and Fraction(digits) <= 100 else None
