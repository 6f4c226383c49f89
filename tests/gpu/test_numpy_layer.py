"""The NumPy layer against an independent float64 reference: chunked, ragged, tiled, from poisoned buffers."""

from dataclasses import replace

import pytest

pytest.importorskip("numpy", reason="the measuring package needs NumPy")

from refsched.calibration.samples import Step  # noqa: E402
from refsched.calibration.shapes import SHAPES  # noqa: E402
from refsched_gpu.layout import lay_out  # noqa: E402
from refsched_gpu.numpy_ops import NumpyOps  # noqa: E402
from tests.gpu.compare import find_errors  # noqa: E402


@pytest.mark.parametrize("tile", [1, 2, 3, 4, 64])
def test_every_row_is_the_reference_s(tile: int) -> None:
    assert max(find_errors(NumpyOps(), SHAPES["tiny"], tile)) < 1e-5


class ForgetfulOps(NumpyOps):
    """A broken copy: a chunk does not see the last token before it."""

    def prefill_attention(self, shape, at, query, keys, values, scores, parts, out):  # type: ignore[no-untyped-def]
        tiles = tuple(replace(tile, history=max(0, tile.history - 1)) for tile in at.layout.tiles)
        at = at._replace(layout=replace(at.layout, tiles=tiles))
        super().prefill_attention(shape, at, query, keys, values, scores, parts, out)


def test_a_layer_that_forgets_a_key_is_found() -> None:
    assert max(find_errors(ForgetfulOps(), SHAPES["tiny"], 64)) > 1e-3


def test_a_layout_gives_every_sequence_its_own_cache_and_every_key_to_one_item() -> None:
    shape = SHAPES["tiny"]
    layout = lay_out(shape, Step(((0, 20), (300, 5)), (0, 37, 2000)), 8)
    assert [tile.rows for tile in layout.tiles] == [8, 8, 4, 5]
    assert layout.tiles[-1].history == 300 and layout.position[-3:] == (0, 37, 2000)
    caches = sorted({*zip(layout.cache, layout.capacity, strict=True)})
    ends = [start + shape.kv_heads * room * shape.head_dim for start, room in caches]
    assert [start for start, _ in caches] == [0, *ends[:-1]] and ends[-1] == layout.cache_elements
    for (first, last), (decode, head) in zip(
        layout.ranges, [(decode, head) for decode in range(3) for head in range(shape.kv_heads)], strict=True
    ):
        items = layout.items[first:last]
        assert all(item[:2] == (decode, head) for item in items)
        assert [key for item in items for key in range(*item[2:])] == list(range(layout.keys[decode]))
