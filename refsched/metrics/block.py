"""What a measurement gives back: one block for any set of Records, and how it was asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from refsched.errors import InputError
from refsched.metrics.confidence import Interval
from refsched.metrics.failures import Bounds
from refsched.metrics.fidelity import Fidelity
from refsched.metrics.goodput import Goodput, Policy, Slo
from refsched.metrics.quantile import DEFAULT_METHOD
from refsched.metrics.stalls import Deadlines, Playback, Stalls
from refsched.metrics.steady import ColdStart, InWindow, Steadiness
from refsched.metrics.throughput import Backlog, Throughput
from refsched.metrics.window import Choice, Window
from refsched.units import Ticks

QUANTILES = {"p50": Fraction(1, 2), "p90": Fraction(9, 10), "p95": Fraction(19, 20), "p99": Fraction(99, 100)}
SUMMARISED = {  # the five that a short summary shows
    "ttft": "ttft.any",
    "tpot": "tpot.decode/(n-1)",
    "gap": "itl.chunk",
    "longest_gap": "longest_gap",
    "total": "e2e.last_token",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """Say how to measure: the definition of quantiles, conditions and their policy, and the stall threshold."""

    method: str = DEFAULT_METHOD
    slos: Sequence[Slo] = ()
    policy: Policy = Policy()
    stall: Ticks | None = None
    window: Choice | None = None  # without one, the whole run
    playback: Fraction | None = None  # tokens a second that a reader takes
    deadlines: tuple[Ticks, Ticks] | None = None  # of the first token, and of each after it


@dataclass(frozen=True, slots=True)
class Summary:
    """Summarise a population in ticks; `undefined` counts the requests that have no such value."""

    n: int
    undefined: int
    mean: Fraction | None
    quantiles: Mapping[str, Fraction | None]
    max: Fraction | None
    intervals: Mapping[str, Interval] = field(default_factory=dict)  # of populations of one value per request


@dataclass(frozen=True, slots=True)
class Means:
    """Hold three means of a time per token: of the requests, of their tokens, and of all time over all tokens."""

    over_requests: Fraction | None
    over_tokens: Fraction | None
    ratio_of_sums: Fraction | None


@dataclass(frozen=True, slots=True)
class Across:
    """Hold what needs one clock for all requests."""

    window: Window
    throughput: Throughput
    backlog: Backlog
    rule: str | None = None  # by which requests were attributed to the window; None where it is the whole run


@dataclass(frozen=True, slots=True)
class WholeRun:
    """Hold what is said of a whole run, and of none of its groups."""

    fidelity: Fidelity
    steadiness: Steadiness
    cold_start: ColdStart | None
    windows: Mapping[str, InWindow]


@dataclass(frozen=True, slots=True)
class Measured:
    """Hold the block: counts by outcome, populations by name, what needs a common clock; the same by group [A13]."""

    method: str
    clock: str
    counts: Mapping[str, int]
    populations: Mapping[str, Summary]
    means: Mapping[str, Means]
    failures: Mapping[str, Mapping[str, Bounds]]
    goodput: Goodput | None
    stalls: Stalls | None
    playback: Playback | None
    deadlines: Deadlines | None
    tokens: Mapping[str, int]
    across: Across | None
    run: WholeRun | None
    groups: Mapping[str, "Measured"]

    @property
    def latency(self) -> Mapping[str, Summary]:
        """Give the five populations of the short summary."""
        return {short: self.populations[name] for short, name in SUMMARISED.items()}

    @property
    def window(self) -> Window:
        """Give the window of the run; raise InputError where there is no common clock."""
        return self.get_across().window

    @property
    def throughput(self) -> Throughput:
        """Give the rates; raise InputError where there is no common clock."""
        return self.get_across().throughput

    @property
    def backlog(self) -> Backlog:
        """Give the requests in the system; raise InputError where there is no common clock."""
        return self.get_across().backlog

    def get_across(self) -> Across:
        """Give what needs a common clock; raise InputError where there is none."""
        if self.across is None:
            raise InputError("every record has a clock of its own: nothing is computed across requests")
        return self.across
