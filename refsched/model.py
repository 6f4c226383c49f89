"""The vocabulary of scheduling: what is asked, what limits apply, what was decided.

Everything here is frozen and only checks itself. A Trace is what a scheduler decided, iteration by iteration,
without a clock; a Timeline is the same with start and end ticks, run-length: equal things are stored once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from refsched.errors import InputError
from refsched.units import Blocks, Ticks, Tokens

LARGEST_COUNT = 10**12  # beyond it a count of tokens, blocks or requests is a mistake


def check_count(value: object, name: str, least: int = 1) -> int:
    """Return `value` if it is an integer of at least `least`; raise InputError naming the field otherwise."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise InputError(f"{value!r} is not a whole number", field=name)
    if value < least:
        raise InputError(f"{value} is below {least}", field=name)
    if value > LARGEST_COUNT:
        raise InputError(f"{value} is too large", field=name)
    return value


@dataclass(frozen=True, slots=True)
class Request:
    """Ask for `output` tokens after a prompt of `prompt` tokens; raise InputError unless both are positive."""

    id: str
    prompt: Tokens
    output: Tokens
    priority: int = 0  # smaller is served first, where a dialect looks at it
    prefix: tuple[int, ...] = ()  # one number per full block of the prompt; equal numbers mean equal content so far
    output_blocks: tuple[int, ...] = ()  # the same for the blocks that outputs will fill

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not self.id:
            raise InputError(f"{self.id!r} is not a name", field="id")
        check_count(self.prompt, "prompt")
        check_count(self.output, "output")
        check_count(self.priority, "priority", least=-LARGEST_COUNT)


@dataclass(frozen=True, slots=True)
class Limits:
    """Bound one iteration and the KV pool; None means that there is no such limit [B7]."""

    token_budget: Tokens | None
    max_seqs: int | None
    chunk_cap: Tokens | None = None
    block_size: Tokens = 1
    num_blocks: Blocks | None = None
    max_len: Tokens | None = None

    def __post_init__(self) -> None:
        for name in ("token_budget", "max_seqs", "chunk_cap", "num_blocks", "max_len"):
            if getattr(self, name) is not None:
                check_count(getattr(self, name), name)
        check_count(self.block_size, "block_size")


class Entry(NamedTuple):
    """Plan `count` tokens of request `id`, from position `start` of its known tokens."""

    id: str
    start: Tokens
    count: Tokens  # type: ignore[assignment]  # the protocol's name; it hides tuple.count, which no one needs here


@dataclass(frozen=True, slots=True)
class Plan:
    """Say what one iteration runs, whom it preempted (in order), whom it refused, what came from a prefix cache."""

    entries: tuple[Entry, ...] = ()
    preempted: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    cached: tuple[tuple[str, Tokens], ...] = ()


NOTHING = Plan()


class Work(NamedTuple):
    """Count what one iteration computes: all that a cost model may look at.

    `chunks` are the (start, count) pairs of the prefill chunks in plan order, `decodes` the decode entries,
    `context` the cached tokens those decodes read: the sum of their starts.
    """

    chunks: tuple[tuple[Tokens, Tokens], ...]
    decodes: int
    context: Tokens


@dataclass(frozen=True, slots=True)
class State:
    """Show an engine between two iterations: queues in order, tokens computed, blocks free and held.

    Fields that an engine does not tell are None; what needs them is then inconclusive, never passed.
    """

    running: tuple[str, ...] | None = None
    waiting: tuple[str, ...] | None = None
    computed: Mapping[str, Tokens] | None = None
    held: Mapping[str, Blocks] | None = None
    free: Blocks | None = None


@dataclass(frozen=True, slots=True)
class Submitted:
    """Record that a request was submitted, and the reason if the engine refused it at once."""

    request: Request
    rejected: str | None = None


@dataclass(frozen=True, slots=True)
class Planned:
    """Record one plan, with the engine's state after planning as far as it was told."""

    plan: Plan
    state: State = State()


@dataclass(frozen=True, slots=True)
class Completed:
    """Record which requests got an output token in the planned iteration, and which of them ended."""

    emitted: tuple[str, ...]
    finished: tuple[str, ...]
    free: Blocks | None = None


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Record that the client gave a request up."""

    id: str


@dataclass(frozen=True, slots=True)
class Failed:
    """Record that the engine answered an operation with an error of its own."""

    op: str
    error: str


Event = Submitted | Planned | Completed | Cancelled | Failed


@dataclass(frozen=True, slots=True)
class Trace:
    """Hold what a scheduler decided under `limits`, event by event, without a clock."""

    engine: str
    dialect: Mapping[str, object]
    limits: Limits
    events: tuple[Event, ...]
    header: Mapping[str, object] = field(default_factory=dict)


class Iteration(NamedTuple):
    """Give one iteration its place in time; it delivers the tokens of `emitted` at `end`."""

    number: int
    start: Ticks
    end: Ticks
    plan: Plan
    work: Work
    emitted: tuple[str, ...]
    finished: tuple[str, ...]


class TimelineRun(NamedTuple):
    """Hold `repeats` back-to-back iterations whose plan repeats: each entry starts where it ended before.

    Iteration k of the run (from 0) lasts duration + k * growth; its entries are (id, start + k * count, count).
    """

    start: Ticks
    duration: Ticks
    growth: Ticks
    repeats: int
    plan: Plan
    emitted: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """Hold a whole run in order of time, as maximal runs of repeating iterations."""

    runs: tuple[TimelineRun, ...]
