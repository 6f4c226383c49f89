"""Readers and deadlines, token by token, against the same told chunk by chunk."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from refsched.metrics.stalls import Deadlines, Underrun, count_deadlines, play_back

chunks = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 4)), min_size=1, max_size=8)


def spread(pairs: list[tuple[int, int]]) -> tuple[list[tuple[int, int]], list[int]]:
    """Turn gaps into times, and give a time for each token as well."""
    at, together, tokens = 0, [], []
    for gap, count in pairs:
        at += gap
        together.append((at, count))
        tokens += [at] * count
    return together, tokens


@given(chunks, st.integers(0, 60), st.integers(1, 30))
def test_deadlines_as_published(pairs: list[tuple[int, int]], first: int, between: int) -> None:
    together, tokens = spread(pairs)
    gaps = [after - before for before, after in zip([0, *tokens], tokens, strict=False)]
    met = missed = slack = 0
    for place, gap in enumerate(gaps):
        allowed = first if place == 0 else between
        if gap <= allowed + slack:
            met, slack = met + 1, slack + allowed - gap
        else:
            missed += 1 + (gap - slack - first) // between if place == 0 else (gap - slack) // between
            slack = 0
    assert count_deadlines(0, together, first, between) == Deadlines(met, missed)


@given(chunks, st.sampled_from([Fraction(10**12, 7), Fraction(10**11), Fraction(10**12)]))
def test_a_reader_takes_one_token_after_the_other(pairs: list[tuple[int, int]], rate: Fraction) -> None:
    together, tokens = spread(pairs)
    due, count, waited = Fraction(tokens[0]), 0, Fraction(0)
    for at in tokens:
        if at > due:
            count, waited, due = count + 1, waited + at - due, Fraction(at)
        due += 10**12 / rate
    assert play_back(together, rate) == Underrun(count, waited)


def test_a_reader_who_waits_for_a_buffer_first() -> None:
    late = [(0, 1), (10, 1), (30, 1)]
    assert play_back(late, Fraction(10**11)) == Underrun(1, Fraction(10))
    assert play_back(late, Fraction(10**11), buffered=2) == Underrun(0, Fraction(0))
    assert play_back(late, Fraction(10**11), buffered=9) == Underrun(0, Fraction(0))


def test_deadlines_of_one_example() -> None:
    """etalon's own: gaps of 80, 40, 40, 150 and 40 ms, 100 ms for the first and 50 for the others: 2 of 6 missed."""
    found = count_deadlines(0, [(80, 1), (120, 1), (160, 1), (310, 1), (350, 1)], 100, 50)
    assert (found.met, found.missed, found.miss_rate) == (4, 2, Fraction(1, 3))
