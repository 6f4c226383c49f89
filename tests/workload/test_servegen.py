"""ServeGen's windows and tables: counts are kept, idle windows stay idle, and its dicts in strings are never run."""

import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refsched.errors import InputError
from refsched.units import TICKS_PER_SECOND
from refsched.workload.arrivals import make_stream
from refsched.workload.formats.servegen import Window, read_tables, read_windows
from refsched.workload.generate import generate
from refsched.workload.load import load_workload
from refsched.workload.servegen import schedule_window
from tests.workload.files import write

TRACE = "0,0.05,1.3,Gamma,0.54,0.2\n600,0,0,,0,0\n1200,0.1,360.01,Weibull,0.1798403427212746,0.0148\n1800,0,0,,0,0\n"
TABLES = {
    "0": {"input_tokens": "{10: 0.25, 20: 0.75}", "output_tokens": "{5: 1.0}", "reason_ratio": "{0.0: 1.0}"},
    "1200": {"input_tokens": "{7: 1e-05}", "output_tokens": "{1: 0.5, 2: 0.5, }"},
}


def write_client(folder: Path, trace: str = TRACE, tables: object = TABLES) -> str:
    """Write a trace and its tables side by side, and give the trace's path."""
    write(folder, tables if isinstance(tables, str) else json.dumps(tables, indent=1), "chunk-1-dataset.json")
    return write(folder, trace, "chunk-1-trace.csv")


def test_each_window_has_the_requests_of_its_rate(tmp_path: Path) -> None:
    path = write_client(tmp_path)
    workload = load_workload(path, 4)
    assert len(workload.offers) == 0.05 * 600 + 0.1 * 600
    first, second = workload.offers[:30], workload.offers[30:]
    assert {offer.request.prompt for offer in first} == {10, 20} and {offer.request.output for offer in first} == {5}
    assert {offer.request.prompt for offer in second} == {7} and {offer.request.output for offer in second} == {1, 2}
    times = [offer.at for offer in workload.offers]
    assert times == sorted(times) and times[0] == 0
    assert times[29] < 600 * TICKS_PER_SECOND <= 1200 * TICKS_PER_SECOND - 600 * TICKS_PER_SECOND <= times[30]
    assert "Windows: 4, idle among them: 2" in workload.notes[0]
    assert {"trace_sha256", "dataset_sha256", "seed", "rows"} <= set(workload.source)
    assert workload == load_workload(path, 4)
    assert workload.offers != load_workload(path, 5).offers


def test_a_part_of_a_trace_is_that_part_of_the_whole(tmp_path: Path) -> None:
    path = write_client(tmp_path)
    whole = generate(f"servegen:trace={path}", 4).offers
    part = generate(f"servegen:trace={path},start=1200,span=600", 4).offers
    assert [offer.at - part[0].at for offer in part] == [offer.at - whole[30].at for offer in whole[30:]]
    assert [offer.request.output for offer in part] == [offer.request.output for offer in whole[30:]]
    assert generate(f"servegen:trace={path},n=7", 4).offers == whole[:7]
    assert load_workload(path, 4, first=7).offers == whole[:7]


def test_lengths_may_come_from_elsewhere(tmp_path: Path) -> None:
    path = write(tmp_path, TRACE, "rates")
    offers = generate(f"servegen:trace={path},prompt=100,output=uniform:3:4,group=client", 0).offers
    assert {offer.request.prompt for offer in offers} == {100} and offers[0].group == "client"
    dataset = write(tmp_path, json.dumps(TABLES), "lengths")
    assert generate(f"servegen:trace={path},dataset={dataset}", 0).offers[0].request.prompt in (10, 20)


@given(shape=st.floats(0.001, 1000), family=st.sampled_from(["Gamma", "Weibull"]), seed=st.integers(0, 9))
def test_any_shape_fills_its_window(
    tmp_path_factory: pytest.TempPathFactory, shape: float, family: str, seed: int
) -> None:
    path = write(tmp_path_factory.getbasetemp(), f"0,0.5,91,{family},{shape!r},1\n", "rates")
    times = [offer.at for offer in generate(f"servegen:trace={path},prompt=1,output=1", seed).offers]
    assert len(times) == 300 and times == sorted(times)
    assert times[-1] <= 600 * TICKS_PER_SECOND


BAD_TRACES = [
    ("0,1,1,Gamma,0.5,1\n0,1,1,Gamma,0.5,1\n", 2, "start"),
    ("600,1,1,Gamma,0.5,1\n0,1,1,Gamma,0.5,1\n", 2, "start"),
    ("0,1,1,Gamma,0.5,1\n600,x,1,Gamma,0.5,1\n", 2, "rate"),
    ("0,1,1,Gamma,0.5,1\n600,-1,1,Gamma,0.5,1\n", 2, "rate"),
    ("0,1,1,Gamma,0.5,1\n600,nan,1,Gamma,0.5,1\n", 2, "rate"),
    ("0,1,1,Gamma,0.5,1\n600,1e9,1,Gamma,0.5,1\n", 2, "rate"),
    ("0,1,1,Gamma,0.5,1\n600,1,1,Pareto,0.5,1\n", 2, "family"),
    ("0,1,1,Gamma,0.5,1\n600,1,1,,0.5,1\n", 2, "family"),
    ("0,1,1,Gamma,0.5,1\n600,1,1,Gamma,0,1\n", 2, "shape"),
    ("0,1,1,Gamma,0.5,1\n600,1,1,Gamma,-1,1\n", 2, "shape"),
    ("0,1,1,Gamma,0.5,1\n600,1,1,Gamma\n", 2, None),
]


