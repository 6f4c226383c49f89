"""Smoke: is the adapter itself right? Asked before any decision is judged [exit code 3].

Handshake, two resets in a row, one request, a reset in the middle of work, and the same run once more.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict

from refsched.conformance.adapters import Adapter
from refsched.conformance.choice import Choice
from refsched.conformance.drive import drive
from refsched.conformance.messages import PROTOCOL, describe_engine
from refsched.conformance.pipe import Pipe
from refsched.conformance.recording import Opening
from refsched.conformance.scenario_file import Arrival, Scenario
from refsched.conformance.wire import Message, take_names, take_object, take_optional
from refsched.errors import EngineError, InputError
from refsched.model import Limits, Request

LIMITS = Limits(token_budget=8, max_seqs=4, num_blocks=64)
ONE = Scenario(LIMITS, (Arrival(0, Request("r0", 3, 2)),), id="smoke")
SILENCE = 0.05  # seconds to listen after an answer, for one that comes before its question


class Recorder:
    """Pass questions on, and keep the answers."""

    def __init__(self, adapter: Adapter):
        self.adapter = adapter
        self.answers: list[Message] = []

    def ask(self, request: Message) -> Message:
        """Ask, and keep the answer without its number."""
        answer = self.adapter.ask(request)
        self.answers.append({name: value for name, value in answer.items() if name != "seq"})
        return answer

    def close(self) -> None:
        """End."""
        self.adapter.close()


def greet(adapter: Adapter) -> Opening:
    """Shake hands; raise EngineError where that fails."""
    try:
        return shake_hands(adapter)
    except EngineError as error:
        raise EngineError(f"smoke, handshake: {error}") from None


def shake_hands(adapter: Adapter) -> Opening:
    """Ask who the engine is and what it claims."""
    answer = adapter.ask({"op": "hello", "protocol": PROTOCOL})
    if not answer["ok"]:
        raise EngineError(f"it refuses protocol {PROTOCOL}: {answer.get('unsupported') or answer.get('error')}")
    try:
        dialect = take_optional(answer, "dialect", take_object, {})
        clauses = take_optional(answer, "clauses", take_names, ())
        return Opening({"clauses": clauses}, describe_engine(answer), dialect, LIMITS)
    except InputError as error:
        raise EngineError(f"the answer to hello: {error}") from None


def smoke(adapter: Adapter, opening: Opening) -> None:
    """Raise EngineError, naming the stage, where the adapter is broken."""
    for stage, check in STAGES.items():
        try:
            check(adapter, opening)
        except EngineError as error:
            raise EngineError(f"smoke, {stage}: {error}") from None


def check_silence(adapter: Adapter, opening: Opening) -> None:
    """Hold the engine to speak only when it is asked."""
    if isinstance(adapter, Pipe):
        adapter.listen(SILENCE)


def check_resets(adapter: Adapter, opening: Opening) -> None:
    """Reset twice in a row."""
    for _ in range(2):
        answer = adapter.ask({"op": "reset", "limits": asdict(LIMITS)})
        if not answer["ok"]:
            raise EngineError(f"it refuses a reset: {answer.get('unsupported') or answer.get('error')}")
    check_silence(adapter, opening)


def check_one_request(adapter: Adapter, opening: Opening) -> None:
    """Run one request."""
    drive(adapter, ONE, opening, Choice(None, promised="safe"))


def check_reset_amid_work(adapter: Adapter, opening: Opening) -> None:
    """Leave a run with a plan outstanding; a reset must clear that away, so that one request runs as before."""
    before = record_run(adapter, opening)
    adapter.ask({"op": "reset", "limits": asdict(LIMITS)})
    for request in ({"op": "submit", "id": "r9", "prompt": 5, "output": 4}, {"op": "plan"}):
        adapter.ask(request)
    compare_runs(before, record_run(adapter, opening))


def check_determinism(adapter: Adapter, opening: Opening) -> None:
    """Run one request twice, with the same answers."""
    compare_runs(record_run(adapter, opening), record_run(adapter, opening))


def record_run(adapter: Adapter, opening: Opening) -> list[Message]:
    """Run one request and keep all answers."""
    recorder = Recorder(adapter)
    check_one_request(recorder, opening)
    return recorder.answers


def compare_runs(first: list[Message], second: list[Message]) -> None:
    """Raise EngineError where two runs of the same scenario differ."""
    for number, (one, other) in enumerate(zip(first, second)):
        if one != other:
            raise EngineError(f"the same run gives another answer {number}: {one}, then {other}")
    if len(first) != len(second):
        raise EngineError(f"the same run has {len(first)} answers, then {len(second)}")


STAGES: Mapping[str, Callable[[Adapter, Opening], None]] = {
    "handshake": check_silence,
    "reset twice": check_resets,
    "one request": check_one_request,
    "reset amid work": check_reset_amid_work,
    "determinism": check_determinism,
}
