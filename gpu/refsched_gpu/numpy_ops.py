"""The operators with NumPy: in float32 what is measured where no GPU is, in float64 what other backends are held to."""

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from refsched.calibration.shapes import Shape
from refsched_gpu.layout import Layout, Tile
from refsched_gpu.ops import EPSILON, ROPE_BASE, Array


class Placed(NamedTuple):
    """Hold a layout with the tables that NumPy indexes with."""

    layout: Layout
    position: Array
    written: Array  # by decode and KV head: the row of the cache, seen as rows of one head dim, that its token takes


class NumpyOps:
    """Run the operators on the CPU; times are the thread's CPU time, so that neighbours disturb little."""

    def __init__(self, seed: int = 0, clock: Callable[[], float] = time.thread_time, kind: type = np.float32):
        self.generator = np.random.default_rng(seed)
        self.clock, self.kind = clock, kind
        self.element_bytes = np.dtype(kind).itemsize

    def random(self, shape: tuple[int, ...], scale: float) -> Array:
        """Draw normal numbers."""
        return (self.generator.standard_normal(shape, dtype=np.float32) * np.float32(scale)).astype(
            self.kind, copy=False
        )

    def poisoned(self, shape: tuple[int, ...]) -> Array:
        """Make an array full of NaN."""
        return np.full(shape, np.nan, self.kind)

    def put(self, layout: Layout) -> Placed:
        """Make the tables; a decode's KV head h at position p takes row h x capacity + p of its sequence's cache."""
        rows = slice(layout.first_decode, layout.rows)
        cache, capacity, position = (np.asarray(part) for part in (layout.cache, layout.capacity, layout.position))
        kv_heads, head_dim = layout.kv_heads, layout.head_dim
        first = (cache[rows] // head_dim + position[rows])[:, None]
        return Placed(layout, position, first + capacity[rows][:, None] * np.arange(kv_heads))

    def linear(self, x: Array, weight: Array, out: Array) -> None:
        """Multiply matrices."""
        np.matmul(x, weight, out=out)

    def add_norm(self, x: Array, delta: Array | None, weight: Array, out: Array) -> None:
        """Add, then normalise by the root mean square."""
        if delta is not None:
            np.add(x, delta, out=x)
        scale = 1 / np.sqrt(np.einsum("ij,ij->i", x, x) / x.shape[1] + EPSILON)
        np.multiply(x, scale[:, None].astype(x.dtype), out=out)
        np.multiply(out, weight, out=out)

    def gate(self, gate_up: Array, out: Array) -> None:
        """Write silu(gate) x up."""
        gate, up = np.split(gate_up, 2, axis=1)
        np.exp(-gate, out=out)
        out += 1
        np.divide(gate, out, out=out)
        out *= up

    def rotate_and_split(self, shape: Shape, at: Placed, qkv: Array, query: Array, keys: Array, values: Array) -> None:
        """Rotate queries and keys by position, and put queries, keys and values where attention finds them."""
        layout, width = at.layout, shape.heads * shape.head_dim
        turned = rotate(qkv[:, : (shape.heads + shape.kv_heads) * shape.head_dim], at.position, shape.head_dim)
        fresh = qkv[:, (shape.heads + shape.kv_heads) * shape.head_dim :].reshape(layout.rows, shape.kv_heads, -1)
        for tile in layout.tiles:
            rows, written = slice(tile.row, tile.row + tile.rows), slice(tile.history, tile.keys)
            take_queries(query, shape, tile)[:] = turned[rows, : shape.heads].transpose(1, 0, 2)
            take_cache(keys, shape, tile)[:, written] = turned[rows, shape.heads :].transpose(1, 0, 2)
            take_cache(values, shape, tile)[:, written] = fresh[rows].transpose(1, 0, 2)
        decodes = slice(layout.first_decode, layout.rows)
        asked = query[decodes.start * width : decodes.stop * width].reshape(-1, shape.heads, shape.head_dim)
        asked[:] = turned[decodes, : shape.heads]
        keys.reshape(-1, shape.head_dim)[at.written] = turned[decodes, shape.heads :]
        values.reshape(-1, shape.head_dim)[at.written] = fresh[decodes]

    def prefill_attention(
        self,
        shape: Shape,
        at: Placed,
        query: Array,
        keys: Array,
        values: Array,
        scores: Array,
        parts: Array,
        out: Array,
    ) -> None:
        """Let every tile's queries attend to the keys up to their own, through a matrix of scores."""
        for tile in at.layout.tiles:
            attend(shape, tile, query, keys, values, scores, out)

    def decode_attention(
        self, shape: Shape, at: Placed, query: Array, keys: Array, values: Array, parts: Array, out: Array
    ) -> None:
        """Let each decode attend to its own keys."""
        layout = at.layout
        for row in layout.decode_rows:
            place = Tile(row, 1, layout.query[row], layout.position[row], layout.cache[row], layout.capacity[row])
            scores: Array = np.empty(shape.heads * place.keys, self.kind)
            attend(shape, place, query, keys, values, scores, out)

    def copy(self, source: Array, target: Array) -> None:
        """Copy an array."""
        np.copyto(target, source)

    def to_host(self, x: Array) -> Any:
        """Give float64."""
        return np.asarray(x, np.float64)

    def timed(self, work: Callable[[], None]) -> tuple[float, bool]:
        """Time on this thread; nothing is launched."""
        start = self.clock()
        work()
        return self.clock() - start, False


def rotate(heads: Array, positions: Array, head_dim: int) -> Array:
    """Rotate pairs of dimensions by angles that grow with the position: rotary position embedding."""
    half = head_dim // 2
    frequencies = np.exp(-2.0 * np.arange(half) / head_dim * math.log(ROPE_BASE))
    angles = (positions[:, None] * frequencies)[:, None]
    cosine, sine = np.cos(angles).astype(heads.dtype), np.sin(angles).astype(heads.dtype)
    low, high = np.split(heads.reshape(len(positions), -1, head_dim), 2, axis=-1)
    return np.concatenate([low * cosine - high * sine, low * sine + high * cosine], axis=-1)


def take_queries(query: Array, shape: Shape, place: Tile) -> Array:
    """View a tile's queries as [head][row][head dim]."""
    size = place.rows * shape.heads * shape.head_dim
    return query[place.query : place.query + size].reshape(shape.heads, place.rows, shape.head_dim)


def take_cache(cache: Array, shape: Shape, place: Tile) -> Array:
    """View a sequence's keys or values as [KV head][capacity][head dim]."""
    size = shape.kv_heads * place.capacity * shape.head_dim
    return cache[place.cache : place.cache + size].reshape(shape.kv_heads, place.capacity, shape.head_dim)


def attend(shape: Shape, place: Tile, query: Array, keys: Array, values: Array, scores: Array, out: Array) -> None:
    """Attend causally: scores, masked softmax, weighted sum of values; the group's queries share a KV head."""
    grouped = take_queries(query, shape, place).reshape(shape.kv_heads, shape.group * place.rows, shape.head_dim)
    size = shape.heads * place.rows * place.keys
    weights = scores[:size].reshape(shape.kv_heads, shape.group * place.rows, place.keys)
    np.matmul(grouped, take_cache(keys, shape, place)[:, : place.keys].transpose(0, 2, 1), out=weights)
    weights *= weights.dtype.type(shape.head_dim**-0.5)
    by_row = weights.reshape(shape.heads, place.rows, place.keys)
    later = np.triu(np.ones((place.rows, place.rows), bool), 1)
    by_row[..., place.history :][..., later] = -np.inf
    weights -= weights.max(-1, keepdims=True)
    np.exp(weights, out=weights)
    weights /= weights.sum(-1, keepdims=True)
    summed = np.matmul(weights, take_cache(values, shape, place)[:, : place.keys])
    target = out[place.row : place.row + place.rows].reshape(place.rows, shape.heads, shape.head_dim)
    target[:] = summed.reshape(shape.heads, place.rows, shape.head_dim).transpose(1, 0, 2)
