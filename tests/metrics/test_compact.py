"""Columns that are kept compactly give back what was put into them, and take no more room than they must."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refsched.errors import InputError
from refsched.metrics import compact
from refsched.metrics.compact import (
    MISSING,
    Padded,
    Repeated,
    SharedColumns,
    iterate_order,
    iterate_sorted,
    pick,
    sort_packed,
    to_array,
)

values = st.one_of(st.none(), st.sampled_from([0, 1, 1 << 40]))


@given(st.lists(st.lists(st.tuples(*[values] * 4), min_size=1, max_size=3), max_size=4))
def test_shared_columns_hold_every_row(batches: list[list[tuple[int | None, ...]]]) -> None:
    columns = SharedColumns(4)
    for batch in batches:
        columns.extend(list(zip(*batch, strict=True)))
    rows = [[MISSING if value is None else value for value in row] for batch in batches for row in batch]
    assert [list(columns[place]) for place in range(4)] == [[row[place] for row in rows] for place in range(4)]


def test_columns_are_one_until_they_differ() -> None:
    columns = SharedColumns(3)
    columns.extend([(1, 2), (1, 2), (1, 3)])
    assert columns[0] is columns[1] and columns[0] is not columns[2]
    columns.extend([(4,), (5,), (4,)])
    assert [list(columns[place]) for place in range(3)] == [[1, 2, 4], [1, 2, 5], [1, 3, 4]]
    columns.extend([(6,), (6,), (6,)])
    assert len({id(columns[place]) for place in range(3)}) == 3  # what differed once never is one again


def test_a_column_of_one_value_takes_no_room_and_small_numbers_take_four_bytes() -> None:
    columns = SharedColumns(3)
    columns.extend([(None, None), (7, 8), (7, 1 << 40)])
    columns.extend([(None, None), (9, 9), (7, 7)])
    kinds = [columns[0], columns[1].typecode, columns[2].typecode]  # type: ignore[attr-defined]
    assert isinstance(kinds[0], Repeated) and kinds[1:] == ["i", "q"]
    for too_large in ((None,), (1 << 63,), (7,)), ((-1 << 64,), (1,), (7,)):
        with pytest.raises(OverflowError):
            columns.extend(too_large)
    with pytest.raises(OverflowError):
        SharedColumns(1).extend([(1 << 63,)])


@given(st.integers(0, 2), st.integers(0, 5), st.integers(-7, 7), st.integers(-7, 7))
def test_a_repeated_value_is_the_sequence_of_it(value: int, rows: int, start: int, stop: int) -> None:
    repeated, written = Repeated(value, rows), [value] * rows
    assert list(repeated) == written and list(repeated[start:stop]) == written[start:stop]
    assert list(pick(repeated, range(rows // 2))) == written[: rows // 2]
    assert [repeated.count(each) for each in range(3)] == [written.count(each) for each in range(3)]
    assert [each in repeated for each in range(3)] == [each in written for each in range(3)]
    if rows:
        assert repeated[-1] == value
    with pytest.raises(IndexError):
        repeated[rows]


@given(st.lists(st.one_of(st.none(), st.sampled_from([0, 3, 1 << 40])), max_size=9))
def test_rows_that_were_left_out_are_zero(drawn: list[int | None]) -> None:
    padded = Padded()
    for row, value in enumerate(drawn):
        if value is not None:
            padded.put(row, value)
    assert list(padded.take(len(drawn))) == [value or 0 for value in drawn]


@given(st.lists(st.integers(-9, 9), max_size=12))
def test_parts_are_sorted_as_the_whole(drawn: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compact, "RUN", 3)
        assert list(sort_packed(drawn)) == list(iterate_sorted(drawn)) == sorted(drawn)
        assert list(iterate_order(drawn)) == sorted(range(len(drawn)), key=drawn.__getitem__)


def test_what_eight_bytes_do_not_hold_is_refused() -> None:
    with pytest.raises(InputError, match="106 days"):
        to_array([1 << 63])
    assert list(pick([5, 6, 7], [2, 0, 2])) == [7, 5, 7]
