"""The gaps between tokens as a population, under three readings of a chunk that holds several [A12, B13, B14]."""

from array import array
from collections.abc import Mapping
from itertools import compress

from refsched.metrics.columns import Columns
from refsched.metrics.compact import MISSING, get_kind
from refsched.metrics.population import (
    Population,
    Run,
    make_counted_run,
    make_ratio_runs,
    make_runs,
    merge_counted_runs,
)
from refsched.metrics.seen import UNKNOWN
from refsched.metrics.steps import count_gaps


def make_gap_populations(columns: Columns) -> Mapping[str, tuple[Population, int]]:
    """Give the three populations of gaps, each with the number of requests that have none."""
    counted = make_counted(columns)
    runs = make_runs(columns.gaps) + counted
    chunk = Population(runs=runs), sum(longest == MISSING for longest in columns.longest)
    known = select_known(columns)
    if known is not columns:
        counted = make_counted(known)
        runs = make_runs(known.gaps) + counted
    even = make_even(known, runs, counted, len(columns))
    burst = make_burst(known, runs, len(columns))
    is_plain = known is columns and even[0].runs == burst[0].runs == chunk[0].runs
    return {"itl.chunk": chunk, "itl.even": chunk if is_plain else even, "itl.burst": chunk if is_plain else burst}


def make_counted(columns: Columns) -> list[Run]:
    """Order the gaps of simulated records, which are counted and not written out.

    Each run is longer than the one after it, so that there are few, and a length stands in few of them.
    """
    runs: list[Run] = []
    for counts in count_gaps(columns.ranges) if columns.ranges else ():
        runs.append(make_counted_run(counts))
        while len(runs) > 1 and len(runs[-2].values) <= len(runs[-1].values):
            runs[-2:] = [merge_counted_runs(*runs[-2:])]
    return runs


def select_known(columns: Columns) -> Columns:
    """Leave out the records that do not say how many tokens each chunk has."""
    delivered = columns.get("delivered")
    if UNKNOWN not in columns.held and MISSING not in delivered:
        return columns
    return columns.select([row for row, count in enumerate(delivered) if count != MISSING])


def make_even(known: Columns, runs: list[Run], counted: list[Run], offered: int) -> tuple[Population, int]:
    """Divide each gap evenly among the tokens that ended it; the first chunk's tokens have none."""
    without = sum(longest == MISSING for longest in known.longest) + offered - len(known)
    if known.held.count(1) == len(known.held):
        return Population(runs=runs), without
    several = [count > 1 for count in known.held]
    single = compress(known.gaps, map((1).__eq__, known.held))
    gaps, tokens = list(compress(known.gaps, several)), list(compress(known.held, several))
    return Population(runs=[*make_runs(single), *counted, *make_ratio_runs(gaps, tokens, True)]), without


def make_burst(known: Columns, runs: list[Run], offered: int) -> tuple[Population, int]:
    """Give every token the time of its chunk: a gap of 0 before each but the first of a chunk."""
    delivered = known.get("delivered")
    counts = array(get_kind(delivered), (count for count in delivered if count > 0))
    chunks = len(known.held) + len(counts) if not known.ranges else count_chunks(known)
    zeros = sum(counts) - chunks
    without = offered - sum(count > 1 for count in counts)
    return Population(runs=[*runs, *([Run([0], None, [zeros])] if zeros else [])]), without


def count_chunks(columns: Columns) -> int:
    """Count the chunks of records of which some are simulated: one more than gaps for each that has any."""
    written = sum(
        columns.starts[row + 1] - columns.starts[row] + 1
        for row, first in enumerate(columns.get("first"))
        if first != MISSING and row not in columns.ranges
    )
    return written + columns.ranges.count_deliveries()
