"""An offer: a request, when it is sent and by whom. A workload: all offers of a run, and where they come from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from refsched.model import Request
from refsched.units import Ticks


@dataclass(frozen=True, slots=True)
class Offer:
    """Offer `request` at `at` ticks from the start of the run; its client gives up at `cancel_at`, if ever."""

    at: Ticks
    request: Request
    group: str = ""
    cancel_at: Ticks | None = None


@dataclass(frozen=True, slots=True)
class Workload:
    """Hold offers in order of time, what was odd about their source, and what is needed to get them again."""

    name: str
    kind: str  # the format, "generator" or "scenario"
    offers: tuple[Offer, ...]
    notes: tuple[str, ...] = ()  # one sentence each, with counts and row numbers
    source: Mapping[str, str | int] = field(default_factory=dict)  # sha256, seed, … for the provenance
