"""A trace of any length is judged in bounded memory: ten times the iterations, the same peak."""

import tracemalloc
from itertools import islice

from refsched.conformance.choice import choose_dialect
from refsched.conformance.recording import Recording
from refsched.conformance.verdict import judge
from scripts.bench_check import repeat


def measure_peak(iterations: int) -> tuple[int, str]:
    tracemalloc.start()
    recording = Recording(repeat(iterations))
    choice = choose_dialect(recording.opening.dialect)
    verdict = judge(recording.opening, recording.events(), choice).conclude(recording.closed)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert verdict.totals.iterations >= iterations
    return peak, verdict.relation


def test_that_the_peak_does_not_grow_with_the_trace() -> None:
    short, relation = measure_peak(500)
    long, _ = measure_peak(5000)
    assert relation == "exact"
    # The interpreter keeps some freed tuples for later, half a megabyte at most; keeping events would take far more.
    assert long < 2 * short


def test_that_reading_takes_no_more_lines_than_it_gives_events() -> None:
    taken = 0

    def count() -> object:
        nonlocal taken
        for line in repeat(1000):
            taken += 1
            yield line

    recording = Recording(count())  # type: ignore[arg-type]
    assert len(list(islice(recording.events(), 10))) == 10
    assert taken == 5 + 2 * 10
