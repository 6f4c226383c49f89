"""vLLM V1's rule, in cases small enough to follow; the recorded plans are replayed in tests/conformance."""

from refsched.model import Limits, Request
from tests.scheduling.plans import Drive, make, show


def test_running_is_served_in_admission_order_not_decodes_first() -> None:
    drive = Drive(make("vllm-v1", Limits(8, 4)))
    drive.submit(("long", 20, 1), ("short", 1, 9))
    assert show(drive.step()) == {"long": 8}
    assert show(drive.step()) == {"long": 8}
    assert show(drive.step()) == {"long": 4, "short": 1}  # B7b: document A would have let short decode long before


def test_d1_the_last_admitted_is_preempted_and_recomputed() -> None:
    """D1: where document A is stuck, b goes at iteration 2, returns with 3 tokens (1 + 2), and both finish at t5."""
    drive = Drive(make("vllm-v1", Limits(8, 8, chunk_cap=8, num_blocks=4)))
    drive.submit(("a", 1, 4), ("b", 1, 4))
    plans = [drive.step() for _ in range(6)]
    assert plans[2].preempted == ("b",) and show(plans[2]) == {"a": 1}
    assert show(plans[4]) == {"b": 3}
    assert not drive.progress.live


def test_d2_the_gate_reserves_nothing() -> None:
    drive = Drive(make("vllm-v1", Limits(4, 8, chunk_cap=2, num_blocks=6)))
    drive.submit(("a", 4, 2), ("b", 4, 2))
    assert show(drive.step()) == {"a": 2, "b": 2}
    second = drive.step()
    assert show(second) == {"a": 2} and second.preempted == ("b",)


def test_nobody_is_admitted_in_an_iteration_that_preempted() -> None:
    drive = Drive(make("vllm-v1", Limits(8, 8, num_blocks=4)))
    drive.submit(("a", 1, 4), ("b", 1, 4))
    drive.step()
    drive.step()
    drive.submit(("c", 1, 1))
    third = drive.step()
    assert third.preempted == ("b",) and show(third) == {"a": 1}
    assert drive.engine.queues.pool.free == 1  # c would have fitted


def test_the_head_of_the_waiting_queue_blocks_those_behind_it() -> None:
    drive = Drive(make("vllm-v1", Limits(16, 8, num_blocks=8)))
    drive.submit(("a", 4, 4))
    drive.step()
    drive.submit(("big", 6, 1), ("small", 1, 1))
    assert show(drive.step()) == {"a": 1}


def test_the_watermark_is_kept_free_unless_nothing_runs() -> None:
    drive = Drive(make("vllm-v1", Limits(16, 8, num_blocks=8), watermark_blocks=3))
    drive.submit(("a", 7, 1))
    assert show(drive.step()) == {"a": 7}
    drive.submit(("b", 4, 2), ("c", 2, 1))
    assert show(drive.step()) == {"b": 4}  # 4 free, c needs 2 and must leave 3


def test_the_chunk_cap_is_lifted_for_a_request_that_is_alone() -> None:
    for dialect, first in (("vllm-0.33", 12), ("vllm-0.29", 2)):
        drive = Drive(make(dialect, Limits(12, 4, chunk_cap=2)))
        drive.submit(("a", 12, 1))
        assert show(drive.step()) == {"a": first}  # S3


def test_under_priority_the_worst_goes_wherever_it_stands_and_its_tokens_return() -> None:
    """The scenario of a public bug: the victim stands earlier in the list; nobody behind it may be skipped."""
    drive = Drive(
        make(
            "vllm-v1",
            Limits(512, 8, block_size=16, num_blocks=5),
            policy="priority",
            admission_gate="chunk",
            impossible="admit",
        )
    )
    for id, prompt, output, priority in (("a", 40, 9, 9), ("b", 15, 9, 0), ("c", 1, 9, 1)):
        request = Request(id, prompt, output, priority)
        drive.engine.submit(request)
        drive.progress.start(request)
    assert set(show(drive.step())) == {"a", "b", "c"}
    drive.step()
    third = drive.step()
    assert third.preempted == ("a",)
    assert show(third) == {"b": 1, "c": 1}


def test_a_request_that_is_its_own_victim_leaves_an_empty_plan() -> None:
    drive = Drive(make("vllm-v1", Limits(4, 8, num_blocks=8), admission_gate="chunk", impossible="admit"))
    drive.submit(("a", 10, 1))
    plans = [drive.step() for _ in range(4)]
    assert [show(plan) for plan in plans] == [{"a": 4}, {"a": 4}, {}, {"a": 4}]  # D3b, for ever
    assert plans[2].preempted == ("a",)
