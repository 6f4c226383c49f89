"""Step times fitted to measurements: a table over tokens, linear attention terms, one set of both for each regime.

Two regimes, because attention runs other kernels as soon as an iteration holds a prefill chunk: iterations of decodes
only, and iterations with prefill. The component form, the two-regime form and the linear form are all this model with
other numbers. For fixed chunk counts and decodes every term is constant or linear in `context` and in the chunks'
starts, so the affine contract holds exactly [decision 10]. Covered [B21]: KV growth, later chunks attending to longer
history, the knee over tokens; mixed batches where the two regimes differ. Left out: how skewed contexts are, overlap
of host and device beyond one constant per iteration.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from operator import mul

from refsched.errors import InputError
from refsched.model import Work
from refsched.units import UNLIMITED, Ticks, Tokens

TERMS: Mapping[str, str] = {
    "prefill_call": "once in an iteration that has a prefill chunk",
    "decode_call": "once in an iteration that has a decode",
    "chunk": "for each prefill chunk",
    "chunk_token": "for each token of a chunk",
    "pair": "for each pair of a chunk's token and a token it attends to, itself included",
    "history": "for each token computed before a chunk",
    "decode": "for each decode",
    "kv": "for each cached token that a decode reads",
}
CHUNK_TOKENS = list(TERMS).index("chunk_token")


def count_terms(work: Work) -> tuple[int, ...]:
    """Count what each term of TERMS is paid for; token k of a chunk, from 1, attends to start + k tokens."""
    chunks, decodes, context = work
    tokens = pairs = history = 0
    for start, count in chunks:
        tokens += count
        pairs += count * start + count * (count + 1) // 2
        history += start
    return int(bool(chunks)), int(bool(decodes)), len(chunks), tokens, pairs, history, decodes, context


@dataclass(frozen=True, slots=True)
class Table:
    """Interpolate between knots, rounded down to a tick; raise InputError unless knots rise and no time is negative."""

    knots: tuple[int, ...]
    values: tuple[Ticks, ...]

    def __post_init__(self) -> None:
        rising = all(low < high for low, high in zip(self.knots, self.knots[1:], strict=False))
        if not self.knots or len(self.knots) != len(self.values) or not rising or self.knots[0] < 0:
            raise InputError("the knots of a table must be whole numbers that rise")
        if min(self.values) < 0:
            raise InputError("a table cannot hold a negative time")

    def at(self, count: int) -> Ticks:
        """Give the time at `count`: the first value below the first knot, the upper half's mean slope past the last."""
        place = bisect_left(self.knots, count)
        if place == 0:
            return self.values[0]
        low, high = (place - 1, place) if place < len(self.knots) else (self.find_half(), -1)
        run, rise = self.knots[high] - self.knots[low], self.values[high] - self.values[low]
        if place == len(self.knots):
            return self.values[-1] + (max(0, rise) * (count - self.knots[-1]) // run if run else 0)
        return self.values[low] + rise * (count - self.knots[low]) // run

    def find_half(self) -> int:
        """Find the first knot of the table's upper half."""
        return bisect_left(self.knots, self.knots[-1] / 2)


@dataclass(frozen=True, slots=True)
class Regime:
    """Hold the table over an iteration's tokens and the price of each of TERMS, in ticks."""

    table: Table
    prices: tuple[Ticks, ...]

    def duration(self, tokens: Tokens, counts: Sequence[int]) -> Ticks:
        """Give the table's time plus all terms."""
        priced: Ticks = sum(map(mul, self.prices, counts))
        return self.table.at(tokens) + priced


@dataclass(frozen=True, slots=True)
class Validity:
    """Hold the largest of each kind that was measured; UNLIMITED where nothing is known."""

    tokens: Tokens = UNLIMITED  # in an iteration
    chunk: Tokens = UNLIMITED
    history: Tokens = UNLIMITED  # computed before a chunk
    decode_batch: int = UNLIMITED
    decode_context: Tokens = UNLIMITED  # cached tokens that one decode reads

    def check(self, work: Work, tokens: Tokens) -> None:
        """Raise InputError where an iteration of that many tokens is outside what was measured."""
        decodes = work.decodes
        inside = tokens <= self.tokens and decodes <= self.decode_batch
        inside = inside and (not decodes or work.context < (self.decode_context + 1) * decodes)
        for start, count in work.chunks:
            inside = inside and count <= self.chunk and start <= self.history
        if not inside:
            raise self.explain(work)

    def explain(self, work: Work) -> InputError:
        """Name the first range that an iteration leaves."""
        pairs = ((name, value, getattr(self, name)) for name, value in measure_work(work).items())
        return next(explain_outside(name, value, limit) for name, value, limit in pairs if value > limit)


def measure_work(work: Work) -> Mapping[str, int]:
    """Give an iteration's value for each limit of Validity; its decodes' contexts are known by their mean only."""
    return {
        "tokens": work.decodes + sum(count for _, count in work.chunks),
        "chunk": max((count for _, count in work.chunks), default=0),
        "history": max((start for start, _ in work.chunks), default=0),
        "decode_batch": work.decodes,
        "decode_context": work.context // work.decodes if work.decodes else 0,
    }


def explain_outside(name: str, value: int, limit: int) -> InputError:
    """Say which measured range is left, and how to insist."""
    what = name.replace("_", " ")
    problem = f"{what} {value:,} is outside what was measured, at most {limit:,}; --extrapolate insists"
    return InputError(problem, field="--cost")


@dataclass(frozen=True, slots=True)
class FittedCost:
    """Price an iteration as fitted: host overhead + the regime's time + what depends on the sequences that sample.

    `rounding` is the largest relative change that rounding a coefficient to ticks made. An iteration outside
    `validity` raises InputError.
    """

    name: str
    label: str
    overhead: Ticks
    decode_only: Regime
    with_prefill: Regime
    rows: Table
    layers: int
    rounding: Fraction
    validity: Validity = Validity()
    error: str = "unknown"

    @property
    def affine(self) -> bool:
        """Promise the affine contract: every term is constant or linear in context and in the chunks' starts."""
        return True

    def duration(self, work: Work) -> Ticks:
        """Give the ticks of one iteration; an empty one pays the overhead, one tick at least."""
        counts = count_terms(work)
        tokens = work.decodes + counts[CHUNK_TOKENS]
        self.validity.check(work, tokens)
        if not tokens:
            return max(self.overhead, 1)
        regime = self.with_prefill if work.chunks else self.decode_only
        return self.overhead + regime.duration(tokens, counts) + self.rows.at(len(work.chunks) + work.decodes)

    def describe(self) -> Mapping[str, str]:
        """Give the error, what rounding did, the measured ranges and the coefficients."""
        page = {"error": self.error, "overhead": f"{self.overhead} ps", "layers": str(self.layers)}
        page["largest relative rounding"] = f"{float(self.rounding):.2g}"
        for name, limit in get_limits(self.validity).items():
            page[f"measured up to, {name.replace('_', ' ')}"] = f"{limit:,}"
        for title, regime in (("decode only", self.decode_only), ("with prefill", self.with_prefill)):
            page[f"{title}, table"] = f"{len(regime.table.knots)} knots"
            prices = zip(TERMS, regime.prices, strict=True)
            page |= {f"{title}, {term}": f"{price} ps" for term, price in prices if price}
        return page


def get_limits(validity: Validity) -> Mapping[str, int]:
    """Give the measured ranges that are known."""
    limits = {field.name: getattr(validity, field.name) for field in fields(Validity)}
    return {name: limit for name, limit in limits.items() if limit < UNLIMITED}


def set_overhead(cost: FittedCost, overhead: Ticks) -> FittedCost:
    """Let every iteration take this much host time beside what the device does."""
    return replace(cost, overhead=overhead)
