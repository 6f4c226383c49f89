"""CupyOps through a fake device, and each kernel alone: outputs are poisoned first, and all of them are checked."""

import math
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("numpy", reason="the measuring package needs NumPy")

import numpy as np  # noqa: E402

from refsched.calibration.shapes import SHAPES  # noqa: E402
from refsched_gpu.cupy_ops import CupyOps  # noqa: E402
from tests.gpu.compare import find_errors  # noqa: E402
from tests.gpu.fake_device import fake, needs_compiler, open_fake_device  # noqa: E402

pytestmark = needs_compiler
WIDE = replace(SHAPES["tiny"], hidden=256, heads=8, kv_heads=2, head_dim=128)
DIM, GROUP, KV_HEADS = 128, 4, 2
HEADS = GROUP * KV_HEADS


@pytest.mark.parametrize("shape", [SHAPES["tiny"], WIDE], ids=["dim 32, group 2", "dim 128, group 4"])
@pytest.mark.parametrize("tile", [3, 64])
def test_every_row_is_the_reference_s(shape: Any, tile: int) -> None:
    ops = CupyOps(open_fake_device(shape.head_dim, shape.group))
    assert max(find_errors(ops, shape, tile)) < 1e-2


class Bench:
    """Launch kernels by name on the fake device."""

    def __init__(self) -> None:
        self.kernels = open_fake_device(DIM, GROUP).kernels
        self.draw = np.random.default_rng(0)

    def launch(self, name: str, blocks: int, threads: int, *arguments: Any) -> None:
        self.kernels[name]((blocks,), (threads,), arguments)

    def halves(self, *shape: int) -> Any:
        return fake(self.draw.standard_normal(shape).astype(np.float16))


@pytest.fixture
def bench() -> Bench:
    return Bench()


def poison(*shape: int, kind: Any = np.float16) -> Any:
    return fake(np.full(shape, math.nan, kind))


def error(got: Any, wanted: Any) -> float:
    got, wanted = np.asarray(got, np.float64), np.asarray(wanted, np.float64)
    assert np.isfinite(got).all()
    return float(np.linalg.norm(got - wanted) / np.linalg.norm(wanted))


def softmax(scores: Any) -> Any:
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True)


@pytest.mark.parametrize("with_delta", [True, False])
def test_add_rmsnorm(bench: Bench, with_delta: bool) -> None:
    x, delta, weight, out = bench.halves(3, 512), bench.halves(3, 512), bench.halves(512), poison(3, 512)
    total = x.astype(np.float64) + (delta.astype(np.float64) if with_delta else 0)
    bench.launch("add_rmsnorm", 3, 64, x, delta if with_delta else np.uint64(0), weight, out, np.int32(512))
    wanted = total / np.sqrt((total**2).mean(1, keepdims=True) + 1e-5) * weight.astype(np.float64)
    assert error(out, wanted) < 2e-3
    assert error(x, total) < 1e-3


def test_silu_mul(bench: Bench) -> None:
    both, out = bench.halves(5, 2 * 96), poison(5, 96)
    bench.launch("silu_mul", 2, 64, both, out, np.int64(5 * 96), np.int32(96))
    gate, up = both[:, :96].astype(np.float64), both[:, 96:].astype(np.float64)
    assert error(out, gate / (1 + np.exp(-gate)) * up) < 1e-3


