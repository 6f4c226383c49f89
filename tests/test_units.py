"""Exact reading and writing of times [decision 9]."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refsched.errors import InputError
from refsched.units import Reading, ceil_div, format_decimal, parse_time, round_decimal, round_to_ticks


@pytest.mark.parametrize(
    ("text", "ticks"),
    [
        ("0.5 ms", 500_000_000),
        ("15.625 us", 15_625_000),
        ("15.625 µs", 15_625_000),
        ("0.0123 s", 12_300_000_000),
        ("93.58us", 93_580_000),
        ("80 ns", 80_000),
        ("1 ps", 1),
        ("2 min", 120 * 10**12),
        ("1 h", 3600 * 10**12),
        (".5 ps", 0),  # half to even
        ("1.5 ps", 2),
        ("-3 ns", -3000),
        ("1e-3 s", 10**9),
    ],
)
def test_times_are_read_exactly(text: str, ticks: int) -> None:
    assert parse_time(text).ticks == ticks


def test_a_stamp_with_seven_fractional_digits_keeps_them_all() -> None:
    assert round_to_ticks(Decimal("3.9799601")) == Reading(3_979_960_100_000, False)


def test_what_is_finer_than_a_tick_is_rounded_and_said() -> None:
    assert parse_time("0.0000000000005 s") == Reading(0, True)
    assert parse_time("0.0000000000015 s") == Reading(2, True)
    assert parse_time("1 ps") == Reading(1, False)


@pytest.mark.parametrize(
    "text",
    ["", "5", "ms", "1 parsec", "1,5 ms", "nan s", "inf s", "0x10 s", "1 s 2", "--1 s", "1e400 s", "99999999999 s"],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_time(text)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e31", "1e999999"])
def test_times_that_are_no_finite_time_are_refused(value: str) -> None:
    with pytest.raises(InputError):
        round_to_ticks(Decimal(value))


def test_an_absurdly_small_time_does_not_take_absurdly_long() -> None:
    assert round_to_ticks(Decimal("1e-999999")) == Reading(0, True)


@given(st.integers(-(10**30), 10**30), st.integers(0, 20))
def test_a_finite_decimal_is_written_in_full(digits: int, places: int) -> None:
    exact = Fraction(digits, 10**places)
    text = format_decimal(exact)
    assert text is not None and Fraction(text) == exact


def test_a_third_has_no_finite_decimal() -> None:
    assert format_decimal(Fraction(1, 3)) is None
    assert round_decimal(Fraction(2, 3), 4) == "0.6667"
    assert round_decimal(Fraction(1, 8), 2) == "0.12"  # half to even


@given(st.integers(0, 10**9), st.integers(1, 10**6))
def test_ceil_div_is_the_least_number_of_parts(value: int, divisor: int) -> None:
    parts = ceil_div(value, divisor)
    assert (parts - 1) * divisor < value <= parts * divisor or value == parts == 0
