"""Request-level batching [A3]."""

from refsched.model import Limits
from tests.scheduling.plans import Drive, make, show


def test_members_are_fixed_until_the_last_one_ends() -> None:
    drive = Drive(make("static", Limits(8, 2)))
    drive.submit(("a", 1, 3), ("b", 1, 1), ("c", 1, 1))
    assert [show(drive.step()) for _ in range(4)] == [{"a": 1, "b": 1}, {"a": 1}, {"a": 1}, {"c": 1}]


def test_a_member_reserves_all_it_will_need() -> None:
    drive = Drive(make("static", Limits(8, 4, block_size=1, num_blocks=6)))
    drive.submit(("a", 1, 4), ("b", 1, 3), ("c", 1, 1))
    assert show(drive.step()) == {"a": 1}  # a reserves 4 of 6; b needs 3, and c may not pass it
    assert drive.engine.queues.pool.held == {"a": 4}


def test_the_chunk_cap_and_the_budget_bound_a_members_prefill() -> None:
    drive = Drive(make("static", Limits(5, 2, chunk_cap=3)))
    drive.submit(("a", 4, 2), ("b", 4, 1))
    assert [show(drive.step()) for _ in range(3)] == [{"a": 3, "b": 2}, {"a": 1, "b": 2}, {"a": 1}]
