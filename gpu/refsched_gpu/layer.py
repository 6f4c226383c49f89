"""Decoder layers with selective batching: token-wise operators over all tokens, attention per request.

One iteration's tokens are rows of one matrix: norms and matrix products run over all of them at once, attention runs
per chunk and ragged over the decodes, each with its own keys. Source: Orca (OSDI 2022), section 3.
"""

import math
from dataclasses import dataclass
from typing import Any

from refsched.calibration.shapes import Shape
from refsched_gpu.layout import Layout
from refsched_gpu.ops import Array, Ops


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bound what buffers must hold, over all iterations to be run."""

    rows: int
    cache_elements: int
    score_elements: int
    items: int


def find_sizes(layouts: list[Layout]) -> Sizes:
    """Find the sizes that hold every layout."""
    return Sizes(
        max(layout.rows for layout in layouts),
        max(layout.cache_elements for layout in layouts),
        max(1, *(layout.score_elements for layout in layouts)),
        max(1, *(len(layout.items) for layout in layouts)),
    )


@dataclass(frozen=True, slots=True)
class Weights:
    """Hold one layer's weights."""

    norm_in: Array
    qkv: Array
    out: Array
    norm_ffn: Array
    gate_up: Array
    down: Array


def make_weights(ops: Ops, shape: Shape) -> Weights:
    """Draw one layer's weights, scaled so that activations keep their size."""
    hidden, width = shape.hidden, shape.heads * shape.head_dim
    return Weights(
        norm_in=ops.random((hidden,), 1.0),
        qkv=ops.random((hidden, shape.qkv_width), hidden**-0.5),
        out=ops.random((width, hidden), width**-0.5),
        norm_ffn=ops.random((hidden,), 1.0),
        gate_up=ops.random((hidden, 2 * shape.ffn), hidden**-0.5),
        down=ops.random((shape.ffn, hidden), shape.ffn**-0.5),
    )


class Stack:
    """Hold some layers and the buffers to run iterations through them."""

    def __init__(self, ops: Ops, shape: Shape, depth: int, sizes: Sizes):
        self.ops, self.shape = ops, shape
        self.layers = [make_weights(ops, shape) for _ in range(depth)]
        rows, width = sizes.rows, shape.heads * shape.head_dim
        self.x = ops.random((rows, shape.hidden), 1.0)
        self.start = ops.random((rows, shape.hidden), 1.0)
        self.normed, self.delta = ops.poisoned((rows, shape.hidden)), ops.poisoned((rows, shape.hidden))
        self.qkv = ops.poisoned((rows, shape.qkv_width))
        self.query, self.parts = ops.poisoned((rows * width,)), ops.poisoned((rows * width,))
        self.attended = ops.poisoned((rows, width))
        self.gate_up, self.gated = ops.poisoned((rows, 2 * shape.ffn)), ops.poisoned((rows, shape.ffn))
        self.keys, self.values = ops.random((sizes.cache_elements,), 1.0), ops.random((sizes.cache_elements,), 1.0)
        self.scores = ops.poisoned((sizes.score_elements,))
        floats = sizes.items * shape.group * (shape.head_dim + 2)  # partial results are 4 bytes each
        self.partial = ops.poisoned((math.ceil(floats * 4 / ops.element_bytes),))

    def reset(self) -> None:
        """Give the residual stream its first values again: it grows with every run, and float16 overflows."""
        self.ops.copy(self.start, self.x)

    def run(self, layout: Layout, at: Any, attention: bool = True) -> None:
        """Run an iteration through all layers; the last delta is not yet added to x. `at` is the layout put down."""
        previous = None
        for weights in self.layers:
            self.run_attention(weights, layout, at, previous, attention)
            self.run_ffn(weights, layout.rows)
            previous = self.delta[: layout.rows]

    def run_attention(self, weights: Weights, layout: Layout, at: Any, previous: Array | None, attention: bool) -> None:
        """Run the first half of a layer; without attention, only what is token-wise."""
        ops, shape, rows = self.ops, self.shape, layout.rows
        ops.add_norm(self.x[:rows], previous, weights.norm_in, self.normed[:rows])
        ops.linear(self.normed[:rows], weights.qkv, self.qkv[:rows])
        ops.rotate_and_split(shape, at, self.qkv[:rows], self.query, self.keys, self.values)
        cache = (self.query, self.keys, self.values)
        if attention and layout.tiles:
            ops.prefill_attention(shape, at, *cache, self.scores, self.parts, self.attended)
        if attention and layout.keys:
            ops.decode_attention(shape, at, *cache, self.partial, self.attended)
        ops.linear(self.attended[:rows], weights.out, self.delta[:rows])

    def run_ffn(self, weights: Weights, rows: int) -> None:
        """Run the second half of a layer."""
        ops = self.ops
        ops.add_norm(self.x[:rows], self.delta[:rows], weights.norm_ffn, self.normed[:rows])
        ops.linear(self.normed[:rows], weights.gate_up, self.gate_up[:rows])
        ops.gate(self.gate_up[:rows], self.gated[:rows])
        ops.linear(self.gated[:rows], weights.down, self.delta[:rows])


class Head:
    """Hold the matrix from hidden states to logits."""

    def __init__(self, ops: Ops, shape: Shape, rows: int):
        self.ops = ops
        self.hidden = ops.random((rows, shape.hidden), 1.0)
        self.weight = ops.random((shape.hidden, shape.vocab), shape.hidden**-0.5)
        self.logits = ops.poisoned((rows, shape.vocab))

    def run(self, rows: int) -> None:
        """Compute the logits of this many sequences."""
        self.ops.linear(self.hidden[:rows], self.weight, self.logits[:rows])
