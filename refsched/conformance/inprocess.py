"""Engines in this process: whatever has the methods of the Engine protocol, asked in the messages of the protocol.

What it returns is turned into an answer, and then read as strictly as one that came over a pipe.
"""

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from refsched.conformance.messages import read_limits
from refsched.conformance.wire import Message
from refsched.dialect import Dialect
from refsched.errors import EngineError
from refsched.model import Limits, Request

Answer = dict[str, Any]
PROBED = Limits(token_budget=8, max_seqs=4, num_blocks=64)  # for an engine that is only asked what it claims
OPTIONAL = ("MOD-REQ-1", "MOD-ARR-1")  # clauses that an engine is held to only if it claims them


class InProcess:
    """Ask an engine that a factory makes anew at each reset.

    `dialect` and `clauses` are what it claims; None: what the factory itself says in attributes of these names.
    """

    def __init__(
        self,
        factory: Callable[[Limits], Any],
        dialect: Mapping[str, object] | None,
        seconds: float | None,
        name: str = "refsched",
        clauses: tuple[str, ...] | None = OPTIONAL,
    ):
        self.factory, self.dialect, self.name, self.clauses = factory, dialect, name, clauses
        self.seconds = seconds  # for one answer; None trusts the engine
        self.engine: Any = None

    def ask(self, request: Message) -> Message:
        """Answer one message."""
        op = request["op"]
        try:
            if self.seconds is None:
                return OPERATIONS[op](self, request)
            with time_limit(self.seconds, op):
                return OPERATIONS[op](self, request)
        except EngineError:
            raise
        except NotImplementedError:
            return {"ok": False, "unsupported": op}
        except (Exception, SystemExit) as error:
            raise EngineError(f"{op} raises {type(error).__name__}: {error}") from None

    def close(self) -> None:
        """Forget the engine."""
        self.engine = None

    # OPERATIONS

    def hello(self, request: Message) -> Answer:
        """Say who the engine is and which dialect it claims."""
        claim = self.dialect if self.dialect is not None else self.find_claim()
        clauses = getattr(self.factory, "clauses", ()) if self.clauses is None else self.clauses
        told = {"engine": {"name": self.name}, "clauses": list(clauses)}
        return {"ok": True, **told, **({} if claim is None else {"dialect": dict(claim)})}

    def find_claim(self) -> Mapping[str, object] | None:
        """Read the claim from the factory, or else from an engine that it makes."""
        claim = get_claim(self.factory)
        return get_claim(self.factory(PROBED)) if claim is None else claim

    def reset(self, request: Message) -> Answer:
        """Make a new engine."""
        self.engine = self.factory(read_limits(request["limits"]))
        return {"ok": True}

    def submit(self, request: Message) -> Answer:
        """Hand a request in."""
        lists = (tuple(request.get(name, ())) for name in ("prefix", "output_blocks"))
        asked = Request(request["id"], request["prompt"], request["output"], request.get("priority", 0), *lists)
        reason = self.engine.submit(asked)
        return {"ok": True} if reason is None else {"ok": True, "rejected": reason}

    def plan(self, request: Message) -> Answer:
        """Let the engine plan, and ask for its state after it."""
        plan = self.engine.plan()
        page = {"entries": [list(each) for each in plan.entries]}
        page |= {"preempted": list(plan.preempted), "rejected": list(plan.rejected)}
        return {"ok": True, "plan": page, "cached": dict(plan.cached), **self.get_state(True)}

    def complete(self, request: Message) -> Answer:
        """Tell the engine the result of its plan."""
        self.engine.complete(tuple(request["emitted"]), tuple(request["finished"]))
        return {"ok": True, **self.get_state(False)}

    def cancel(self, request: Message) -> Answer:
        """Cancel a request."""
        self.engine.cancel(request["id"])
        return {"ok": True}

    def bye(self, request: Message) -> Answer:
        """End."""
        return {"ok": True}

    def get_state(self, with_queues: bool) -> Answer:
        """Give the blocks, and after a plan the queues, as far as the engine tells them."""
        try:
            state = self.engine.state()
        except (AttributeError, NotImplementedError):
            return {}
        blocks: Answer = {} if state.free is None else {"free": state.free}
        told: Answer = {}
        if with_queues:
            blocks |= {} if state.held is None else {"held": dict(state.held)}
            queues = (("running", state.running), ("waiting", state.waiting))
            told = {name: list(queue) for name, queue in queues if queue is not None}
        return told | ({"kv": blocks} if blocks else {})


OPERATIONS: Mapping[str, Callable[[InProcess, Message], Answer]] = {
    "hello": InProcess.hello,
    "reset": InProcess.reset,
    "submit": InProcess.submit,
    "plan": InProcess.plan,
    "complete": InProcess.complete,
    "cancel": InProcess.cancel,
    "bye": InProcess.bye,
}


def get_claim(owner: object) -> Mapping[str, object] | None:
    """Read the `dialect` of a factory or engine: a name, a map of options with a name, or a Dialect."""
    claim = getattr(owner, "dialect", None)
    if claim is None or isinstance(claim, property) or type(claim).__name__ == "member_descriptor":
        return None
    if isinstance(claim, Dialect):
        return {"name": claim.name, **claim.options()}
    if isinstance(claim, str):
        return {"name": claim}
    if isinstance(claim, Mapping):
        return claim
    raise EngineError(f"the engine's dialect is {claim!r}; a name or a map with a name is expected")


@contextmanager
def time_limit(seconds: float, op: str) -> Iterator[None]:
    """Interrupt what takes longer, where this system and thread can."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: object) -> None:
        raise EngineError(f"{op} takes longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
