"""The pool: blocks just in time, own slack only, nothing lost [decisions 2 and 3]."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refsched.model import Limits, Request
from refsched.scheduling.kv import Pool, explain_impossible


def test_blocks_are_taken_when_the_first_token_in_them_is() -> None:
    pool = Pool(block_size=4, num_blocks=3)
    assert pool.grow("a", 4) and pool.held == {"a": 1} and pool.free == 2
    assert pool.grow("a", 5) and pool.held == {"a": 2} and pool.free == 1
    assert pool.grow("a", 8) and pool.free == 1  # its own slack


def test_what_does_not_fit_changes_nothing() -> None:
    pool = Pool(block_size=4, num_blocks=3)
    pool.grow("a", 8)
    assert not pool.grow("b", 5)
    assert pool.held == {"a": 2} and pool.free == 1 and pool.is_conserved()


def test_another_requests_slack_does_not_count() -> None:
    pool = Pool(block_size=4, num_blocks=2)
    pool.grow("a", 1)
    pool.grow("b", 1)
    assert pool.slots_for("a", 1) == 3
    assert pool.slots_for("c", 0) == 0
    assert not pool.grow("c", 1)


def test_a_pool_without_limit_never_says_no() -> None:
    pool = Pool(block_size=16, num_blocks=None)
    assert pool.grow("a", 10**12) and pool.peak() == 62_500_000_000
    assert pool.is_conserved()


def test_the_peak_is_remembered() -> None:
    pool = Pool(block_size=1, num_blocks=10)
    pool.grow("a", 7)
    pool.release("a")
    pool.grow("b", 2)
    assert pool.peak() == 7 and pool.free == 8


def test_a_leak_is_noticed() -> None:
    pool = Pool(block_size=1, num_blocks=10)
    pool.grow("a", 7)
    del pool.held["a"]
    assert not pool.is_conserved()


@given(
    st.integers(1, 5), st.integers(1, 20), st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 40)), max_size=30)
)
def test_free_and_held_always_add_up(block_size: int, num_blocks: int, steps: list[tuple[str, int]]) -> None:
    pool = Pool(block_size, num_blocks)
    for owner, tokens in steps:
        before = dict(pool.held)
        if tokens == 0:
            pool.release(owner)
        elif not pool.grow(owner, tokens):
            assert pool.held == before
        else:
            assert pool.held[owner] * block_size >= tokens
        assert pool.is_conserved()


@pytest.mark.parametrize(
    ("prompt", "output", "possible"),
    [
        (16, 17, True),  # 32 slots: the last token's KV is never written
        (16, 18, False),
        (33, 1, False),
        (32, 1, True),
        (1, 32, True),
    ],
)
def test_output_o_needs_prompt_plus_o_minus_1_slots(prompt: int, output: int, possible: bool) -> None:
    limits = Limits(64, 8, block_size=16, num_blocks=2)
    assert (explain_impossible(Request("r", prompt, output), limits) is None) is possible


def test_max_len_cuts_the_output_before_the_pool_is_asked() -> None:
    limits = Limits(64, 8, block_size=16, num_blocks=2, max_len=33)
    assert explain_impossible(Request("r", 16, 1000), limits) is None
    assert "max_len is 33" in (explain_impossible(Request("r", 33, 1), limits) or "")
    assert "the pool has 2" in (
        explain_impossible(Request("r", 30, 9), Limits(64, 8, block_size=16, num_blocks=2)) or ""
    )
