"""Measuring, end to end: the whole session on a fake device, and the pieces that decide what is written down."""

from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("numpy", reason="the measuring package needs NumPy")

from refsched.calibration.floors import Ceilings  # noqa: E402
from refsched.calibration.samples import Step  # noqa: E402
from refsched.calibration.shapes import SHAPES  # noqa: E402
from refsched_gpu import cupy_load, design, measure  # noqa: E402
from refsched_gpu.check import find_error, shrink  # noqa: E402
from refsched_gpu.cupy_ops import CupyOps  # noqa: E402
from refsched_gpu.errors import NotAvailableError  # noqa: E402
from refsched_gpu.numpy_ops import NumpyOps  # noqa: E402
from tests.gpu.fake_device import needs_compiler, open_fake_device  # noqa: E402

TINY = SHAPES["tiny"]
SMALL = replace(design.TINY, table=(1, 8), chunks=(8,), histories=(0, 5), batches=(2,), contexts=(16,), mixes=())


@pytest.mark.parametrize("name", ["tiny", "cpu-small", "llama-3-8b", "llama-3-70b"])
def test_the_check_before_timing_holds_every_shape_s_kernels(name: str) -> None:
    shape = SHAPES[name]
    small = shrink(shape)
    assert (small.head_dim, small.group) == (shape.head_dim, shape.group)
    assert find_error(NumpyOps(), shape) < 1e-5


def test_the_check_finds_poison() -> None:
    class Lazy(NumpyOps):
        """A broken copy: the gate writes nothing."""

        def gate(self, gate_up: Any, out: Any) -> None: ...

    assert find_error(Lazy(), TINY) == float("inf")


@needs_compiler
def test_a_session_on_a_fake_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its events say one millisecond for everything, so a layer takes 1 ms and a product of n edges 2 n^3 in 1 ms."""
    monkeypatch.setattr(design, "HELD_OUT", {"mixed": 1})
    ops = CupyOps(open_fake_device(TINY.head_dim, TINY.group))
    assert find_error(ops, TINY) < 1e-2
    ceilings = measure.measure_ceilings(ops, replace(SMALL, matmul=32))
    assert ceilings.flops == pytest.approx(2 * 32**3 * 1e3)
    session = measure.Session(ops, TINY, SMALL, seed=1)
    monkeypatch.setattr(measure, "MOST_PASSES", 1)
    said: list[str] = []
    assert session.run(float("inf"), said.append) == (1, False)
    assert all(series.seconds == pytest.approx([1e-3]) for series in session.series)
    assert said and session.measure_logits() == ((1, pytest.approx(1e-3)), (8, pytest.approx(1e-3)))
    points = [measure.make_point(series, TINY, ops, ceilings) for series in session.series]
    assert {point.use for point in points} == {"table", "train", "held_out"}


def test_a_point_s_floor_without_attention_is_that_of_the_matrices() -> None:
    series = measure.Series("table", Step((), (0,) * 8), None, None, [2.0, 1.0, 4.0])  # type: ignore[arg-type]
    point = measure.make_point(series, TINY, NumpyOps(), Ceilings(1.0, 1e30))
    assert (point.seconds, point.spread, point.n) == (2.0, 0.75, 3)
    assert point.floor_share == pytest.approx(2 * 8 * TINY.layer_parameters / 2.0)


def test_the_design_crosses_and_holds_out_inside_its_grid() -> None:
    for plan in (design.GPU, design.CPU):
        steps = list(design.list_steps(plan, seed=1))
        assert steps == list(design.list_steps(plan, seed=1)) != list(design.list_steps(plan, seed=2))
        train = [step for use, step in steps if use == "train"]
        crossed = {step.chunks[0] for step in train if step.chunks and not step.contexts}
        assert crossed == {(start, count) for start in plan.histories for count in plan.chunks}
        held_out = [step for use, step in steps if use == "held_out"]
        assert len(held_out) == 40 and all(step.tokens <= plan.table[-1] for _, step in steps)
        assert max(max(step.contexts, default=0) for step in held_out) <= plan.contexts[-1]
        assert max(max((start for start, _ in step.chunks), default=0) for step in held_out) <= plan.histories[-1]
    knots = design.GPU.table
    assert all(128 * k in knots and (128 * k + 16 in knots or k == 16) for k in range(1, 17))


@pytest.mark.parametrize("shape", [replace(TINY, head_dim=96), SHAPES["qwen3-30b-a3b"], replace(TINY, heads=128)])
def test_shapes_that_the_kernels_do_not_take_are_refused(shape: Any) -> None:
    with pytest.raises(NotAvailableError, match="the kernels take"):
        cupy_load.check_shape(shape)


def test_what_fails_late_is_one_line() -> None:
    def fail() -> None:
        raise RuntimeError("cudaErrorNoDevice: no device\nand a long trace")

    with pytest.raises(NotAvailableError) as caught:
        cupy_load.attempt("no usable CUDA device", fail)
    assert str(caught.value) == "no usable CUDA device: cudaErrorNoDevice: no device"
