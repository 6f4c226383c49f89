"""The summary of a workload, against numbers worked by hand or computed a second time."""

import statistics
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refsched.errors import InputError
from refsched.units import TICKS_PER_SECOND
from refsched.workload.offer import Workload
from refsched.workload.spacing import compute_spacing, write_root
from refsched.workload.summary import summarise, write_facts
from tests.workload.files import read

SMALL = (
    "arrival_s,prompt_tokens,output_tokens,group,cancel_s,hash_ids,block_tokens\n"
    "0,8,1,chat,,1 2,4\n1,12,4,chat,5,1 2 3,4\n1,10,6,report,,1 9 3,4\n4,4,1,chat,,2,4\n"
)


def test_a_small_workload_by_hand(tmp_path: Path) -> None:
    facts = summarise(read(tmp_path, SMALL), (10, 11))
    assert (facts.rows, facts.span, facts.rate) == (4, 4 * TICKS_PER_SECOND, Fraction(1))
    assert facts.spacing.mean_gap == Fraction(4 * TICKS_PER_SECOND, 3)
    assert facts.spacing.cv_squared == Fraction(7, 8)  # gaps 1, 0, 3: variance 14/9, squared mean 16/9
    assert (facts.spacing.longest_gap, facts.spacing.ties) == (3 * TICKS_PER_SECOND, 1)
    assert (facts.prompt.least, facts.prompt.mean, facts.prompt.p50, facts.prompt.most) == (4, Fraction(17, 2), 8, 12)
    assert (facts.output.total, facts.output.p50) == (12, 1)
    assert facts.single_output == 2 and facts.cancels == 1
    assert [(each.tokens, each.prompts, each.totals) for each in facts.above] == [(10, 1, 2), (11, 1, 2)]
    assert facts.groups == (("chat", 3), ("report", 1))
    assert facts.reuse is not None
    # prompts of 2, 3, 2 + a partial, 1 full blocks: reused 2 of the second's and 1 of the third's
    assert (facts.reuse.blocks, facts.reuse.blocks_reused) == (8, 3)
    assert (facts.reuse.ids, facts.reuse.ids_reused) == (9, 3)
    written = dict(write_facts(facts))
    assert written["CV of the gaps"] == "0.935" and written["rate (rows / span)"] == "1.000 /s"
    assert written["longer than 10"] == "1 prompts, 2 with their output"
    assert written["found by a boundless prefix cache"] == "33.3 % of 9 ids, 37.5 % of 8 full blocks"


def test_a_partial_last_block_counts_among_the_ids_only(tmp_path: Path) -> None:
    row = "0,5,1,1 2,4\n"
    facts = summarise(read(tmp_path, f"arrival_s,prompt_tokens,output_tokens,hash_ids,block_tokens\n{row}{row}"))
    assert facts.reuse is not None
    assert (facts.reuse.ids_reused, facts.reuse.ids, facts.reuse.blocks_reused, facts.reuse.blocks) == (2, 4, 1, 2)


def test_one_request_has_no_gaps(tmp_path: Path) -> None:
    facts = summarise(read(tmp_path, "arrival_s,prompt_tokens,output_tokens\n5,1,1\n"))
    assert (facts.span, facts.rate, facts.spacing.mean_gap, facts.spacing.cv_squared) == (0, None, None, None)
    assert facts.reuse is None
    assert dict(write_facts(facts))["CV of the gaps"] == "undefined"


def test_all_at_once_has_no_cv(tmp_path: Path) -> None:
    facts = summarise(read(tmp_path, "arrival_s,prompt_tokens,output_tokens\n5,1,1\n5,1,1\n"))
    assert (facts.rate, facts.spacing.cv_squared, facts.spacing.ties) == (None, None, 1)


def test_an_empty_workload_is_refused() -> None:
    with pytest.raises(InputError, match="no requests"):
        summarise(Workload("none", "generator", ()))


@given(st.lists(st.integers(0, 10**15), min_size=3, max_size=50))
def test_spacing_equals_the_textbook(times: list[int]) -> None:
    times.sort()
    gaps = [Fraction(after - before) for before, after in zip(times, times[1:], strict=False)]
    spacing = compute_spacing(times)
    assert spacing.mean_gap == statistics.mean(gaps)
    if spacing.mean_gap:
        assert spacing.cv_squared == statistics.pvariance(gaps) / spacing.mean_gap**2
    else:
        assert spacing.cv_squared is None


@given(st.fractions(min_value=0, max_value=10**6), st.integers(0, 8))
def test_a_written_root_is_the_nearest(square: Fraction, places: int) -> None:
    root, half = Fraction(write_root(square, places)), Fraction(1, 2 * 10**places)
    assert max(root - half, Fraction(0)) ** 2 <= square <= (root + half) ** 2
