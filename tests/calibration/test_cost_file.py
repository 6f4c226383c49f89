"""Calibration files as cost models: exact integers, rounded once; affine, so that the leap is exact; refusals."""

import copy
import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refsched.dialect import get_dialect
from refsched.errors import InputError
from refsched.model import Limits, Request, Work
from refsched.scheduling.engine import ReferenceEngine
from refsched.simulation.cost import get_cost_model, parse_file
from refsched.simulation.cost_fitted import FittedCost, Table, count_terms, set_overhead
from refsched.simulation.cost_range import check_offers, extrapolate, list_warnings
from refsched.simulation.leap import leap
from refsched.simulation.step import simulate
from refsched.workload.load import load_workload
from refsched.workload.offer import Offer
from tests.calibration.schema import find_faults

PAGE: dict[str, Any] = {
    "schema": "calibration/1",
    "device": {"name": "a test"},
    "fit": {
        "form": "two-regime",
        "layers": 3,
        "overhead_s": 1e-9,
        "decode_only": {
            "token_table": [[1, 10e-9], [11, 20e-9]],
            "coefficients": {"decode_call": {"value": 1e-9}, "decode": {"value": 2e-9}, "kv": {"value": 5e-12}},
        },
        "with_prefill": {
            "token_table": [[1, 30e-9], [101, 130e-9]],
            "coefficients": {
                "prefill_call": {"value": 7e-9}, "chunk": {"value": 11e-9}, "pair": {"value": 13e-12},
                "history": {"value": 17e-12}, "kv": {"value": 19e-12}, "chunk_token": {"value": 23e-12},
            },
        },
        "row_table": [[1, 100e-9], [9, 108e-9]],
    },
    "quality": {"held_out": {"n": 40, "median": 0.012, "p95": 0.065, "max": 0.1, "bias": 0.0}},
    "validity": {
        "tokens": [1, 100], "chunk": [1, 64], "history": [0, 500], "decode_batch": [1, 32], "decode_context": [0, 700],
    },
}  # fmt: skip


def change(place: str, value: Any) -> str:
    """Give the page as text with one value changed; None takes it out."""
    page = copy.deepcopy(PAGE)
    *way, last = place.split(".")
    inner = page
    for name in way:
        inner = inner[name]
    inner[last] = value
    if value is None:
        del inner[last]
    return json.dumps(page)


def load(text: str) -> FittedCost:
    cost = parse_file(text, "test.json")
    assert isinstance(cost, FittedCost)
    return cost


COST = load(json.dumps(PAGE))


def test_the_page_follows_the_schema() -> None:
    assert list(find_faults(PAGE)) == []
    assert len(list(find_faults({**PAGE, "schema": "calibration/2"}))) == 1


def test_a_decode_only_iteration_by_hand() -> None:
    """Overhead 1 ns; 3 layers of 15 ns (6 tokens, half way) and 1 + 6 x 2 ns and 40 reads of 5 ps; logits 105 ns."""
    layer = 15_000 + 1_000 + 6 * 2_000 + 40 * 5
    assert COST.duration(Work((), 6, 40)) == 1_000 + 3 * layer + 105_000


def test_an_iteration_with_prefill_by_hand() -> None:
    """Chunks of 4 at 10 and 6 at 0, a decode that reads 9: 11 tokens, 3 rows; pairs 4 x 10 + 10 and 21; history 10."""
    layer = 40_000 + 7_000 + 2 * 11_000 + 10 * 23 + (50 + 21) * 13 + 10 * 17 + 9 * 19
    assert COST.duration(Work(((10, 4), (0, 6)), 1, 9)) == 1_000 + 3 * layer + 102_000


def test_terms_count_what_they_say() -> None:
    """Token k of a chunk at s, from 1, attends to s + k tokens."""
    chunks = ((10, 4), (0, 6))
    pairs = sum(start + k for start, count in chunks for k in range(1, count + 1))
    assert count_terms(Work(chunks, 2, 30)) == (1, 1, 2, 10, pairs, 10, 2, 30)
    assert count_terms(Work((), 0, 0)) == (0,) * 8


