"""Step logs: what a row means, what is refused, and that known coefficients come back."""

from pathlib import Path

import pytest

from refsched.calibration.assemble import assemble_log
from refsched.calibration.step_log import read_step_log
from refsched.errors import InputError
from refsched.model import Work
from refsched.units import TICKS_PER_SECOND
from tests.calibration.logs import draw_works, price, write_log

PLAIN = "tokens,decodes,kv,time_ms"


def write(tmp_path: Path, header: str, *rows: str, times: int = 12) -> str:
    path = tmp_path / "steps.csv"
    path.write_text("\n".join([header, *rows * times]) + "\n", encoding="utf-8")
    return str(path)


def test_without_chunks_the_rest_of_the_tokens_is_one_chunk(tmp_path: Path) -> None:
    path = write(tmp_path, "tokens,decodes,kv,history,time_us,use", "20,4,80,7,500,train")
    train, held_out = read_step_log(path)
    assert train[0].work == Work(((7, 16),), 4, 80) and not held_out
    assert train[0].seconds == pytest.approx(0.0005)


def test_several_chunks_stand_in_one_column(tmp_path: Path) -> None:
    path = write(tmp_path, "tokens,decodes,kv,chunks,time_s", "580,4,80,512@4096 64@0,0.5", "4,4,80,,0.1")
    train, held_out = read_step_log(path, seed=1)
    assert {sample.work for sample in (*train, *held_out)} == {Work(((4096, 512), (0, 64)), 4, 80), Work((), 4, 80)}


def test_a_fifth_is_held_out_repeatably(tmp_path: Path) -> None:
    path = write(tmp_path, PLAIN, *(f"{n},{n},{10 * n},{n}" for n in range(1, 51)), times=1)
    train, held_out = read_step_log(path, seed=3)
    assert (len(train), len(held_out)) == (40, 10)
    assert read_step_log(path, seed=3) == (train, held_out) != read_step_log(path, seed=4)


def test_the_known_model_comes_back_from_a_noisy_log(tmp_path: Path) -> None:
    path = tmp_path / "steps.csv"
    write_log(path, draw_works(240, seed=1), noise=0.01)
    page, result = assemble_log(str(path), seed=1)
    assert result.fit.form == "two-regime knee"
    assert result.held_out is not None and result.held_out.median < 0.015
    assert result.alternatives["linear in tokens"].median > 3 * result.held_out.median
    assert page["validity"]["tokens"][1] <= 1024 + 64  # type: ignore[index]
    fresh = draw_works(60, seed=2)
    guesses = [result.cost.duration(work) / TICKS_PER_SECOND * 1e3 for work in fresh]
    errors = sorted(abs(guess / price(work) - 1) for guess, work in zip(guesses, fresh, strict=True))
    assert errors[30] < 0.02


@pytest.mark.parametrize(
    ("header", "row", "named"),
    [
        ("tokens,decodes,time_ms", "4,4,1", "row 1: the first row must name the columns"),
        (PLAIN + ",time_us", "4,4,1,1,1", "row 1: the first row must name the columns"),
        (PLAIN + ",batch", "4,4,1,1,1", "row 1: batch: is no column"),
        (PLAIN + ",kv", "4,4,1,1,1", "row 1"),
        (PLAIN, "4,4,1", "row 2: has not as many cells"),
        (PLAIN, "4,4,1,1,1", "row 2: has not as many cells"),
        (PLAIN, "4.5,4,1,1", "row 2: tokens: '4.5' is not a whole number"),
        (PLAIN, "-4,4,1,1", "row 2: tokens"),
        (PLAIN, "4,5,1,1", "row 2: tokens: 5 decodes do not fit 4 tokens"),
        (PLAIN, "0,0,0,1", "row 2: tokens"),
        (PLAIN, "4,4,1,0", "row 2: time_ms: '0' is not a positive time"),
        (PLAIN, "4,4,1,nan", "row 2: time_ms"),
        (PLAIN, "4,4,1,fast", "row 2: time_ms: 'fast' is not a number"),
        (PLAIN + ",use", "4,4,1,1,test", "row 2: use: 'test' is neither"),
        (PLAIN + ",chunks", "9,4,1,1,6@0", "row 2: chunks: chunks and decodes make 10 tokens, not 9"),
        (PLAIN + ",chunks", "9,4,1,1,5", "row 2: chunks: '5' is not a chunk"),
        (PLAIN + ",chunks", "4,4,1,1,0@5", "row 2: chunks"),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, header: str, row: str, named: str) -> None:
    with pytest.raises(InputError) as caught:
        read_step_log(write(tmp_path, header, row))
    assert named in str(caught.value)


def test_too_few_rows_and_no_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least 12"):
        read_step_log(write(tmp_path, PLAIN, "4,4,1,1", times=11))
    with pytest.raises(InputError, match="cannot be read"):
        read_step_log(str(tmp_path / "none.csv"))
