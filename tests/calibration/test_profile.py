"""Kernel profiles: composed by hand from a small folder, and the aims on the published ones."""

from pathlib import Path

import pytest

from refsched.calibration.forms import (
    ATTENTION,
    Measured,
    fit_all,
    fit_component,
    fit_linear_in_tokens,
    fit_two_regimes,
    interpolate,
)
from refsched.calibration.page import judge, load_fit
from refsched.calibration.profile import choose_keys, draw, make_samples, make_work, read_profile, thin_out
from refsched.calibration.samples import Sample
from refsched.errors import InputError
from refsched.model import Work
from tests.shared import SHARED, needs_shared

LLAMA_LAYERS = 32
FOLDER = ("data", "hardware", "llmservingsim", "profile")
OPERATORS = ("layernorm", "qkv_proj", "rotary_emb", "o_proj", "gate_up_proj", "act_fn", "down_proj")


def write_profile(
    folder: Path, attention: str = "16,0,0,0,40\n16,32,0,0,50\n0,0,4,64,10\n16,0,4,64,70\n0,0,4,999,90\n"
) -> str:
    """Write a profile in which every operator takes 1 us at 1 token and 2 us at 101, embedding and last norm 32."""
    rows = [f"{name},{tokens},{time}" for name in OPERATORS for tokens, time in ((1, 1), (101, 2))]
    rows += [f"{name},{tokens},32" for name in ("embedding", "final_layernorm") for tokens in (1, 101)]
    (folder / "meta.yaml").write_text("gpu: A card\nmodel: meta-llama/Llama-3.1-8B\nengine_effective:\n  tp: 1\n")
    (folder / "tp1_dense.csv").write_text("layer,tokens,time_us\n" + "\n".join(rows) + "\n")
    (folder / "tp1_per_sequence.csv").write_text(
        "layer,sequences,time_us\nlm_head,1,300\nlm_head,9,340\nsampler,1,20\n"
    )
    (folder / "tp1_attention.csv").write_text("prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n" + attention)
    return str(folder)


def test_an_iteration_is_composed_as_the_readme_says(tmp_path: Path) -> None:
    """20 tokens: 8 operators of 1.19 us (two norms), a 32nd of 64 us, attention of 70; 5 sequences: 340 us, a 32nd."""
    profile = read_profile(write_profile(tmp_path))
    assert profile.device == "A card" and profile.shape.layers == LLAMA_LAYERS
    sample = make_samples(profile, [(16, 0, 4, 64)])[0]
    assert sample.work == Work(((0, 16),), 4, 256)
    assert sample.seconds == pytest.approx((8 * 1.19 + 64 / 32 + 70 + 340 / 32) * 1e-6)
    added = make_samples(profile, [(16, 0, 4, 64)], additive=True)[0]
    assert added.seconds == pytest.approx(sample.seconds - 20e-6)


def test_points_beyond_the_pool_are_left_out(tmp_path: Path) -> None:
    profile = read_profile(write_profile(tmp_path))
    assert (0, 0, 4, 999) in choose_keys(profile, None, False)
    assert choose_keys(profile, 1000, False) == [(0, 0, 4, 64), (16, 0, 0, 0), (16, 0, 4, 64), (16, 32, 0, 0)]
    lone = read_profile(write_profile(tmp_path, "16,0,0,0,40\n16,0,4,64,70\n"))
    assert choose_keys(lone, None, True) == [(16, 0, 0, 0)]


def test_drawing_leaves_points_of_each_kind_to_judge(tmp_path: Path) -> None:
    keys = [(16, n, 0, 0) for n in range(40)] + [(0, 0, n, 64) for n in range(1, 11)]
    train, held_out = draw(keys, 20, seed=1)
    assert len(train) == 10 + 5 and sorted([*train, *held_out]) == list(range(50))


@pytest.mark.parametrize(
    ("file", "text", "named"),
    [
        ("meta.yaml", "gpu: A card\n", "meta.yaml: model: is missing"),
        ("meta.yaml", "model: gpt-5\n", "no model whose shape is known"),
        ("tp1_dense.csv", "layer,tokens\n", "tp1_dense.csv: row 1: time_us: is missing"),
        ("tp1_dense.csv", "layer,tokens,time_us\n", "holds no rows"),
        ("tp1_dense.csv", "layer,tokens,time_us\nqkv_proj,1,fast\n", "row 2: time_us: 'fast' is not a number"),
        ("tp1_attention.csv", "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n1,2,3,4\n", "row 2: time_us"),
    ],
)
def test_a_bad_profile_is_named(tmp_path: Path, file: str, text: str, named: str) -> None:
    folder = write_profile(tmp_path)
    (tmp_path / file).write_text(text)
    with pytest.raises(InputError) as caught:
        read_profile(folder)
    assert named in str(caught.value)


