"""Gaps counted from progressions and ranges, against the same gaps written out one by one."""

from collections import Counter
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refsched.metrics import steps
from refsched.metrics.collect import collect
from refsched.metrics.gaps import make_gap_populations
from refsched.metrics.ranges import RangeCollector, RangeTable
from refsched.metrics.steps import count_gaps, find_longest, list_covered
from refsched.record import IterationEnds, IterationRanges, Outcome, Record

progressions = st.lists(
    st.tuples(st.integers(0, 9), st.integers(8, 20), st.integers(-2, 2), st.integers(1, 5)), min_size=2, max_size=6
)
cuts = st.lists(st.integers(0, 12), max_size=6, unique=True).map(sorted)


def make_ends(parts: list[tuple[int, int, int, int]]) -> IterationEnds:
    """Make the ends of a run from pauses, durations, growths and counts."""
    ends = IterationEnds()
    for pause, duration, growth, count in parts:
        ends.add(ends.last + pause, duration, growth, count)
    return ends


def make_ranges(ends: IterationEnds, edges: list[int]) -> IterationRanges:
    """Make ranges of the iterations that there are, between every second pair of edges."""
    inside = [edge for edge in edges if edge <= len(ends)]
    inside = inside[: len(inside) // 2 * 2]
    return IterationRanges(ends, tuple(zip(inside[::2], inside[1::2], strict=True)))


def make_table(rows: list[IterationRanges | None]) -> RangeTable:
    """Put rows into a table, leaving out those that are no ranges."""
    collector = RangeCollector()
    for row, ranges in enumerate(rows):
        if ranges is not None:
            collector.add(row, ranges)
    return collector.take(len(rows))


def list_gaps(ranges: IterationRanges) -> list[int]:
    """Write the gaps of a row out."""
    return [after.at - before.at for before, after in pairwise(ranges)]


def draw_ends(draw: Random) -> IterationEnds:
    """Draw a run, with pauses and with durations that grow, stay or shrink."""
    sizes = range(draw.randint(1, 6))
    return make_ends(
        [(draw.choice((0, 0, 3)), draw.randint(8, 20), draw.randint(-2, 2), draw.randint(1, 5)) for _ in sizes]
    )


@pytest.mark.parametrize("seed", range(300))
def test_all_gaps_and_the_longest_of_each_row(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = Random(seed)
    monkeypatch.setattr(steps, "PART", draw.choice((1, 3, 1000)))
    runs = draw_ends(draw), draw_ends(draw)
    rows = [
        make_ranges(draw.choice(runs[: 1 + seed % 2]), sorted(draw.sample(range(13), draw.randint(0, 6))))
        if draw.random() < 0.9
        else None
        for _ in range(draw.randint(1, 8))
    ]
    table = make_table(rows)
    gaps = {row: list_gaps(ranges) for row, ranges in enumerate(rows) if ranges is not None}
    parts = list(count_gaps(table))
    assert sum(map(Counter, parts), Counter()) == Counter(gap for every in gaps.values() for gap in every)
    longest: dict[int, int] = {}
    for row, gap in find_longest(table):
        longest[row] = max(gap, longest.get(row, 0))
    assert longest == {row: max(every) for row, every in gaps.items() if every}
    assert table.count_deliveries() == sum(len(ranges) for ranges in rows if ranges is not None)
    assert len(table) == sum(bool(ranges.ranges) for ranges in rows if ranges is not None)


@given(progressions, st.lists(st.one_of(st.none(), cuts), max_size=8), st.lists(st.integers(0, 7), max_size=8))
def test_a_table_gives_back_the_ranges_of_each_row_and_of_chosen_rows(
    parts: list[tuple[int, int, int, int]], drawn: list[list[int] | None], wanted: list[int]
) -> None:
    ends = make_ends(parts)
    rows = [None if edges is None else make_ranges(ends, edges) for edges in drawn]
    chosen = [row for row in wanted if row < len(rows)]
    table = make_table(rows)
    held = [ranges if ranges is not None and ranges.ranges else None for ranges in rows]
    for found, expected in ((table, held), (table.select(chosen), [held[row] for row in chosen])):
        assert [found[row] if row in found else None for row in range(len(expected))] == expected


def test_how_many_cover_what() -> None:
    """Ranges 1 … 5 and 3 … 9, one of nothing at 9, and one after a hole."""
    assert list(list_covered(iter([1, 3, 9, 12]), [5, 9, 9, 14])) == [(1, 3, 1), (3, 5, 2), (5, 9, 1), (12, 14, 1)]


@pytest.mark.parametrize("part", [1, 2, 5, 1000])
def test_gaps_counted_in_parts_make_the_same_population(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts are merged into runs of which each is longer than the next, and each value counts in full."""
    monkeypatch.setattr(steps, "PART", part)
    ends = make_ends([(0, 10 + place % 7, place % 3, 1 + place % 4) for place in range(40)])
    rows = [IterationRanges(ends, ((first, first + 30),)) for first in range(0, 60, 3)]
    columns = collect(Record(f"r{row}", 1, Outcome.COMPLETED, deliveries=each) for row, each in enumerate(rows))
    population, undefined = make_gap_populations(columns)["itl.chunk"]
    expected = Counter(gap for each in rows for gap in list_gaps(each))
    assert [(int(value), weight) for value, weight in population.weighted()] == sorted(expected.items())
    assert (population.n, undefined) == (expected.total(), 0)
    lengths = [len(run.values) for run in population.runs]
    assert lengths == sorted(set(lengths), reverse=True)
