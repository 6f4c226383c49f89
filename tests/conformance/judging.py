"""What several tests of the judge share."""

import json
from collections.abc import Iterable
from pathlib import Path

from refsched.conformance.choice import Choice, choose_dialect
from refsched.conformance.messages import Told
from refsched.conformance.recording import Opening, Recording
from refsched.conformance.verdict import Judge, Verdict, judge
from refsched.dialect import Dialect
from refsched.model import Event, Limits


def judge_lines(lines: Iterable[str | bytes], name: str | None = None) -> Verdict:
    """Judge a trace by its own hello, or by a dialect of another name."""
    recording = Recording(lines)
    choice = choose_dialect(recording.opening.dialect, name)
    return judge(recording.opening, recording.events(), choice).conclude(recording.closed)


def judge_file(path: Path, name: str | None = None) -> Verdict:
    """Judge a recorded file."""
    with path.open("rb") as file:
        return judge_lines(file, name)


def judge_events(events: Iterable[Event], limits: Limits, dialect: Dialect) -> Verdict:
    """Judge events that never were a file."""
    judge = Judge(Opening({}, "test", {}, limits), Choice(dialect))
    for event in events:
        judge.take(Told(0, event))
    return judge.conclude(closed=True)


def read_outcome(path: Path) -> dict[str, object]:
    """Read what a recording's header says about its run."""
    with path.open(encoding="utf-8") as file:
        outcome: dict[str, object] = json.loads(file.readline())["outcome"]
    return outcome
