"""The engine around a policy: intake, retirement, cancellation, state."""

import pytest

from refsched.dialect import get_dialect, list_dialects
from refsched.errors import EngineError
from refsched.model import Limits, Plan, Request
from refsched.model import Entry
from refsched.scheduling.progress import Progress
from tests.scheduling.plans import Drive, make, show


@pytest.mark.parametrize("dialect", [name for name in list_dialects() if get_dialect(name).impossible == "reject"])
def test_an_impossible_request_is_refused_with_the_reason_and_blocks_nobody(dialect: str) -> None:
    drive = Drive(make(dialect, Limits(16, 4, num_blocks=8, max_len=8)))
    assert "the pool has 8" in (make(dialect, Limits(16, 4, num_blocks=8)).submit(Request("big", 9, 1)) or "")
    assert "max_len" in (drive.engine.submit(Request("long", 8, 1)) or "")
    drive.submit(("small", 1, 1))
    assert show(drive.step()) == {"small": 1}


def test_impossible_admit_takes_it() -> None:
    engine = make("vllm-v1", Limits(4, 4, num_blocks=8), impossible="admit")
    assert engine.submit(Request("big", 9, 1)) is None
    assert engine.plan() == Plan() and engine.state().waiting == ("big",)


@pytest.mark.parametrize("dialect", list_dialects())
def test_finished_and_cancelled_requests_hold_nothing(dialect: str) -> None:
    drive = Drive(make(dialect, Limits(16, 4, num_blocks=64, max_len=32)))
    drive.submit(("a", 3, 2), ("b", 3, 9))
    drive.step()
    drive.step()
    assert "a" not in (drive.engine.state().held or {})
    drive.engine.cancel("b")
    state = drive.engine.state()
    assert (state.running, state.waiting, state.held, state.free) == ((), (), {}, 64)
    drive.engine.cancel("b")  # twice is no error


def test_a_name_can_be_used_again_only_when_it_is_free() -> None:
    drive = Drive(make("vllm-v1", Limits(16, 4)))
    drive.submit(("a", 3, 2))
    assert drive.engine.submit(Request("a", 1, 1)) is not None


def test_planned_tokens_count_as_computed_when_the_plan_is_made() -> None:
    engine = make("vllm-v1", Limits(16, 4))
    engine.submit(Request("a", 3, 2))
    engine.plan()
    assert engine.state().computed == {"a": 3}


@pytest.mark.parametrize(
    "entry", [Entry("nobody", 0, 1), Entry("a", 0, 0), Entry("a", -1, 1), Entry("a", 0, 4), Entry("a", 2, 2)]
)
def test_the_driver_refuses_entries_that_cannot_be_carried_out(entry: Entry) -> None:
    progress = Progress(Limits(16, 4))
    progress.start(Request("a", 3, 2))
    with pytest.raises(EngineError):
        progress.settle(Plan((entry,)))


def test_the_driver_ends_a_request_at_its_outputs_or_at_max_len() -> None:
    progress = Progress(Limits(16, 4, max_len=5))
    progress.start(Request("a", 3, 9))
    assert progress.settle(Plan((Entry("a", 0, 2),)))[1:] == ((), ())  # a middle chunk yields nothing
    assert progress.settle(Plan((Entry("a", 2, 1),)))[1:] == (("a",), ())
    assert progress.settle(Plan((Entry("a", 3, 1),)))[1:] == (("a",), ("a",))
