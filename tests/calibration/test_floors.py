"""Floors: the table worked by hand in the design's notes, and that no loaded model predicts less than one [A25]."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refsched.calibration.floors import (
    Ceilings,
    count_layer,
    explain_floor,
    get_floor,
    get_implied,
    get_knee,
    raise_to_floor,
)
from refsched.calibration.forms import Fit, Regime
from refsched.calibration.page import load_fit
from refsched.calibration.shapes import SHAPES, estimate_kv_tokens, get_shape
from refsched.errors import InputError
from refsched.model import Work

LLAMA = SHAPES["llama-3-8b"]
H200 = Ceilings(790e12, 4.3e12)
HALF = 2


def decodes(batch: int, context: int) -> Work:
    return Work((), batch, batch * context)


# Worked by hand from the formulas: 218.1 M weights a layer, 4096 bytes of KV a token, 16384 operations a pair.
FLOORS = [
    (decodes(1, 1023), 102),
    (decodes(64, 2047), 230),
    (decodes(256, 8191), 2139),
    (Work(((0, 512),), 0, 0), 285),
    (Work(((0, 2048),), 0, 0), 1174),
    (Work(((14336, 2048),), 0, 0), 1783),
    (Work(((4096, 512),), 64, 64 * 2047), 489),
]


@pytest.mark.parametrize(("work", "microseconds"), FLOORS)
def test_the_floors_of_one_layer_on_an_h200(work: Work, microseconds: int) -> None:
    assert get_floor(LLAMA, work, HALF, H200) * 1e6 == pytest.approx(microseconds, abs=0.7)


def test_what_binds_each_kind_of_iteration() -> None:
    assert explain_floor(LLAMA, decodes(1, 1023), HALF, H200) == ("matrices", "memory")
    assert explain_floor(LLAMA, decodes(256, 8191), HALF, H200) == ("decode attention", "memory")
    assert explain_floor(LLAMA, Work(((0, 2048),), 0, 0), HALF, H200) == ("matrices", "arithmetic")
    assert get_knee(LLAMA, HALF, H200) == pytest.approx(184, abs=0.5)


def test_counts_of_a_layer() -> None:
    assert LLAMA.layer_parameters == 218_103_808 and LLAMA.kv_bytes() == 131_072
    needs = count_layer(LLAMA, Work(((10, 3),), 1, 6), HALF)
    assert needs["prefill attention"].flops == 16384 * (11 + 12 + 13)
    assert needs["prefill attention"].bytes == 4096 * 13
    assert needs["decode attention"].bytes == 4096 * 7


def test_a_pool_beside_the_weights_is_near_the_one_that_vllm_reported() -> None:
    """The RTX 4090 run: 24 GiB, of which 0.833919 may be used; vLLM reported 41,408 KV tokens."""
    assert estimate_kv_tokens(LLAMA, int(24 * 2**30 * 0.833919)) == pytest.approx(41_408, rel=0.001)


@pytest.mark.parametrize("name", ["meta-llama/Llama-3.1-8B", "llama-3-8b", "meta-llama/Llama-3.1-8B-Instruct"])
def test_shapes_by_name(name: str) -> None:
    assert get_shape(name) == LLAMA


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(InputError, match="no model whose shape is known"):
        get_shape("llama-3-80b")


# NOTHING FASTER THAN PHYSICS

NAMES = ("prefill_call", "chunk", "chunk_token", "pair", "history", "decode_call", "decode", "kv")
coefficients = st.fixed_dictionaries({name: st.sampled_from([0.0, 1e-12, 1e-9, 1e-6]) for name in NAMES})
works = st.builds(
    Work,
    chunks=st.lists(st.tuples(st.integers(0, 30000), st.integers(1, 1024)), max_size=2).map(tuple),
    decodes=st.integers(0, 64),
    context=st.integers(0, 10**6),
).filter(lambda work: work.chunks or work.decodes)


@given(coefficients, works, st.sampled_from([1e13, 8e14]), st.sampled_from([1e11, 4e12]))
def test_no_raised_model_is_below_a_floor(given_: dict[str, float], work: Work, flops: float, bandwidth: float) -> None:
    if not work.decodes:
        work = work._replace(context=0)
    ceilings = Ceilings(flops, bandwidth)
    regime = Regime(((1, 1e-7), (128, 2e-7), (4096, 1e-6)), given_, {})
    fit, _ = raise_to_floor(Fit("component", regime, regime), LLAMA, HALF, ceilings)
    assert load_fit(fit).duration(work) / 1e12 >= get_floor(LLAMA, work, HALF, ceilings) * (1 - 1e-6)


def test_raising_names_what_it_raised_and_leaves_the_rest() -> None:
    regime = Regime(
        ((1, 1.0), (4096, 2.0)), {"kv": 0.0, "pair": 1.0, "decode": 1.0, "chunk_token": 1.0, "history": 1.0}, {}
    )
    fit, raised = raise_to_floor(Fit("component", regime, regime), LLAMA, HALF, H200)
    assert raised == ["decode_only.kv", "with_prefill.kv"]
    assert fit.decode_only.coefficients == {**regime.coefficients, "kv": pytest.approx(4096 / 4.3e12)}
    slow = replace(regime, coefficients={**regime.coefficients, "kv": 1.0})
    assert raise_to_floor(Fit("component", slow, slow), LLAMA, HALF, H200)[1] == []


def test_implied_speeds() -> None:
    regime = Regime(((1, 1e-4), (2048, 1e-3)), {"kv": 1e-9, "pair": 1e-10}, {})
    implied = get_implied(Fit("component", regime, regime), LLAMA, HALF)
    assert implied["kv_bandwidth"] == pytest.approx(4.096e12)
    assert implied["prefill_attention_flops"] == pytest.approx(1.6384e14)
    assert implied["weight_bandwidth_at_fewest_tokens"] == pytest.approx(4.362e12, rel=1e-3)
    assert json.dumps(implied)
