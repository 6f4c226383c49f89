"""Goodput as the tools count it; what the reference counts is in refsched.metrics."""

from collections.abc import Iterable, Mapping
from decimal import Decimal

Slo = Mapping[str, Decimal]  # seconds, under ttft, tpot, e2e, …
Values = Mapping[str, Decimal | None]


def is_good(values: Values, slo: Slo, absent: str) -> bool:
    """Say whether all targets are met; a value that is not defined passes or fails, as `absent` says."""
    return all(meets(values.get(name), target, absent) for name, target in slo.items())


def meets(value: Decimal | None, target: Decimal, absent: str) -> bool:
    """Say whether one target is met."""
    return absent == "pass" if value is None else value <= target


def count_good(requests: Iterable[Values], slo: Slo, absent: str) -> int:
    """Count the requests that meet all targets."""
    return sum(is_good(values, slo, absent) for values in requests)
