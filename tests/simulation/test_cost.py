"""Step-time models: exact, and affine where they say so [B3, decisions 9 and 10]."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refsched.errors import InputError
from refsched.model import Work
from refsched.simulation.cost import ChunkCost, CostModel, UnitCost, get_cost_model

A100 = {
    "overhead": "11537.5 us",
    "per_prefill_token": "93.58 us",
    "per_decode": "80 ns",
    "per_kv_token": "81.92 ns",
    "per_chunk_history": "0 ps",
}


def test_a100_8b_has_the_four_coefficients_that_its_label_calls_an_example() -> None:
    cost = get_cost_model("a100-8b")
    assert "example" in cost.label
    assert cost.duration(Work((), 0, 0)) == 11_537_500_000
    assert cost.duration(Work(((5, 1),), 0, 0)) - 11_537_500_000 == 93_580_000
    assert cost.duration(Work((), 1, 0)) - 11_537_500_000 == 80_000
    assert cost.duration(Work((), 1, 7)) - 11_537_500_000 - 80_000 == 7 * 81_920


def test_document_b_s_iteration() -> None:
    """4 ms for the decodes, 64 ms for 4096 tokens of prefill, 0.5 ms overhead [B4, B5]."""
    cost = ChunkCost()
    assert cost.duration(Work(((0, 4096),), 2, 0)) == 68_500_000_000
    assert cost.duration(Work(((0, 1024),), 2, 0)) == 20_500_000_000
    assert cost.duration(Work(((0, 256),), 2, 0)) == 8_500_000_000
    assert cost.duration(Work(((3000, 1000),), 2, 0)) == 20_125_000_000


@given(st.integers(1, 5000), st.integers(0, 10**12), st.lists(st.integers(0, 5000), max_size=20))
def test_however_a_prompt_is_cut_its_chunks_cost_the_same(prompt: int, full: int, cuts: list[int]) -> None:
    cost = ChunkCost(decode=0, overhead=0, full_prefill=full, prompt=prompt)
    places = sorted({0, prompt, *(cut for cut in cuts if cut < prompt)})
    chunks = [(start, stop - start) for start, stop in zip(places, places[1:], strict=False)]
    assert sum(cost.duration(Work((chunk,), 0, 0)) for chunk in chunks) == full


AFFINE: list[CostModel] = [UnitCost(), get_cost_model("a100-8b")]
works = st.builds(
    Work,
    chunks=st.lists(st.tuples(st.integers(0, 9999), st.integers(1, 999)), max_size=4).map(tuple),
    decodes=st.integers(0, 99),
    context=st.integers(0, 10**6),
)


def is_affine(cost: CostModel, work: Work, step: Work) -> bool:
    """Tell whether moving context and starts on by `step`, twice, adds the same each time."""

    def moved(times: int) -> Work:
        chunks = tuple((start + times * count, count) for start, count in work.chunks)
        return Work(chunks, work.decodes, work.context + times * step.context)

    first, second, third = (cost.duration(moved(times)) for times in range(3))
    return second - first == third - second


@pytest.mark.parametrize("cost", AFFINE, ids=lambda cost: cost.name)
@given(work=works, step=works)
def test_an_affine_model_keeps_its_promise(cost: CostModel, work: Work, step: Work) -> None:
    assert cost.affine and is_affine(cost, work, step)


def test_the_chunk_model_promises_nothing_and_could_not() -> None:
    cost = ChunkCost(full_prefill=10, prompt=3, decode=0, overhead=0)
    assert not cost.affine
    assert not all(is_affine(cost, Work(((start, 1),), 0, 0), Work((), 0, 0)) for start in range(3))


def write(folder: Path, **changes: object) -> str:
    """Write a cost model file."""
    path = folder / "cost.json"
    path.write_text(json.dumps({"format": "refsched-cost/1", "name": "mine"} | A100 | changes))
    return str(path)


def test_a_file_is_read_like_the_built_in_model(tmp_path: Path) -> None:
    mine = get_cost_model(write(tmp_path, per_chunk_history="3 ps"))
    assert mine.name == "mine"
    assert mine.duration(Work(((7, 5),), 0, 0)) == 11_537_500_000 + 5 * 93_580_000 + 3 * 35


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "other"},
        {"overhead": 5},
        {"overhead": "5"},
        {"overhead": "-5 us"},
        {"overhead": "0.5 ps"},
        {"overhead": None},
        {"per_decode": "NaN us"},
        {"typo": "1 us"},
        {"overhead": "0 s", "per_prefill_token": "0 s"},
    ],
)
def test_a_wrong_file_is_refused_in_one_line_that_names_it(tmp_path: Path, changes: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"cost\.json: "):
        get_cost_model(write(tmp_path, **changes))


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000, '{"format": NaN}'])
def test_what_is_no_json_object_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "cost.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"cost\.json"):
        get_cost_model(str(path))


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(InputError, match="a100-8b"):
        get_cost_model("h900")


@pytest.mark.parametrize("change", [{"decode": -1}, {"full_prefill": -1}, {"overhead": -1}, {"prompt": 0}])
def test_the_chunk_model_refuses_what_is_not_positive(change: dict[str, int]) -> None:
    with pytest.raises(InputError):
        ChunkCost(**change)
