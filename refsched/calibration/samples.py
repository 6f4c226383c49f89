"""What is measured: iterations, and how long they took. Measuring is not normative, so times here are floats."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from refsched.model import Work
from refsched.units import Tokens

KINDS = ("prefill", "decode", "mixed")


@dataclass(frozen=True, slots=True)
class Step:
    """Name one iteration to be measured: its chunks as (start, count), and the cached tokens each decode reads."""

    chunks: tuple[tuple[Tokens, Tokens], ...] = ()
    contexts: tuple[Tokens, ...] = ()

    @property
    def work(self) -> Work:
        """Give it as a cost model sees it."""
        return Work(self.chunks, len(self.contexts), sum(self.contexts))

    @property
    def tokens(self) -> Tokens:
        """Count the tokens it computes."""
        return count_tokens(self.work)


@dataclass(frozen=True, slots=True)
class Sample:
    """Hold the median time of an iteration, or of one layer of it, and the quartiles' distance relative to it."""

    work: Work
    seconds: float
    spread: float = 0.0


@dataclass(frozen=True, slots=True)
class Errors:
    """Sum up relative errors: their absolute median, 95th percentile and maximum, and their signed mean."""

    n: int
    median: float
    p95: float
    max: float
    bias: float


def count_tokens(work: Work) -> Tokens:
    """Count the tokens of an iteration."""
    return work.decodes + sum(count for _, count in work.chunks)


def get_kind(work: Work) -> str:
    """Say whether an iteration holds prefill, decodes or both."""
    return "mixed" if work.chunks and work.decodes else "prefill" if work.chunks else "decode"


def split_by_kind(samples: Iterable[Sample]) -> dict[str, list[Sample]]:
    """Sort samples by kind; a kind of which there is none is left out."""
    parts: dict[str, list[Sample]] = {kind: [] for kind in KINDS}
    for sample in samples:
        parts[get_kind(sample.work)].append(sample)
    return {kind: part for kind, part in parts.items() if part}


def quantile(values: Sequence[float], share: float) -> float:
    """Give the quantile of floats, interpolated linearly between order statistics; values must not be empty."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * share
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def sum_up(predicted: Sequence[float], measured: Sequence[float]) -> Errors:
    """Sum up the errors of predictions, relative to what was measured; both must not be empty."""
    signed = [guess / true - 1 for guess, true in zip(predicted, measured, strict=True)]
    absolute = [abs(error) for error in signed]
    bias = sum(signed) / len(signed)
    return Errors(len(signed), quantile(absolute, 0.5), quantile(absolute, 0.95), max(absolute), bias)
