"""How a run ends: done, stuck or livelocked, and in the last two cases who holds what and who waits for what.

Stuck: an empty plan, nothing preempted, nothing outstanding, nothing left to come, while requests are live.
Livelock: a state repeats after a preemption without an emission in between, and nothing is left to come that could
break the circle [decision 5].
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from refsched.model import Limits, Request, State
from refsched.scheduling.kv import explain_impossible
from refsched.units import Blocks, Tokens, ceil_div

Signature = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Blocked:
    """Show one live request of a run that cannot go on: what it holds and what it lacks (in blocks)."""

    id: str
    computed: Tokens
    known: Tokens
    holds: Blocks
    lacks: Blocks
    impossible: str | None = None

    def sentence(self) -> str:
        """Say it in words."""
        text = f"{self.id} holds {self.holds} blocks with {self.computed} of {self.known} known tokens computed"
        text += (
            f" and lacks {self.lacks} blocks for the rest"
            if self.lacks
            else " and lacks no block: the rule never plans it"
        )
        return text + (f"; it can never finish: {self.impossible}" if self.impossible else "")


@dataclass(frozen=True, slots=True)
class Ending:
    """Say how a run ended, after which iteration; `period` is the length of a livelock's circle."""

    kind: str  # done | stuck | livelock
    iterations: int
    period: int | None = None
    free: Blocks | None = None
    blocked: tuple[Blocked, ...] = ()

    def sentences(self) -> list[str]:
        """Say in words why the run could not go on; nothing for a run that is done."""
        if self.kind == "done":
            return []
        repeated = f", for its state repeats every {self.period} iterations without an output" if self.period else ""
        free = "" if self.free is None else f"; {self.free} blocks are free"
        return [
            f"after {self.iterations} iterations the run is {self.kind}{repeated}{free}",
            *(each.sentence() for each in self.blocked),
        ]


class Watch:
    """Notice that a state repeats after a preemption without an emission in between."""

    def __init__(self) -> None:
        self.seen: dict[Signature, int] = {}

    def forget(self) -> None:
        """Start afresh, as something new happened: an emission, an arrival, a cancellation."""
        self.seen.clear()

    def find_period(self, state: State, iteration: int) -> int | None:
        """Note the state after a preemption; return how many iterations ago it was the same, if it ever was."""
        signature = get_signature(state)
        if signature is None:
            return None
        before = self.seen.setdefault(signature, iteration)
        return iteration - before or None


def get_signature(state: State) -> Signature | None:
    """Reduce a state to what decides the next plans, or None where the engine does not tell it."""
    if state.computed is None or state.running is None or state.waiting is None:
        return None
    computed = state.computed
    return tuple((id, computed.get(id, 0)) for id in state.running), tuple(
        (id, computed.get(id, 0)) for id in state.waiting
    )


def explain_blocked(
    state: State, limits: Limits, live: Iterable[tuple[Request, Tokens]], stop: str = "reaches"
) -> tuple[Blocked, ...]:
    """Show, for each live request and its known tokens, what it holds and what it lacks."""
    held: Mapping[str, Blocks] = state.held or {}
    computed: Mapping[str, Tokens] = state.computed or {}
    return tuple(
        Blocked(
            id=request.id,
            computed=computed.get(request.id, 0),
            known=known,
            holds=held.get(request.id, 0),
            lacks=max(0, ceil_div(known, limits.block_size) - held.get(request.id, 0)),
            impossible=explain_impossible(request, limits, stop),
        )
        for request, known in live
    )