@pytest.mark.parametrize(("trace", "row", "field"), BAD_TRACES, ids=[trace[19:60] for trace, _, _ in BAD_TRACES])
def test_a_wrong_window_is_refused(tmp_path: Path, trace: str, row: int, field: str | None) -> None:
    with pytest.raises(InputError) as caught:
        load_workload(write_client(tmp_path, trace))
    assert (caught.value.row, caught.value.field) == (row, field)


def replace_input(text: object) -> object:
    """Give tables whose first input lengths are this text."""
    return {"0": {"input_tokens": text, "output_tokens": "{5: 1.0}"}}


BAD_TABLES: list[tuple[object, str]] = [
    (replace_input("__import__('os').getcwd()"), "not a dict"),
    (replace_input("{__import__('os').getpid(): 1}"), "is not a number"),
    (replace_input("{1: 1, **{}}"), "not tokens: weight"),
    (replace_input("{" * 9999 + "}"), "not tokens: weight"),
    (replace_input("{1: 1, 2}"), "not tokens: weight"),
    (replace_input("{0: 1}"), "below 1"),
    (replace_input("{-4: 1}"), "below 1"),
    (replace_input("{1.5: 1}"), "whole number"),
    (replace_input("{1: nan}"), "not a number"),
    (replace_input("{1: -0.5}"), "no weight"),
    (replace_input("{1: 1e999}"), "no weight"),
    (replace_input("{}"), "no lengths"),
    (replace_input("{1: 0}"), "no lengths"),
    (replace_input({"1": 1}), "not a dict"),
    (replace_input(None), "not a dict"),
    ({"0": {"input_tokens": "{1: 1}"}}, "not a dict"),
    ({"0": "text"}, "not a dict"),
    ({"now": replace_input("{1: 1}")}, "not a number"),
    ({"600": TABLES["0"], "0": TABLES["0"]}, "not after"),
    ({}, "no windows"),
    ("[]", "not a JSON object"),
    ('{"0": ', "not one JSON object"),
    ('{"0": 1, "0": 2}', "given twice"),
    ("{" + '"0": {' * 100000, "nested too deeply"),
    ("", "not one JSON object"),
]


@pytest.mark.parametrize(("tables", "words"), BAD_TABLES, ids=[str(tables)[:60] for tables, _ in BAD_TABLES])
def test_wrong_tables_are_refused_and_never_run(tmp_path: Path, tables: object, words: str) -> None:
    with pytest.raises(InputError) as caught:
        load_workload(write_client(tmp_path, TRACE, tables))
    assert words in str(caught.value)
    assert caught.value.file is not None and caught.value.file.endswith("dataset.json")
    assert len(str(caught.value)) < len(caught.value.file) + 250


def test_what_is_asked_for_must_be_there(tmp_path: Path) -> None:
    path = write_client(tmp_path)
    for text, words in (
        (f"servegen:trace={path},start=600,span=600", "idle"),
        (f"servegen:trace={path},start=99999", "idle"),
        (f"servegen:trace={path},start=-1", "negative"),
        (f"servegen:trace={path},dataset=none.json", "none.json: cannot be read"),
        (f"servegen:trace={write(tmp_path, TRACE, 'rates')}", "dataset: is missing"),
        (f"servegen:trace={path},prompt=1", "output: is missing"),
        (f"servegen:trace={path},rate=1", "rate: is unknown"),
    ):
        with pytest.raises(InputError) as caught:
            generate(text, 0)
        assert words in str(caught.value)


def test_more_requests_than_can_be_held_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "0,500000,1,Gamma,1,1\n600,0,0,,0,0\n", "rates")
    with pytest.raises(InputError, match="300000000 requests are more than"):
        generate(f"servegen:trace={path},prompt=1,output=1", 0)


def test_windows_end_where_the_next_begins(tmp_path: Path) -> None:
    windows, _ = read_windows(write(tmp_path, "0,1,1,Gamma,1,1\n300,0,0,,0,0\n1000,1,1,Gamma,1,1\n", "rates"))
    assert [(window.start // TICKS_PER_SECOND, window.end // TICKS_PER_SECOND) for window in windows] == [
        (0, 300), (300, 1000), (1000, 1700)
    ]  # fmt: skip
    alone, _ = read_windows(write(tmp_path, "0,1,1,Gamma,1,1\n", "rates"))
    assert alone[0].end == 600 * TICKS_PER_SECOND


def test_tables_are_exact(tmp_path: Path) -> None:
    tables, _ = read_tables(write(tmp_path, json.dumps(TABLES), "lengths"))
    assert tables[0].prompt == ((10, 0.25), (20, 0.75))
    assert tables[1].start == 1200 * TICKS_PER_SECOND and tables[1].output == ((1, 0.5), (2, 0.5))


def test_n_requests_part_a_window_into_n_plus_one_gaps() -> None:
    """With a shape of a million the gaps are even but for a thousandth: arrival k is at (k + 1) / (n + 1)."""
    window = Window(600, 600 + 10 * TICKS_PER_SECOND, Fraction(4, 10), "Gamma", Fraction(10**6))
    times = schedule_window(window, make_stream(0, "x"))
    assert times == pytest.approx([600 + k * 2 * TICKS_PER_SECOND for k in (1, 2, 3, 4)], rel=0.01)


def test_each_window_has_draws_of_its_own(tmp_path: Path) -> None:
    path = write(tmp_path, "0,0.05,1,Gamma,1,1\n600,0.05,1,Gamma,1,1\n", "rates")
    times = [offer.at for offer in generate(f"servegen:trace={path},prompt=1,output=1", 0).offers]
    first, second = times[:30], times[30:]
    assert [at - first[0] for at in first] != [at - second[0] for at in second]
