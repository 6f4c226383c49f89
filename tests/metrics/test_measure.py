"""TTFT, TPOT, gaps, totals, rates and backlog, worked by hand [A7-A13, B13, B15]."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refsched.errors import InputError
from refsched.metrics.latency import Gaps, compute_total, compute_tpot, compute_ttft, count_tokens
from refsched.metrics.measure import measure
from refsched.record import Delivery, IterationEnds, IterationRanges, Outcome, Record
from refsched.units import TICKS_PER_SECOND as S

MS = 10**9


def record(times: list[int], sent: int = 0, outcome: Outcome = Outcome.COMPLETED, **more: object) -> Record:
    """Make a record from the times of its tokens, in ms."""
    deliveries = tuple(Delivery(at * MS) for at in times)
    ended = times[-1] * MS if times else None
    fields: dict[str, object] = {"id": "r", "prompt_tokens": 10, "deliveries": deliveries, "ended": ended} | more
    return Record(outcome=outcome, planned=sent * MS, sent=sent * MS, **fields)  # type: ignore[arg-type]


def test_ttft_tpot_and_total_of_one_request() -> None:
    one = record([150, 160, 190], sent=100)
    assert compute_ttft(one) == 50 * MS
    assert compute_tpot(one) == 20 * MS
    assert compute_total(one) == 90 * MS


def test_tpot_of_a_single_token_is_undefined_not_zero() -> None:
    assert compute_tpot(record([150])) is None
    summary = measure([record([150]), record([150, 160])]).latency["tpot"]
    assert (summary.n, summary.undefined, summary.mean) == (1, 1, 10 * MS)


def test_without_a_send_time_ttft_is_undefined() -> None:
    unsent = Record("r", 1, Outcome.COMPLETED, deliveries=(Delivery(5), Delivery(7)), ended=7)
    assert compute_ttft(unsent) is None and compute_total(unsent) is None and compute_tpot(unsent) == 2


def test_tokens_of_a_delivery_that_does_not_count_them_are_unknown() -> None:
    unknown = Record("r", 1, Outcome.COMPLETED, sent=0, deliveries=(Delivery(5), Delivery(7, None)), ended=7)
    assert count_tokens(unknown) is None and compute_tpot(unknown) is None
    several = Record("r", 1, Outcome.COMPLETED, sent=0, deliveries=(Delivery(0, 2), Delivery(6, 2)), ended=6)
    assert compute_tpot(several) == 2  # B14: a chunk is not a token


def test_tpot_and_gaps_are_different_populations() -> None:
    """One 2-token request with a gap of 100 ms and one of 100 tokens with gaps of 10: mean TPOT 55.0, mean gap 10.9."""
    short, long = record([0, 100]), record([10 * place for place in range(100)])
    measured = measure([short, long])
    assert measured.latency["tpot"].mean == 55 * MS
    assert Fraction(measured.latency["gap"].mean or 0) / MS == Fraction("11") - Fraction("0.1")
    assert measured.latency["longest_gap"].mean == 55 * MS
    assert measured.latency["gap"].n == 100


def test_a_stall_hides_in_the_mean_and_shows_in_the_longest_gap() -> None:
    times = [0]
    for gap in [10] * 50 + [500] + [10] * 49:
        times.append(times[-1] + gap)
    measured = measure([record(times)])
    assert Fraction(measured.latency["tpot"].mean or 0) / MS == Fraction("14.9")
    assert measured.latency["longest_gap"].max == 500 * MS


def test_rates_over_the_whole_run() -> None:
    first = record([500, 1000], sent=0, prompt_tokens=8)
    second = record([2000], sent=250, prompt_tokens=2, id="s")
    rates = measure([first, second]).throughput
    assert (rates.output_tokens, rates.total_tokens, rates.requests) == (Fraction(3, 2), Fraction(13, 2), 1)


def test_a_run_of_no_length_has_no_rates() -> None:
    assert measure([record([], outcome=Outcome.REJECTED, ended=0)]).throughput.requests is None


def test_backlog() -> None:
    records = [
        record([30, 100], sent=0),
        record([60, 90], sent=10),
        record([80], sent=50),
        record([], sent=50, outcome=Outcome.UNFINISHED),
    ]
    backlog = measure(records).backlog
    assert (backlog.peak, backlog.at_last_send, backlog.peak_without_first_token) == (4, 4, 3)


def test_all_outcomes_are_counted_and_only_completed_requests_are_timed() -> None:
    records = [
        record([5]),
        record([], outcome=Outcome.REJECTED),
        record([9], outcome=Outcome.CANCELLED),
        record([], outcome=Outcome.UNFINISHED),
    ]
    measured = measure(records)
    assert {name: count for name, count in measured.counts.items() if count} == {
        "offered": 4,
        "completed": 1,
        "rejected": 1,
        "cancelled": 1,
        "unfinished": 1,
    }
    assert measured.latency["ttft"].n == 1


def test_groups_are_measured_apart_over_the_same_window() -> None:
    chat, report = record([10, 20], group="chat"), record([1000], group="report", id="s")
    groups = measure([chat, report]).groups
    assert list(groups) == ["chat", "report"]
    assert groups["chat"].throughput.output_tokens == 2 and groups["report"].throughput.output_tokens == 1
    assert measure([record([1])]).groups == {}


def test_an_unknown_definition_is_refused() -> None:
    with pytest.raises(InputError):
        measure([record([5])], "mean of p99s")


@given(
    st.lists(st.integers(1, 50), min_size=12, max_size=12),
    st.lists(st.lists(st.integers(0, 12), min_size=2, max_size=6, unique=True), max_size=5),
)
def test_ranges_over_iteration_ends_measure_like_written_out_deliveries(
    lengths: list[int], edges: list[list[int]]
) -> None:
    ends = IterationEnds()
    for length in lengths[:4]:  # progressions of three, with a pause before every second
        ends.add(ends.last + length % 2, length, lengths[length % 12] % 3, 3)
    lazy, plain = [], []
    for cuts in edges:
        ordered = sorted(cuts)[: len(cuts) // 2 * 2]
        ranges = tuple(zip(ordered[::2], ordered[1::2], strict=True))
        deliveries = IterationRanges(ends, ranges)
        lazy.append(Record("r", 1, Outcome.COMPLETED, sent=0, deliveries=deliveries, ended=S))
        plain.append(Record("r", 1, Outcome.COMPLETED, sent=0, deliveries=tuple(deliveries), ended=S))
    assert Gaps().count(lazy) == Gaps().count(plain)
    for ranged, written in zip(lazy, plain, strict=True):
        assert Gaps().longest(ranged) == Gaps().longest(written)
        assert (compute_ttft(ranged), compute_tpot(ranged), compute_total(ranged)) == (
            compute_ttft(written),
            compute_tpot(written),
            compute_total(written),
        )


def test_ends_beyond_four_bytes_are_kept_all_the_same() -> None:
    ends = IterationEnds()
    parts = ((0, 5, 1, 2), (20, 7, 1 << 40, 3), ((1 << 42) + 9, 1, 2, 1 << 33), (1 << 70, 3, 0, 4))
    firsts = [0, 2, 5, 5 + (1 << 33)]
    for part in parts:
        ends.add(*part)
    for first, (start, duration, growth, count) in zip(firsts, parts, strict=True):
        numbers = range(min(count, 4))
        assert [ends[first + number] for number in numbers] == [
            start + (number + 1) * duration + growth * (number * (number + 1) // 2) for number in numbers
        ]
    assert ends.count_ended_by(ends.last) == len(ends) == firsts[-1] + 4


def test_ends_beyond_eight_bytes_are_kept_all_the_same() -> None:
    ends = IterationEnds()
    for start in (0, 10**19, 3 * 10**19):
        ends.add(start, 10**18, 5, 3)
    assert list(ends) == [
        start + done * 10**18 + 5 * (done * (done - 1) // 2) for start in (0, 10**19, 3 * 10**19) for done in (1, 2, 3)
    ]
    assert [ends[number] for number in range(9)] == list(ends)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9), st.integers(0, 3), st.integers(1, 5)), max_size=6),
    st.integers(0, 200),
)
def test_iterations_that_ended_by_a_time_are_counted(parts: list[tuple[int, int, int, int]], at: int) -> None:
    ends = IterationEnds()
    for pause, duration, growth, count in parts:
        ends.add(ends.last + pause, duration, growth, count)
    assert ends.count_ended_by(at) == sum(end <= at for end in ends)
