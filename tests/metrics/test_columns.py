"""The columns against the definitions written out for one record at a time: two ways to every number."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refsched.errors import InputError
from refsched.metrics import compact, definitions, population
from refsched.metrics.collect import collect
from refsched.metrics.failures import censor
from refsched.metrics.latency import compute_total, compute_tpot, compute_ttft
from refsched.metrics.measure import measure
from refsched.metrics.quantile import compute_quantile
from refsched.metrics.window import Window, count_tokens_in, find_edges, find_rows, get_level_window
from refsched.record import Arrivals, Delivery, IterationEnds, IterationRanges, Outcome, Record

KINDS = ("content", "content", "content", "reasoning", "empty", "usage", "end")
delivery = st.tuples(st.integers(0, 9), st.one_of(st.none(), st.integers(0, 4)), st.sampled_from(KINDS))


@st.composite
def make_record(draw: st.DrawFn, number: int = 0) -> Record:
    """Draw a record whose deliveries follow its send."""
    sent = draw(st.integers(0, 30))
    at, deliveries = sent, []
    for gap, tokens, kind in draw(st.lists(delivery, max_size=6)):
        at += gap
        deliveries.append(Delivery(at, tokens, kind))
    outcome = draw(st.sampled_from([Outcome.COMPLETED, Outcome.COMPLETED, Outcome.TIMEOUT, Outcome.UNFINISHED]))
    ended = None if outcome is Outcome.UNFINISHED else at + draw(st.integers(0, 5))
    total = draw(st.one_of(st.none(), st.integers(0, 9)))
    source = draw(st.sampled_from(["usage", "requested"])) if total is not None else None
    return Record(
        f"r{number}",
        draw(st.integers(1, 9)),
        outcome,
        draw(st.one_of(st.none(), st.integers(0, sent))),
        draw(st.sampled_from([sent, sent, sent, None])),
        tuple(deliveries),
        ended,
        draw(st.sampled_from(["", "x", "y"])),
        output_tokens=total,
        token_source=source,
    )


records = st.lists(make_record(), min_size=1, max_size=8)


@given(records)
def test_one_value_for_each_request(every: list[Record]) -> None:
    completed = [record for record in every if record.outcome is Outcome.COMPLETED]
    populations = measure(every).populations
    for name, compute in (
        ("ttft.any", compute_ttft),
        ("tpot.decode/(n-1)", compute_tpot),
        ("e2e.last_token", compute_total),
    ):
        values = [value for value in map(compute, completed) if value is not None]
        found = populations[name]
        assert (found.n, found.undefined) == (len(values), len(completed) - len(values))
        assert found.mean == (sum(map(Fraction, values)) / len(values) if values else None)
        assert found.max == max(values, default=None)
        if values:
            assert found.quantiles["p90"] == sorted(values)[-(-9 * len(values) // 10) - 1]


@given(records)
def test_the_three_readings_of_gaps(every: list[Record]) -> None:
    completed = [record for record in every if record.outcome is Outcome.COMPLETED]
    chunk: list[Fraction] = []
    even: list[Fraction] = []
    burst: list[Fraction] = []
    for record in completed:
        chunks = [each for each in record.deliveries if each.kind in ("content", "reasoning") and each.tokens != 0]
        gaps = [Fraction(after.at - before.at) for before, after in zip(chunks, chunks[1:], strict=False)]
        chunk += gaps
        if any(each.tokens is None for each in chunks):
            continue
        for gap, each in zip(gaps, chunks[1:], strict=True):
            even += [gap / (each.tokens or 1)] * (each.tokens or 1)
        times = [each.at for each in chunks for _ in range(each.tokens or 1)]
        burst += [Fraction(after - before) for before, after in zip(times, times[1:], strict=False)]
    populations = measure(every).populations
    for name, values in (("itl.chunk", chunk), ("itl.even", even), ("itl.burst", burst)):
        found = populations[name]
        assert (found.n, found.max) == (len(values), max(values, default=None))
        assert found.mean == (sum(values) / len(values) if values else None)
        assert found.quantiles["p50"] == (sorted(values)[-(-len(values) // 2) - 1] if values else None)


@given(records, st.integers(0, 40), st.integers(0, 40))
def test_windows(every: list[Record], start: int, length: int) -> None:
    columns, window = collect(every), Window(start, start + length)
    counts = find_edges(columns).count(window)
    assert counts == {rule: len(find_rows(columns, window, rule)) for rule in counts}
    inside = sum(
        each.tokens or 0
        for record in every
        for each in record.deliveries
        if each.kind in ("content", "reasoning") and start < each.at <= start + length
    )
    if all(each.tokens is not None for record in every for each in record.deliveries):
        assert count_tokens_in(columns, window) == inside


@given(records)
def test_windows_side_by_side_share_nothing(every: list[Record]) -> None:
    edges = find_edges(collect(every))
    whole, left, right = (edges.count(Window(*pair)) for pair in ((-1, 100), (-1, 17), (17, 100)))
    for rule in ("start-in", "end-in"):
        assert whole[rule] == left[rule] + right[rule]


@given(records)
def test_arrivals_in_columns_measure_like_deliveries(every: list[Record]) -> None:
    packed = [pack(record) for record in every]
    assert measure(packed) == measure(every)
    assert [list(record.deliveries) for record in packed] == [list(record.deliveries) for record in every]


def pack(record: Record) -> Record:
    """Put the deliveries of a record into columns."""
    rows = list(record.deliveries)
    columns = ([each.at for each in rows], [each.tokens for each in rows], [each.kind for each in rows])
    plain = all(each.kind == "content" for each in rows)
    arrivals = Arrivals(columns[0], columns[1], None if plain else columns[2])
    return Record(
        record.id,
        record.prompt_tokens,
        record.outcome,
        record.planned,
        record.sent,
        arrivals,
        record.ended,
        record.group,
        output_tokens=record.output_tokens,
        token_source=record.token_source,
    )


def test_tokens_of_a_simulated_record_across_an_edge() -> None:
    ends = IterationEnds()
    ends.add(0, 10, count=4)
    ranges = IterationRanges(ends, ((0, 2), (3, 4)))
    columns = collect([Record("r", 1, Outcome.COMPLETED, 0, 0, ranges, 40)])
    assert count_tokens_in(columns, Window(10, 40)) == 2 and count_tokens_in(columns, Window(0, 20)) == 2


def test_failures_between_two_bounds() -> None:
    """Eight of ten take 1 to 8 s, two were given up after 30: p80 is 8, p90 at least 30."""
    done = [Record(f"r{k}", 1, Outcome.COMPLETED, 0, 0, (Delivery(k),), k) for k in range(1, 9)]
    failed = [Record(f"t{k}", 1, Outcome.TIMEOUT, 0, 0, (), None, timeout=30) for k in range(2)]
    censored = censor(collect(done + failed), "sent", "last")
    p80, p90 = censored.compute_bounds(Fraction(8, 10)), censored.compute_bounds(Fraction(9, 10))
    assert p80 is not None and (p80.least, p80.most) == (8, 8)
    assert p90 is not None and (p90.least, p90.most) == (30, None)
    assert compute_quantile(censored.answered, Fraction(9, 10)) == 8


def test_the_longest_time_at_a_level() -> None:
    """A rule of SGLang: the longest time in which at least a share of the peak was in flight."""
    stays = ((0, 10), (2, 9), (3, 4), (5, 8))
    columns = collect(
        [Record(f"r{k}", 1, Outcome.COMPLETED, None, start, (), stop) for k, (start, stop) in enumerate(stays)]
    )
    assert get_level_window(columns, Fraction(1)) == Window(5, 8)
    assert get_level_window(columns, Fraction(2, 3)) == Window(2, 9)


def test_mixed_clocks_and_far_times_are_refused() -> None:
    one, other = Record("a", 1, Outcome.COMPLETED), Record("b", 1, Outcome.COMPLETED, clock="request")
    with pytest.raises(InputError, match="clock"):
        measure([one, other])
    with pytest.raises(InputError, match="106 days"):
        measure([Record("a", 1, Outcome.COMPLETED, sent=10**19)])


@given(records)
def test_populations_made_part_by_part_are_the_same(every: list[Record]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for module in (compact, definitions, population):
            patch.setattr(module, "RUN", 2)
        in_parts = measure(every)
    assert in_parts == measure(every)