# FORMS


def make_samples_of(work: list[Work], kv: float, kv_mixed: float) -> list[Sample]:
    """Price by hand: 1 ms + 1 us a token as a table, 2 us a decode, kv as given, 3 ns a pair."""
    samples = []
    for each in work:
        tokens = each.decodes + sum(count for _, count in each.chunks)
        pairs = sum(count * start + count * (count + 1) / 2 for start, count in each.chunks)
        read = each.context * (kv_mixed if each.chunks else kv)
        samples.append(Sample(each, 1e-3 + 1e-6 * tokens + 2e-6 * each.decodes + read + 3e-9 * pairs))
    return samples


WORKS = [
    Work(((start, count),) if count else (), decodes, decodes * context)
    for count in (0, 32, 256)
    for start in (0, 4096)
    for decodes in (0, 1, 16, 64)
    for context in (100, 2000)
    if count or decodes
]
TABLE = Measured(((0, 1e-3), (1000, 2e-3)))


def test_component_finds_coefficients_beside_a_table() -> None:
    fit = fit_component(make_samples_of(WORKS, 4e-9, 4e-9), TABLE)
    found = fit.decode_only.coefficients
    assert (found["kv"], found["pair"], found["decode"]) == pytest.approx((4e-9, 3e-9, 2e-6), rel=1e-3)
    low, high = fit.decode_only.intervals["kv"]
    assert low <= found["kv"] <= high
    assert fit.decode_only is fit.with_prefill and set(found) == set(ATTENTION)


def test_two_regimes_price_the_same_reads_twice() -> None:
    fit = fit_two_regimes(make_samples_of(WORKS, 4e-9, 9e-9), TABLE)
    assert fit.decode_only.coefficients["kv"] == pytest.approx(4e-9, rel=1e-3)
    assert fit.with_prefill.coefficients["kv"] == pytest.approx(9e-9, rel=1e-3)


def test_decodes_alone_can_be_fitted_and_stand_for_both_regimes() -> None:
    works = [work for work in WORKS if not work.chunks]
    fits = fit_all(make_samples_of(works, 4e-9, 4e-9))
    assert [fit.form for fit in fits] == ["two-regime knee", "linear", "linear in tokens"]
    errors = judge(load_fit(fits[0]), make_samples_of(works, 4e-9, 4e-9))
    assert errors is not None and errors.max < 0.01


def test_interpolation_by_hand() -> None:
    knots = ((2, 10.0), (4, 20.0), (8, 60.0))
    assert [interpolate(knots, count) for count in (1, 2, 3, 6, 8, 9)] == [10, 10, 15, 40, 60, 60]


# THE PUBLISHED PROFILES: at most 2 % median and 10 % p95 where kernels add up; seeds 1 to 3, 90 training points

PUBLISHED = ("RTX4090__meta-llama__Llama-3.1-8B", "RTXPRO6000__meta-llama__Llama-3.1-8B")


@needs_shared(*FOLDER)
@pytest.mark.parametrize("name", PUBLISHED)
def test_held_out_errors_on_published_profiles(name: str) -> None:
    profile = read_profile(str(SHARED.joinpath(*FOLDER, name)))
    keys = choose_keys(profile, None, apart=True)
    samples = make_samples(profile, keys, additive=True)
    for seed in (1, 2, 3):
        train, held_out = ([samples[place] for place in part] for part in draw(keys, 90, seed))
        component = judge(load_fit(fit_component(train, thin_out(profile.measured))), held_out, LLAMA_LAYERS)
        linear = judge(load_fit(fit_linear_in_tokens(train)), held_out)
        assert component is not None and linear is not None
        assert component.median <= 0.02 and component.p95 <= 0.10
        assert linear.median > 5 * component.median


@needs_shared(*FOLDER)
def test_mixed_iterations_need_two_regimes() -> None:
    """Within the pool of the RTX 4090; one set of coefficients is wrong where a chunk joins the decodes."""
    profile = read_profile(str(SHARED.joinpath(*FOLDER, PUBLISHED[0])))
    keys = choose_keys(profile, 41_408, apart=False)
    samples = make_samples(profile, keys)
    train, held_out = ([samples[place] for place in part] for part in draw(keys, 90, 1))
    mixed = [sample for sample in held_out if sample.work.chunks and sample.work.decodes]
    two, one = (
        judge(load_fit(fit(train, thin_out(profile.measured))), mixed, 32) for fit in (fit_two_regimes, fit_component)
    )
    assert two is not None and one is not None
    assert two.median < 0.02 < one.median


def test_a_measured_point_is_work() -> None:
    assert make_work((16, 32, 4, 64)) == Work(((32, 16),), 4, 256)
    assert make_work((0, 0, 4, 64)) == Work((), 4, 256)
