"""What a workload holds, in exact numbers: size, spacing, lengths, prefix reuse; rounded only when written."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from refsched.errors import InputError
from refsched.model import Request
from refsched.units import TICKS_PER_SECOND, Ticks, Tokens, round_decimal
from refsched.workload.offer import Workload
from refsched.workload.spacing import Spacing, compute_spacing, write_root

LENGTHS: tuple[Tokens, ...] = (4096, 8192, 32768)  # usual context lengths of models


@dataclass(frozen=True, slots=True)
class LengthFacts:
    """Describe one length over all rows; p50 is the nearest-rank median."""

    total: Tokens
    least: Tokens
    mean: Fraction
    p50: Tokens
    most: Tokens


@dataclass(frozen=True, slots=True)
class Above:
    """Count the rows longer than `tokens`: by their prompt alone, and by prompt and output together."""

    tokens: Tokens
    prompts: int
    totals: int


@dataclass(frozen=True, slots=True)
class Reuse:
    """Count what a boundless prefix cache would find: the longest prefix of each prompt that came before.

    `blocks` are full blocks, the only ones that a cache of blocks can share; `ids` are a file's hash ids, which may
    have one more for each prompt's partial last block: published shares count those.
    """

    blocks: int
    blocks_reused: int
    ids: int
    ids_reused: int


@dataclass(frozen=True, slots=True)
class WorkloadFacts:
    """Hold the facts of a workload; `rate` is rows over span, None where the span is 0."""

    name: str
    kind: str
    rows: int
    span: Ticks
    rate: Fraction | None  # requests a second
    spacing: Spacing
    prompt: LengthFacts
    output: LengthFacts
    single_output: int  # rows with one output token: their TPOT is undefined
    above: tuple[Above, ...]
    groups: tuple[tuple[str, int], ...]
    cancels: int
    reuse: Reuse | None
    notes: tuple[str, ...]


def summarise(workload: Workload, lengths: Sequence[Tokens] = LENGTHS) -> WorkloadFacts:
    """Summarise a workload, counting rows above each of `lengths`; raise InputError if it is empty."""
    offers = workload.offers
    if not offers:
        raise InputError("has no requests", file=workload.name)
    requests = [offer.request for offer in offers]
    span = offers[-1].at - offers[0].at
    return WorkloadFacts(
        name=workload.name,
        kind=workload.kind,
        rows=len(offers),
        span=span,
        rate=Fraction(len(offers) * TICKS_PER_SECOND, span) if span else None,
        spacing=compute_spacing([offer.at for offer in offers]),
        prompt=describe_lengths([request.prompt for request in requests]),
        output=describe_lengths([request.output for request in requests]),
        single_output=sum(1 for request in requests if request.output == 1),
        above=tuple(count_above(requests, tokens) for tokens in lengths),
        groups=count_groups([offer.group for offer in offers]),
        cancels=sum(1 for offer in offers if offer.cancel_at is not None),
        reuse=count_reuse(workload, requests),
        notes=workload.notes,
    )


def describe_lengths(values: Sequence[Tokens]) -> LengthFacts:
    """Describe lengths, at least one."""
    ordered, total = sorted(values), sum(values)
    return LengthFacts(
        total, ordered[0], Fraction(total, len(values)), ordered[(len(values) + 1) // 2 - 1], ordered[-1]
    )


def count_above(requests: Sequence[Request], tokens: Tokens) -> Above:
    """Count the requests longer than `tokens`; none is cut."""
    prompts = sum(1 for request in requests if request.prompt > tokens)
    totals = sum(1 for request in requests if request.prompt + request.output > tokens)
    return Above(tokens, prompts, totals)


def count_groups(names: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Count the requests of each group, in order of first sight."""
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return tuple(counts.items())


def count_reuse(workload: Workload, requests: Sequence[Request]) -> Reuse | None:
    """Count reused blocks, or return None for a workload without prefixes."""
    seen: set[int] = set()
    blocks = reused = 0
    for request in requests:
        blocks += len(request.prefix)
        reused += count_known(request.prefix, seen)
        seen.update(request.prefix)
    ids = int(workload.source.get("hash_ids", blocks))
    ids_reused = int(workload.source.get("hash_ids_reused", reused))
    return Reuse(blocks, reused, ids, ids_reused) if ids else None


def count_known(prefix: Sequence[int], seen: set[int]) -> int:
    """Count the blocks of a prompt up to the first that is new."""
    for place, number in enumerate(prefix):
        if number not in seen:
            return place
    return len(prefix)


def write_facts(facts: WorkloadFacts) -> list[tuple[str, str]]:
    """Write the facts as (name, value) rows for a person, rounded."""
    rows = [(name, write(facts)) for name, write in _ROWS]
    rows += [
        (f"longer than {each.tokens}", f"{each.prompts} prompts, {each.totals} with their output")
        for each in facts.above
    ]
    return rows + [("note", note) for note in facts.notes]


def write_seconds(ticks: Ticks | Fraction | None) -> str:
    """Write ticks as seconds with three decimals."""
    return "undefined" if ticks is None else f"{round_decimal(Fraction(ticks) / TICKS_PER_SECOND, 3)} s"


def _write_cv(facts: WorkloadFacts) -> str:
    square = facts.spacing.cv_squared
    return "undefined" if square is None else write_root(square, 3)


def _write_lengths(facts: LengthFacts) -> str:
    mean = round_decimal(facts.mean, 1)
    return f"min {facts.least}, mean {mean}, p50 {facts.p50} (nearest rank), max {facts.most}, total {facts.total}"


def _write_groups(facts: WorkloadFacts) -> str:
    return ", ".join(f"{name or '(none)'} {count}" for name, count in facts.groups)


def _write_reuse(facts: WorkloadFacts) -> str:
    if facts.reuse is None:
        return "no hash ids"
    reuse = facts.reuse
    shares = ((reuse.ids_reused, reuse.ids, "ids"), (reuse.blocks_reused, reuse.blocks, "full blocks"))
    return ", ".join(
        f"{round_decimal(Fraction(100 * part, whole), 1)} % of {whole} {what}" for part, whole, what in shares if whole
    )


_ROWS: tuple[tuple[str, Callable[[WorkloadFacts], str]], ...] = (
    ("workload", lambda facts: facts.name),
    ("format", lambda facts: facts.kind),
    ("rows", lambda facts: str(facts.rows)),
    ("span", lambda facts: write_seconds(facts.span)),
    ("rate (rows / span)", lambda facts: "undefined" if facts.rate is None else f"{round_decimal(facts.rate, 3)} /s"),
    ("mean gap", lambda facts: write_seconds(facts.spacing.mean_gap)),
    ("CV of the gaps", _write_cv),
    ("longest gap", lambda facts: write_seconds(facts.spacing.longest_gap)),
    ("equal to the time before", lambda facts: str(facts.spacing.ties)),
    ("prompt tokens", lambda facts: _write_lengths(facts.prompt)),
    ("output tokens", lambda facts: _write_lengths(facts.output)),
    ("one output token (TPOT undefined)", lambda facts: str(facts.single_output)),
    ("groups", _write_groups),
    ("given up by their client", lambda facts: str(facts.cancels)),
    ("found by a boundless prefix cache", _write_reuse),
)
