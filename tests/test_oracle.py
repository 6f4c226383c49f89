"""The oracle: the recorded plan for snapshots of recorded runs, the judge's sentence for a plan that is wrong."""

import re
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from refsched.conformance.exact import NOT_OPTIONS
from refsched.conformance.protocol import read_trace
from refsched.dialect import get_dialect
from refsched.errors import InputError
from refsched.model import Cancelled, Completed, Limits, Plan, Planned, Request, State, Submitted, Trace
from refsched.oracle import Job, Oracle, Snapshot, assert_plan
from refsched.oracle import plan as plan_for
from tests.shared import SHARED, needs_shared

ROOT = Path(__file__).resolve().parents[1]
LIMITS = Limits(token_budget=4, max_seqs=8, num_blocks=8)
PLANS = SHARED / "data" / "plans"
FOLDERS = ("vllm-0.29", "vllm-0.33", "vllm-0.29-priority", "vllm-0.33-priority")
RUNS = 52


def choose_runs() -> list[Path]:
    """Choose runs, the same every time, out of all folders."""
    paths = sorted(path for folder in FOLDERS for path in (PLANS / folder).glob("*.jsonl"))
    return Random(5).sample(paths, min(RUNS, len(paths)))


class Follower:
    """Keep, from a trace alone, what a snapshot shows: it shares no code with the oracle."""

    def __init__(self, trace: Trace):
        self.trace = trace
        self.requests: dict[str, Request] = {}
        self.known: dict[str, int] = {}
        self.computed: dict[str, int] = {}
        self.place: dict[str, int] = {}
        self.running: list[str] = []
        self.waiting: list[str] = []

    def take(self, event: object) -> None:
        if isinstance(event, Submitted) and event.rejected is None:
            id = event.request.id
            self.requests[id], self.known[id], self.computed[id] = event.request, event.request.prompt, 0
            self.place[id] = len(self.place)
            self.waiting.append(id)
            if self.trace.dialect.get("policy") == "priority":
                self.waiting.sort(key=lambda id: (self.requests[id].priority, self.place[id]))
        elif isinstance(event, Planned):
            self.computed |= {id: 0 for id in event.plan.preempted}
            self.computed |= {id: start + count for id, start, count in event.plan.entries}
            self.running, self.waiting = list(event.state.running or ()), list(event.state.waiting or ())
        elif isinstance(event, Completed):
            for id in event.emitted:
                self.known[id] += 1
            self.running = [id for id in self.running if id not in event.finished]
        elif isinstance(event, Cancelled):
            self.running, self.waiting = (
                [each for each in queue if each != event.id] for queue in (self.running, self.waiting)
            )

    def snapshot(self) -> Snapshot:
        return Snapshot(*([self.job(id) for id in queue] for queue in (self.running, self.waiting)))

    def job(self, id: str) -> Job:
        request, size = self.requests[id], self.trace.limits.block_size
        held = -(-min(self.computed[id], self.trace.limits.max_len or 10**9) // size)
        return Job(
            id,
            request.prompt,
            self.known[id],
            self.computed[id],
            request.output,
            request.priority,
            held,
            self.place[id],
        )


@needs_shared("data", "plans")
def test_that_snapshots_of_recorded_runs_give_the_recorded_plans() -> None:
    plans, paths = 0, choose_runs()
    for path in paths:
        with path.open(encoding="utf-8") as lines:
            trace = read_trace(lines)
        options = {name: value for name, value in trace.dialect.items() if name not in NOT_OPTIONS}
        dialect, follower = get_dialect(str(trace.dialect["name"]), options), Follower(trace)
        for event in trace.events:
            if isinstance(event, Planned):
                snapshot = follower.snapshot()
                expected = plan_for(snapshot, trace.limits, dialect)
                assert sorted(expected.entries) == sorted(event.plan.entries), path
                assert expected.preempted == event.plan.preempted, path
                assert_plan(snapshot, event.plan, trace.limits, dialect)
                plans += 1
            follower.take(event)
    assert len(paths) >= 50 and plans > 1000


WRONG = (
    ({"r0": 1, "r1": 4}, (), "iteration 0 plans 5 tokens (r0:1, r1:4); the budget is 4 [SCH-BUD-1]"),
    ({"r1": 4}, (), "iteration 0 gives r0 0 tokens and uses up the budget; 1 are due to it first [SCH-ORD-1]"),
    ({"r1": 3}, (), "iteration 0 leaves out r0, which could get 1 of the 4 tokens left [SCH-SKIP-1]"),
    (
        {"r0": 1, "r1": 2},
        (),
        "iteration 0 gives r1 2 tokens; what it lacks, the cap and the budget left allow 3 [SCH-SHARE-1]",
    ),
    ({"r0": 1, "r1": 3, "r9": 0}, (), "r9"),
    ([("r0", 2, 1), ("r1", 0, 3)], (), "starts r0 at 2; 3 tokens are computed"),
    ([("r0", 3, 1), ("r1", 0, 0)], (), "plans 0 tokens of r1 [SCH-ENT-1]"),
    ([("r0", 3, 1), ("r0", 3, 1)], (), "plans r0 2 times [SCH-ENT-2]"),
    ({"r1": 3}, ("r0",), "[SCH-PRE-2]"),
)
SNAPSHOT = Snapshot(running=[Job("r0", prompt=3, known=4, computed=3)], waiting=[Job("r1", prompt=4)])


@pytest.mark.parametrize(("plan", "preempted", "sentence"), WRONG)
def test_that_a_wrong_plan_fails_with_the_judges_sentence(
    plan: object, preempted: tuple[str, ...], sentence: str
) -> None:
    with pytest.raises(AssertionError) as failed:
        assert_plan(SNAPSHOT, plan, LIMITS, preempted=preempted)  # type: ignore[arg-type]
    assert sentence in str(failed.value)


def test_that_the_right_plan_passes_in_every_form() -> None:
    expected = plan_for(SNAPSHOT, LIMITS)
    assert {entry.id: entry.count for entry in expected.entries} == {"r0": 1, "r1": 3}
    for form in (expected, {"r0": 1, "r1": 3}, [("r0", 1), ("r1", 3)], [["r1", 0, 3], ["r0", 3, 1]]):
        assert_plan(SNAPSHOT, form, LIMITS)


def test_that_a_shortage_calls_for_the_last_admitted() -> None:
    running = [Job("r0", 2, 5, 4), Job("r1", 2, 5, 4)]
    expected = plan_for(Snapshot(running), LIMITS)
    assert (expected.preempted, [entry.id for entry in expected.entries]) == (("r1",), ["r0"])
    with pytest.raises(AssertionError, match=r"preempts r0 for r0; the one to preempt is r1 \[SCH-VIC-1\]"):
        assert_plan(Snapshot(running), {"r1": 1}, LIMITS, preempted=["r0"])


@pytest.mark.parametrize(
    ("snapshot", "dialect", "problem"),
    [
        (Snapshot([Job("r0", 3, 4, 4)]), "vllm-v1", "4 tokens computed of 4 known"),
        (Snapshot([Job("r0", 3, 2)]), "vllm-v1", "3 in its prompt"),
        (Snapshot([Job("r0", 3)], [Job("r0", 3)]), "vllm-v1", "stands twice"),
        (Snapshot([Job("r0", 20, 21, 20)]), "vllm-v1", "below 0"),
        (Snapshot(), "vllm-v9", "no dialect named"),
    ],
)
def test_that_an_impossible_snapshot_is_refused(snapshot: Snapshot, dialect: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        assert_plan(snapshot, {}, LIMITS, dialect)


def test_that_a_prefix_cache_needs_the_whole_run() -> None:
    with pytest.raises(InputError, match="Oracle"):
        plan_for(Snapshot(), LIMITS, get_dialect("vllm-v1", {"prefix_cache": True}))


def test_that_the_oracle_follows_a_run_and_drives_it() -> None:
    follower = Oracle(LIMITS)
    follower.submit("r0", 3, 2)
    follower.plan({"r0": 3}, state=State(free=5, held={"r0": 3}))
    assert follower.complete() == (("r0",), ())
    follower.plan({"r0": 1})
    assert follower.complete(free=8) == (("r0",), ("r0",))
    follower.end()


def test_that_the_oracle_fails_where_the_run_goes_wrong() -> None:
    follower = Oracle(LIMITS)
    with pytest.raises(AssertionError, match="SCH-INT-1"):
        follower.submit("r0", 30, 2)
    follower = Oracle(LIMITS)
    follower.submit("r0", 3, 2)
    with pytest.raises(AssertionError, match="SCH-SHARE-1"):
        follower.plan(Plan((("r0", 0, 2),)))  # type: ignore[arg-type]
    follower = Oracle(LIMITS, "document-a")
    follower.submit("r0", 3, 2)
    follower.plan({"r0": 3})
    with pytest.raises(AssertionError, match="SCH-OUT-2"):
        follower.complete(emitted=[], finished=[])


def test_that_the_oracle_notices_an_end_that_never_comes() -> None:
    follower = Oracle(LIMITS, "document-a")
    for id in ("r0", "r1"):
        follower.submit(id, 2, 5)
    follower.plan({"r0": 2, "r1": 2})
    follower.complete()
    for _ in range(2):
        follower.plan({"r0": 1, "r1": 1})
        follower.complete()
    follower.plan({})
    follower.complete()
    with pytest.raises(AssertionError, match="LIV-END-1"):
        follower.end()


def test_that_the_example_of_the_readme_fails_as_it_says(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    example = next(block for block in re.findall(r"```py\n(.*?)```", readme, re.DOTALL) if "assert_plan" in block)
    assert len(example.splitlines()) <= 15
    (tmp_path / "test_example.py").write_text(example, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    sentence = re.search(r"E +AssertionError: (.*)", done.stdout)
    assert done.returncode == 1 and sentence is not None, done.stdout
    assert sentence[1] in readme