def test_layers_are_folded_in_before_rounding() -> None:
    """A third of a picosecond per layer is one picosecond in three layers."""
    cost = load(change("fit.decode_only.coefficients.kv", {"value": 0.3333e-12}))
    assert cost.decode_only.prices[-1] == 1
    assert cost.rounding == abs(1 - Fraction(Decimal("0.9999"))) / Fraction(Decimal("0.9999"))


def test_an_empty_iteration_pays_the_overhead_and_never_nothing() -> None:
    assert COST.duration(Work((), 0, 0)) == 1_000
    assert set_overhead(COST, 0).duration(Work((), 0, 0)) == 1


def test_the_error_and_the_ranges_stand_beside_the_numbers() -> None:
    assert "held-out error 1.20 % median, 6.50 % p95 of 40 points" in COST.label
    described = COST.describe()
    assert described["measured up to, decode context"] == "700"
    assert described["with prefill, kv"] == "57 ps"


def test_a_table_interpolates_and_goes_on_with_the_mean_slope_of_its_upper_half() -> None:
    table = Table((2, 4, 8), (10, 20, 60))
    assert [table.at(count) for count in (0, 2, 3, 4, 6, 8)] == [10, 10, 15, 20, 40, 60]
    assert table.at(10) == 80
    assert Table((5,), (7,)).at(100) == 7


# AFFINE, SO THAT THE LEAP IS EXACT

works = st.builds(
    Work,
    chunks=st.lists(st.tuples(st.integers(0, 300), st.integers(1, 10)), max_size=3).map(tuple),
    decodes=st.integers(0, 32),
    context=st.integers(0, 400),
)


@given(works, st.integers(0, 50), st.lists(st.integers(0, 50), min_size=3, max_size=3))
def test_the_model_is_affine_in_context_and_starts(work: Work, reads: int, steps: list[int]) -> None:
    free = extrapolate(COST)
    moved = [
        Work(
            tuple((start + times * step, count) for (start, count), step in zip(work.chunks, steps, strict=False)),
            work.decodes,
            work.context + times * reads,
        )
        for times in range(4)
    ]
    times = [free.duration(each) for each in moved]
    assert len({after - before for before, after in zip(times, times[1:], strict=False)}) == 1


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 5), st.integers(8, 40), st.integers(2, 12), st.sampled_from([40, 200]))
def test_leap_equals_step_under_a_fitted_model(seed: int, budget: int, seats: int, blocks: int) -> None:
    workload = load_workload("poisson:rate=900000,n=25,prompt=30,output=20", seed)
    limits = Limits(token_budget=max(budget, seats), max_seqs=seats, block_size=4, num_blocks=blocks)
    free = extrapolate(COST)
    stepped, leapt = (
        run(ReferenceEngine(get_dialect("vllm-v1"), limits), limits, free, workload.offers) for run in (simulate, leap)
    )
    assert leapt.makespan == stepped.makespan and leapt.iterations == stepped.iterations
    assert [record.ended for record in leapt.records] == [record.ended for record in stepped.records]


# RANGES


@pytest.mark.parametrize(
    ("work", "named"),
    [
        (Work(((0, 64), (0, 37)), 0, 0), "tokens 101"),
        (Work(((0, 65),), 0, 0), "chunk 65"),
        (Work(((501, 1),), 0, 0), "history 501"),
        (Work((), 33, 0), "decode batch 33"),
        (Work((), 2, 1402), "decode context 701"),
    ],
)
def test_outside_what_was_measured_is_refused_unless_insisted(work: Work, named: str) -> None:
    with pytest.raises(InputError, match=f"{named} is outside what was measured.*--extrapolate"):
        COST.duration(work)
    assert extrapolate(COST).duration(work) > 0
    assert "outside what was measured" in extrapolate(COST).label


