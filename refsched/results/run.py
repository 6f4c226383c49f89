"""What a reader makes of a result file: Records, the tool's own numbers, and what the file cannot tell."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal, NamedTuple

from refsched.record import Record

RELATIVE = Decimal("1e-9")  # how near a recomputed number must come to the reported one
NOISE = Decimal("1e-15")  # what a tool's floats may leave where the exact result is 0
CUT = "the stream was cut, and the tool counts it as success"
GAPS = frozenset(("itl.chunk", "itl.even", "itl.burst", "longest_gap"))
FIRST_TOKEN = frozenset(("ttft.any", "ttft.content", "tpot.decode/(n-1)", "tpot.decode/(n-k1)"))
LAST_TOKEN = frozenset(
    ("e2e.last_token", "latency.from_schedule", "latency.from_send")
    + ("tpot.decode/(n-1)", "tpot.decode/(n-k1)", "tpot.e2e/n")
)
UNSUPPORTED: Literal["unsupported"] = "unsupported"


class Finding(NamedTuple):
    """Give the name of something found, and the sentence that says why."""

    id: str
    because: str


@dataclass(frozen=True, slots=True)
class Reported:
    """Hold one number that a tool reports, and what came of computing it again under a named definition."""

    name: str
    value: Decimal | None
    unit: str
    reproduced: bool | Literal["unsupported"]
    definition: str
    computed: Decimal | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Success:
    """Say how many requests truly succeeded, as far as the file shows it."""

    counted: int  # what the tool counts as success
    shown: int | None  # what the file shows to have ended properly; None: cannot be known from this file
    because: str


@dataclass(frozen=True, slots=True)
class Run:
    """Hold one run as its files tell it."""

    tool: str
    label: str
    files: tuple[str, ...]
    records: tuple[Record, ...]
    reported: tuple[Reported, ...]
    success: Success
    claims: Mapping[str, Decimal] = field(default_factory=dict)  # the tool's summary under shared names
    limits: tuple[str, ...] = ()  # what the file cannot support
    traps: tuple[Finding, ...] = ()
    contradictions: tuple[Finding, ...] = ()
    slo: Mapping[str, Decimal] = field(default_factory=dict)  # the targets the tool itself was given, in seconds
    trim: str = ""  # how the requests were selected, where not all are in the file
    without: frozenset[str] = frozenset()  # populations that the Records of this file do not support


def is_same(value: Decimal, computed: Decimal) -> bool:
    """Say whether a recomputed number equals the reported one within 1e-9 of it."""
    return abs(value - computed) <= RELATIVE * max(abs(value), abs(computed)) + NOISE
