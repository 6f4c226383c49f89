"""Generated workloads: exact schedules where they can be, draws with the moments they promise, junk refused."""

import math
import random
import statistics
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refsched.errors import InputError
from refsched.units import TICKS_PER_SECOND
from refsched.workload.arrivals import (
    draw_exponential,
    make_gamma,
    make_stream,
    make_weibull,
    schedule_constant,
    schedule_draws,
)
from refsched.workload.generate import generate
from refsched.workload.lengths import OUTPUT, PROMPT, parse_length
from tests.workload.files import write

N = 20_000


def measure_gaps(text: str, seed: int = 1) -> tuple[float, float]:
    """Give the mean gap in seconds and the CV of a generated workload, in floats: a second computation."""
    times = [offer.at / TICKS_PER_SECOND for offer in generate(text, seed).offers]
    gaps = [after - before for before, after in zip(times, times[1:], strict=False)]
    return statistics.fmean(gaps), statistics.pstdev(gaps) / statistics.fmean(gaps)


def test_constant_arrivals_never_drift() -> None:
    offers = generate("constant:rate=3,n=3001,prompt=1024,output=128", 0).offers
    assert [offer.at for offer in offers[:4]] == [0, 333_333_333_333, 666_666_666_667, TICKS_PER_SECOND]
    assert offers[3000].at == 1000 * TICKS_PER_SECOND
    assert all(abs(offer.at - Fraction(k * TICKS_PER_SECOND, 3)) <= Fraction(1, 2) for k, offer in enumerate(offers))
    assert {(offer.request.prompt, offer.request.output) for offer in offers} == {(1024, 128)}
    assert [offer.request.id for offer in offers[:2]] == ["r0", "r1"]


def test_rates_are_exact_decimals() -> None:
    assert [offer.at for offer in generate("constant:rate=0.1,n=3,prompt=1,output=1", 0).offers] == [
        0, 10 * TICKS_PER_SECOND, 20 * TICKS_PER_SECOND
    ]  # fmt: skip
    assert generate("constant:rate=1e2,n=2,prompt=1,output=1", 0).offers[1].at == TICKS_PER_SECOND // 100


def test_a_batch_comes_at_once() -> None:
    assert {offer.at for offer in generate("batch:n=5,prompt=1,output=1", 0).offers} == {0}


@pytest.mark.parametrize(("shape", "cv"), [("0.25", 2.0), ("1", 1.0), ("4", 0.5), ("100", 0.1)])
def test_gamma_gaps_have_cv_one_over_the_root_of_the_shape(shape: str, cv: float) -> None:
    mean, measured = measure_gaps(f"gamma:rate=4,shape={shape},n={N},prompt=1,output=1")
    assert mean == pytest.approx(0.25, rel=0.05)
    assert measured == pytest.approx(cv, rel=0.05)


def test_poisson_gaps_have_cv_1_and_the_notes_say_what_was_drawn() -> None:
    text = f"poisson:rate=4,n={N},prompt=1,output=1"
    mean, cv = measure_gaps(text)
    assert mean == pytest.approx(0.25, rel=0.03) and cv == pytest.approx(1, rel=0.03)
    assert generate(text, 1).notes == (f"Achieved rate {1 / mean:.4f} requests/s, CV of the gaps {cv:.4f}.",)


def test_an_arrival_is_the_exact_sum_of_its_gaps_rounded_once() -> None:
    stream, total = make_stream(7, "x"), Fraction(0)
    for at in schedule_draws(Fraction(3), 500, draw_exponential, make_stream(7, "x")):
        assert abs(at - total * TICKS_PER_SECOND / 3) <= Fraction(1, 2)
        total += Fraction(int(draw_exponential(stream) * 2**53), 2**53)


def test_the_seed_decides_everything_and_lengths_do_not_move_arrivals() -> None:
    text = "poisson:rate=4,n=50,prompt=uniform:1:9,output=3"
    assert generate(text, 5) == generate(text, 5)
    assert generate(text, 5).offers != generate(text, 6).offers
    other = generate("poisson:rate=4,n=50,prompt=lognormal:50:1,output=uniform:2:3", 5)
    assert [offer.at for offer in other.offers] == [offer.at for offer in generate(text, 5).offers]
    grouped = generate(f"{text},group=chat", 5)
    assert grouped.offers[0].group == "chat" and grouped.offers[1].at != other.offers[1].at
    assert generate(text, 5).source == {"generator": text, "seed": 5, "rows": 50}