def test_rope_split_writes_its_own_places_and_no_others(bench: Bench) -> None:
    """A chunk of 3 at position 4, in one block of queries, and a decode at position 9 of another sequence."""
    rows, room = 4, 16
    positions, size = [4, 5, 6, 9], KV_HEADS * room * DIM
    qkv, query = bench.halves(rows, (HEADS + 2 * KV_HEADS) * DIM), poison(rows * HEADS * DIM)
    keys, values = poison(2 * size), poison(2 * size)
    blocks = [0, DIM, 2 * DIM, 3 * HEADS * DIM]
    tables = (blocks, np.int64), ([3, 3, 3, 1], np.int32), ([0, 0, 0, size], np.int64), ([room] * 4, np.int32)
    placed = [fake(np.array(values_, kind)) for values_, kind in (*tables, (positions, np.int32))]
    bench.launch("rope_split", rows, 64, qkv, query, keys, values, *placed, np.int32(HEADS), np.int32(KV_HEADS))
    heads = qkv.astype(np.float64).reshape(rows, -1, DIM)
    turn = np.exp(1j * np.array(positions)[:, None] * 500000.0 ** (-np.arange(DIM // 2) / (DIM // 2)))[:, None]
    turned = (heads[..., : DIM // 2] + 1j * heads[..., DIM // 2 :]) * turn
    wanted = np.concatenate([turned.real, turned.imag], -1)
    chunk = query[: 3 * HEADS * DIM].reshape(HEADS, 3, DIM).transpose(1, 0, 2)
    assert error(chunk, wanted[:3, :HEADS]) < 1e-3 and error(query[3 * HEADS * DIM :], wanted[3, :HEADS].ravel()) < 1e-3
    cached, raw = keys.reshape(2, KV_HEADS, room, DIM), values.reshape(2, KV_HEADS, room, DIM)
    assert error(cached[0, :, 4:7].transpose(1, 0, 2), wanted[:3, HEADS : HEADS + KV_HEADS]) < 1e-3
    assert error(cached[1, :, 9], wanted[3, HEADS : HEADS + KV_HEADS]) < 1e-3
    assert np.array_equal(raw[0, :, 4:7].transpose(1, 0, 2), qkv.reshape(rows, -1, DIM)[:3, HEADS + KV_HEADS :])
    written = np.zeros((2, room), bool)
    written[0, 4:7] = written[1, 9] = True
    assert np.array_equal(np.isfinite(cached).all((1, 3)), written)


def test_causal_softmax_gives_later_keys_nothing(bench: Bench) -> None:
    scores = bench.halves(6, 30)
    before = scores.astype(np.float64)
    before_scale, history, rows = np.float32(0.3), 20, 3
    bench.launch(
        "causal_softmax", 6, 64, scores, np.int32(30), np.int32(30), np.int32(rows), np.int32(history), before_scale
    )
    wanted = np.zeros((6, 30))
    for row in range(6):
        seen = history + row % rows + 1
        wanted[row, :seen] = softmax(before[row, :seen] * 0.3)
    assert error(scores, wanted) < 1e-3
    assert not scores[0, 21:].any()


def test_ragged_decode_attention(bench: Bench) -> None:
    """Contexts of 1, 37 and 100 keys, split every 48; output rows in another order, the rest stays poison."""
    keys_of, room = [1, 37, 100], np.array([64, 64, 128])
    starts = np.cumsum([0, *(KV_HEADS * room * DIM)])
    keys, values, query = bench.halves(starts[-1]), bench.halves(starts[-1]), bench.halves(3, KV_HEADS, GROUP, DIM)
    items, ranges = [], []
    for decode, count in enumerate(keys_of):
        for head in range(KV_HEADS):
            first = len(items)
            items += [(decode, head, key, min(key + 48, count)) for key in range(0, count, 48)]
            ranges.append((first, len(items)))
    parts, out, scale = poison(len(items), GROUP, DIM + 2, kind=np.float32), poison(5, HEADS * DIM), DIM**-0.5
    tables = fake(starts[:3].astype(np.int64)), fake(room.astype(np.int32)), fake(np.array(items, np.int32))
    bench.launch(
        "decode_attn", len(items), 128, query, keys, values, *tables, parts, np.int32(KV_HEADS), np.float32(scale)
    )
    assert np.isfinite(parts).all()
    rows = fake(np.array([4, 0, 2], np.int32))
    bench.launch("decode_join", len(ranges), 64, parts, fake(np.array(ranges, np.int32)), out, rows, np.int32(KV_HEADS))
    for decode, row in enumerate([4, 0, 2]):
        place = slice(starts[decode], starts[decode + 1])
        seen = [
            cache[place].reshape(KV_HEADS, -1, DIM)[:, : keys_of[decode]].astype(np.float64) for cache in (keys, values)
        ]
        shares = softmax(np.einsum("jgd,jtd->jgt", query[decode].astype(np.float64), seen[0]) * scale)
        assert error(out[row], np.einsum("jgt,jtd->jgd", shares, seen[1]).ravel()) < 2e-3
    assert np.isnan(out[[1, 3]]).all()


def test_merge_heads(bench: Bench) -> None:
    parts, out = bench.halves(HEADS, 3, DIM), poison(5, HEADS, DIM)
    bench.launch("merge_heads", 2, 64, parts, out, np.int64(1), np.int32(3), np.int32(HEADS))
    assert np.array_equal(out[1:4], parts.transpose(1, 0, 2))
    assert np.isnan(out[[0, 4]]).all()


def test_a_python_number_is_no_launch_argument() -> None:
    """CuPy would pass it with a size of its own choice."""
    with pytest.raises(TypeError, match="no size"):
        Bench().launch("silu_mul", 1, 32, poison(1, 2), poison(1, 1), 1, np.int32(1))
