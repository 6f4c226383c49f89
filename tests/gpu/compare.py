"""Run chunked, ragged iterations through a backend and compare every row with the float64 reference."""

from typing import Any

import numpy as np

from refsched.calibration.samples import Step
from refsched.calibration.shapes import Shape
from refsched_gpu.layer import Stack, find_sizes
from refsched_gpu.layout import lay_out
from refsched_gpu.ops import Ops
from tests.gpu.reference import forward

# Three requests of 11, 7 and 9 tokens. First iteration: 6 of the first, the second whole, 8 of the third. Second: the
# first's other 5 as a chunk with history, the second again, the third's last token as a decode. Every sequence fits
# 16 tokens, so in both iterations each one's cache lies in the same place.
LENGTHS = (11, 7, 9)
STEPS = (Step(((0, 6), (0, 7), (0, 8))), Step(((6, 5), (0, 7)), (8,)))
ROWS = (((0, 0, 6), (1, 0, 7), (2, 0, 8)), ((0, 6, 11), (1, 0, 7), (2, 8, 9)))


def find_errors(ops: Ops, shape: Shape, tile: int) -> list[float]:
    """Give the relative error of each request's rows in both iterations; fails where poison comes through."""
    layouts = [lay_out(shape, step, tile) for step in STEPS]
    stack = Stack(ops, shape, 1, find_sizes(layouts))
    draw = np.random.default_rng(5)
    tokens = [draw.standard_normal((length, shape.hidden)).astype(np.float16) for length in LENGTHS]
    wanted = [forward(shape, stack.layers[0], ops.to_host, x) for x in tokens]
    errors = []
    for layout, rows in zip(layouts, ROWS, strict=True):
        put_rows(ops, stack, np.concatenate([tokens[request][first:last] for request, first, last in rows]))
        stack.run(layout, ops.put(layout))
        got = ops.to_host(stack.x[: layout.rows]) + ops.to_host(stack.delta[: layout.rows])
        assert np.isfinite(got).all()
        errors += compare_rows(got, wanted, rows)
    return errors


def put_rows(ops: Ops, stack: Stack, rows: Any) -> None:
    """Let the residual stream start with these rows; what comes after them is poison."""
    fresh = ops.poisoned(stack.x.shape)
    fresh[: len(rows)] = rows
    ops.copy(fresh, stack.x)


def compare_rows(got: Any, wanted: list[Any], rows: tuple[tuple[int, int, int], ...]) -> list[float]:
    errors, at = [], 0
    for request, first, last in rows:
        true = wanted[request][first:last]
        errors.append(float(np.linalg.norm(got[at : at + last - first] - true) / np.linalg.norm(true)))
        at += last - first
    return errors