def test_draws_come_from_streams_of_the_seed_and_a_label() -> None:
    """Seeded workloads are cited in reports, so this recipe is written out a second time here."""
    offers = generate("gamma:rate=2,shape=0.5,n=4,prompt=uniform:1:1000,output=lognormal:100:1,group=g", 42).offers
    gaps, prompts, outputs = (random.Random(f"42/g/{label}") for label in ("arrivals", "prompt", "output"))
    at = 0.0
    for offer in offers:
        assert offer.at == pytest.approx(at * TICKS_PER_SECOND, abs=1)
        assert offer.request.prompt == 1 + int(prompts.random() * 1000)
        assert offer.request.output == max(1, round(math.exp(math.log(100) - 0.5 + outputs.gauss(0.0, 1.0))))
        at += gaps.gammavariate(0.5, 2) / 2


@given(rate=st.fractions(min_value="1/1000", max_value=1000), n=st.integers(1, 200))
def test_constant_schedules_are_in_order_and_nearest(rate: Fraction, n: int) -> None:
    times = list(schedule_constant(rate, n))
    assert times == sorted(times) and len(times) == n
    assert all(abs(at - k * TICKS_PER_SECOND / rate) <= Fraction(1, 2) for k, at in enumerate(times))


@given(shape=st.fractions(min_value="1/1000", max_value=10**6), seed=st.integers(0, 99))
def test_extreme_shapes_survive(shape: Fraction, seed: int) -> None:
    for make in (make_gamma, make_weibull):
        draw, stream = make(shape), make_stream(seed, "shape")
        assert all(0 <= draw(stream) < math.inf for _ in range(20))


# LENGTHS

def draw_many(text: str, n: int = N) -> list[int]:
    draw, stream = parse_length(text, PROMPT), make_stream(3, "lengths")
    return [draw(stream) for _ in range(n)]


def test_uniform_lengths_include_both_ends() -> None:
    drawn = draw_many("uniform:10:13")
    assert set(drawn) == {10, 11, 12, 13}
    assert all(drawn.count(length) / N == pytest.approx(0.25, rel=0.1) for length in (10, 11, 12, 13))
    assert statistics.fmean(drawn) == pytest.approx(11.5, abs=0.05)
    assert set(draw_many("uniform:7:7", 5)) == {7}


def test_lognormal_lengths_have_the_mean_that_is_written() -> None:
    drawn = draw_many("lognormal:500:0.8")
    assert statistics.fmean(drawn) == pytest.approx(500, rel=0.03)
    assert statistics.pstdev(map(math.log, drawn)) == pytest.approx(0.8, rel=0.03)
    assert set(draw_many("lognormal:500:0", 5)) == {500}
    assert min(draw_many("lognormal:1:3")) == 1


def test_empirical_lengths_come_from_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, "num_prefill_tokens,num_decode_tokens\n100,1\n200,2\n300,3\n")
    joint = generate(f"poisson:rate=1,n=200,lengths={path}", 2).offers
    assert {(offer.request.prompt, offer.request.output) for offer in joint} == {(100, 1), (200, 2), (300, 3)}
    apart = generate(f"poisson:rate=1,n=200,prompt=file:{path},output=file:{path}", 2).offers
    assert len({(offer.request.prompt, offer.request.output) for offer in apart}) == 9
    assert parse_length(f"file:{path}", OUTPUT)(make_stream(0, "")) in (1, 2, 3)


# REFUSALS

