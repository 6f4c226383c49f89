"""The two documents' tables, from the documents [A6, B4, B4b, B5]."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refsched.errors import InputError
from refsched.simulation.cost import ChunkCost
from refsched.simulation.teaching import TimetableRow, compute_chunk_row, compute_timetable
from refsched.workload.scenarios import get_scenario

MS = 10**9


def test_the_timetable_with_fixed_members() -> None:
    table = compute_timetable("static", get_scenario("four-requests").offers)
    assert table.rows == (
        TimetableRow(0, 2, ("A", "B"), 0),
        TimetableRow(2, 4, ("A",), 1),
        TimetableRow(4, 5, ("C", "D"), 0),
        TimetableRow(5, 6, ("C",), 1),
    )
    assert table.done == {"A": 4, "B": 2, "C": 6, "D": 5} and table.end == 6


@pytest.mark.parametrize("rule", ["document-a", "vllm-v1"])
def test_the_timetable_with_continuous_batching(rule: str) -> None:
    table = compute_timetable(rule, get_scenario("four-requests").offers)
    assert table.rows == (
        TimetableRow(0, 2, ("A", "B"), 0),
        TimetableRow(2, 4, ("A", "C"), 0),
        TimetableRow(4, 5, ("D",), 1),
    )
    assert table.done == {"A": 4, "B": 2, "C": 4, "D": 5} and table.end == 5


@pytest.mark.parametrize(
    ("chunk", "iterations", "longest_gap", "prefill_done", "delay", "bought", "cost", "tokens"),
    [
        (4096, 1, "68.5", "68.5", "0", "0", "0", 0),
        (1024, 4, "20.5", "82", "13.5", "12", "1.5", 6),
        (256, 16, "8.5", "136", "67.5", "60", "7.5", 30),
        (1000, 5, "20.125", "86.5", "18", "16", "2", 8),
    ],
)
def test_the_chunk_table(
    chunk: int, iterations: int, longest_gap: str, prefill_done: str, delay: str, bought: str, cost: str, tokens: int
) -> None:
    row = compute_chunk_row(chunk, ChunkCost())
    assert (row.chunk, row.iterations, row.tokens_gained) == (chunk, iterations, tokens)
    times = (row.longest_gap, row.prefill_done, row.delay, row.delay_decode, row.delay_overhead)
    assert tuple(Fraction(ticks, MS) for ticks in times) == tuple(
        map(Fraction, (longest_gap, prefill_done, delay, bought, cost))
    )


@given(
    st.integers(1, 300), st.integers(1, 300), st.integers(0, 10 * MS), st.integers(0, 10 * MS), st.integers(0, 99 * MS)
)
def test_done_is_the_full_prefill_plus_what_each_iteration_adds(
    chunk: int, prompt: int, decode: int, overhead: int, full: int
) -> None:
    """B5: done = 64 + iterations * 4.5 exactly, for any numbers; worked here by document B's own loop in integers."""
    row = compute_chunk_row(chunk, ChunkCost(decode, full, prompt, overhead))
    iterations = -(-prompt // chunk)
    assert row.iterations == iterations
    assert row.prefill_done == full + iterations * (decode + overhead)
    shares = [full * min(done + chunk, prompt) // prompt - full * done // prompt for done in range(0, prompt, chunk)]
    assert row.longest_gap == decode + overhead + max(shares)
    assert row.delay == row.delay_decode + row.delay_overhead


@pytest.mark.parametrize("chunk", [0, -1])
def test_a_chunk_that_is_not_positive_is_refused(chunk: int) -> None:
    with pytest.raises(InputError, match="chunk"):
        compute_chunk_row(chunk, ChunkCost())


def test_a_table_of_more_than_a_million_iterations_is_refused() -> None:
    with pytest.raises(InputError, match="1000001 iterations"):
        compute_chunk_row(1, ChunkCost(prompt=1_000_001))
