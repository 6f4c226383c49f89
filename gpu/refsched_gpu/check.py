"""Correctness before time: a backend's layer against NumPy's in float64, chunked and ragged, from poisoned buffers."""

from dataclasses import replace
from typing import Any

import numpy as np

from refsched.calibration.samples import Step
from refsched.calibration.shapes import Shape
from refsched_gpu.layer import Stack, Weights, find_sizes
from refsched_gpu.layout import lay_out
from refsched_gpu.numpy_ops import NumpyOps
from refsched_gpu.ops import Ops

STEP = Step(((5, 70), (0, 33), (300, 1)), (0, 1, 37, 130))
TILE = 32
SMALL_FFN = 176


def shrink(shape: Shape) -> Shape:
    """Give a small shape for which the same kernels are compiled: same head dim, same group, two KV heads."""
    heads = 2 * shape.group
    return replace(shape, hidden=heads * shape.head_dim // 2, heads=heads, kv_heads=2, ffn=SMALL_FFN, layers=1)


def find_error(ops: Ops, shape: Shape) -> float:
    """Give the relative error of a backend's layer; infinite where poison comes through."""
    small = shrink(shape)
    layout = lay_out(small, STEP, TILE)
    stack = Stack(ops, small, 2, find_sizes([layout]))
    mirror = copy_stack(stack, ops, layout, small)
    stack.run(layout, ops.put(layout))
    mirror.run(layout, mirror.ops.put(layout))
    got = ops.to_host(stack.x[: layout.rows]) + ops.to_host(stack.delta[: layout.rows])
    wanted = mirror.x[: layout.rows] + mirror.delta[: layout.rows]
    error = float(np.linalg.norm(got - wanted) / np.linalg.norm(wanted))
    return error if np.isfinite(got).all() else float("inf")


def copy_stack(stack: Stack, ops: Ops, layout: Any, shape: Shape) -> Stack:
    """Give the same layers, hidden states and cache in float64."""
    mirror = Stack(NumpyOps(kind=np.float64), shape, 0, find_sizes([layout]))
    names = Weights.__slots__
    mirror.layers = [Weights(**{name: ops.to_host(getattr(each, name)) for name in names}) for each in stack.layers]
    mirror.x, mirror.keys, mirror.values = (ops.to_host(part).copy() for part in (stack.x, stack.keys, stack.values))
    return mirror