def test_the_edge_of_the_range_is_inside() -> None:
    COST.duration(Work(((500, 64),), 32, 32 * 700))


def make_offer(prompt: int, output: int) -> Offer:
    return Offer(0, Request("r", prompt, output))


def test_a_request_that_must_leave_the_range_is_refused_when_offered() -> None:
    """The last decode of 600 + 102 tokens reads 700."""
    limits = Limits(token_budget=64, max_seqs=8)
    assert len(list(check_offers(COST, limits, [make_offer(600, 102)]))) == 1
    with pytest.raises(InputError, match="decode context 701"):
        list(check_offers(COST, limits, [make_offer(600, 103)]))
    short = Limits(token_budget=64, max_seqs=8, max_len=650)
    assert len(list(check_offers(COST, short, [make_offer(600, 103)]))) == 1
    assert len(list(check_offers(get_cost_model("a100-8b"), limits, [make_offer(6000, 9000)]))) == 1


def test_limits_that_reach_beyond_the_range_are_warned_of() -> None:
    assert list_warnings(COST, Limits(token_budget=100, max_seqs=32)) == []
    warnings = list_warnings(COST, Limits(token_budget=101, max_seqs=33))
    assert [warning.split()[0] for warning in warnings] == ["token_budget", "max_seqs"]
    assert list_warnings(get_cost_model("chunk"), Limits(token_budget=101, max_seqs=33)) == []
    assert extrapolate(get_cost_model("chunk")) == get_cost_model("chunk")


# REFUSED FILES


@pytest.mark.parametrize(
    ("place", "value", "named"),
    [
        ("fit", None, "fit"),
        ("fit.layers", 0, "fit.layers"),
        ("fit.layers", "3", "fit.layers"),
        ("fit.overhead_s", -1, "fit.overhead_s: -1 s is negative"),
        ("fit.overhead_s", 1e30, "too long"),
        ("fit.decode_only.token_table", [], "fit.decode_only.token_table"),
        ("fit.decode_only.token_table", [[2, 1e-9], [1, 2e-9]], "rise"),
        ("fit.decode_only.token_table", [[1, -1e-9]], "negative"),
        ("fit.decode_only.token_table", [[1, "1 ns"]], "not a number of seconds"),
        ("fit.decode_only.token_table", [[1]], "pairs"),
        ("fit.decode_only.token_table", 3, "pairs"),
        ("fit.decode_only.coefficients.speed", {"value": 1}, "fit.decode_only.coefficients.speed: is no term"),
        ("fit.decode_only.coefficients.kv", {"p5": 1}, 'has no "value"'),
        ("fit.decode_only.coefficients.kv", True, "not a number"),
        ("fit.row_table", None, "fit.row_table"),
        ("quality", None, "quality"),
        ("validity.speed", [0, 1], "validity.speed"),
        ("validity.tokens", 100, "validity.tokens: is not a range"),
        ("validity.tokens", [10, 1], "validity.tokens"),
        ("validity", 3, "validity"),
        ("schema", "calibration/2", '"schema" is not "calibration/1"'),
    ],
)
def test_a_bad_file_is_one_clear_line(place: str, value: Any, named: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_file(change(place, value), "bad.json")
    text = str(caught.value)
    assert text.startswith("bad.json: ") and named in text and "\n" not in text


def test_a_model_in_which_iterations_take_no_time_is_refused() -> None:
    page = copy.deepcopy(PAGE)
    page["fit"]["decode_only"] = {"token_table": [[1, 0]], "coefficients": {}}
    with pytest.raises(InputError, match="no time"):
        parse_file(json.dumps(page), "bad.json")


def test_a_number_that_is_not_finite_is_refused() -> None:
    with pytest.raises(InputError, match="not a number of seconds"):
        parse_file(json.dumps(PAGE).replace("1e-09", "Infinity", 1), "bad.json")


def test_a_file_is_found_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({**PAGE, "name": "mine"}))
    assert get_cost_model(str(path)).name == "mine"