ENOUGH = "n=10,prompt=1,output=1"
REFUSED = [
    (f"poisson:rate=0,{ENOUGH}", "rate"),
    (f"poisson:rate=-1,{ENOUGH}", "rate"),
    (f"poisson:rate=nan,{ENOUGH}", "rate"),
    (f"poisson:rate=inf,{ENOUGH}", "rate"),
    (f"poisson:rate=1e10,{ENOUGH}", "rate"),
    (f"poisson:rate=1e999999999,{ENOUGH}", "rate"),
    (f"poisson:rate=1e-300,{ENOUGH}", "rate"),
    (f"poisson:rate=4/3,{ENOUGH}", "rate"),
    (f"poisson:{ENOUGH}", "rate"),
    ("poisson:rate=1,n=0,prompt=1,output=1", "n"),
    ("poisson:rate=1,n=-5,prompt=1,output=1", "n"),
    ("poisson:rate=1,n=1.5,prompt=1,output=1", "n"),
    ("poisson:rate=1,n=100000001,prompt=1,output=1", "n"),
    (f"poisson:rate=1,n={'9' * 5000},prompt=1,output=1", "n"),
    ("poisson:rate=1,prompt=1,output=1", "n"),
    ("poisson:rate=1,n=10,output=1", "prompt"),
    ("poisson:rate=1,n=10,prompt=1", "output"),
    ("poisson:rate=1,n=10,prompt=0,output=1", "prompt"),
    ("poisson:rate=1,n=10,prompt=-1,output=1", "prompt"),
    ("poisson:rate=1,n=10,prompt=1.5,output=1", "prompt"),
    ("poisson:rate=1,n=10,prompt=uniform:1,output=1", "prompt"),
    ("poisson:rate=1,n=10,prompt=uniform:9:1,output=1", "prompt"),
    ("poisson:rate=1,n=10,prompt=uniform:0:1,output=1", "prompt"),
    ("poisson:rate=1,n=10,prompt=zipf:1:2,output=1", "prompt"),
    ("poisson:rate=1,n=10,prompt=lognormal:0:1,output=1", "prompt"),
    ("poisson:rate=1,n=10,prompt=lognormal:10:-1,output=1", "prompt"),
    ("poisson:rate=1,n=10,prompt=lognormal:1e9999:1,output=1", "prompt"),
    ("poisson:rate=1,n=10,prompt=lognormal:nan:1,output=1", "prompt"),
    (f"poisson:rate=1,shape=2,{ENOUGH}", "shape"),
    (f"poisson:rate=1,{ENOUGH},colour=blue", "colour"),
    (f"poisson:rate=1,rate=2,{ENOUGH}", "rate"),
    (f"gamma:rate=1,{ENOUGH}", "shape"),
    (f"gamma:rate=1,shape=0,{ENOUGH}", "shape"),
    (f"gamma:rate=1,shape=-1,{ENOUGH}", "shape"),
    (f"gamma:rate=1,shape=inf,{ENOUGH}", "shape"),
    (f"gamma:rate=1,shape=nan,{ENOUGH}", "shape"),
    (f"batch:rate=1,{ENOUGH}", "rate"),
    ("poisson:rate=1,n=10,lengths=a,prompt=1,output=1", None),
    (f"poisson:rate,{ENOUGH}", None),
    (f"poisson:rate=,{ENOUGH}", None),
    ("poisson:", "n"),
    ("poisson:,", None),
    (f"weibull:rate=1,{ENOUGH}", None),
    ("servegen:n=1", "trace"),
]


@pytest.mark.parametrize(("text", "field"), REFUSED, ids=[text[:60] for text, _ in REFUSED])
def test_a_generator_that_makes_no_sense_is_refused(text: str, field: str | None) -> None:
    with pytest.raises(InputError) as caught:
        generate(text, 0)
    assert field is None or caught.value.field == field
    assert len(str(caught.value)) < len(text) + 250


def test_lengths_beyond_counting_are_refused_not_cut() -> None:
    with pytest.raises(InputError, match="too large"):
        generate("batch:n=100,prompt=lognormal:1e12:1,output=1", 0)


def test_a_missing_file_of_lengths_is_named() -> None:
    with pytest.raises(InputError) as caught:
        generate("poisson:rate=1,n=10,lengths=no-such-file", 0)
    assert caught.value.file == "no-such-file"


@given(st.text(alphabet="poisngame:=,rt0123456789.-e", max_size=40))
def test_any_text_is_generated_or_refused(text: str) -> None:
    try:
        generate(f"constant:{text}", 0)
    except InputError as error:
        assert str(error)
