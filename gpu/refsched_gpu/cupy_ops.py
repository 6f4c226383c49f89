"""The operators with CuPy: float16, accumulated in float32.

Matrix products call cuBLAS's gemmEx and gemmStridedBatchedEx through CuPy's own module: cupy.matmul turns half arrays
of three dimensions into float32 first. The rest are the kernels of kernels.cu. Prefill attention is not fused: tiles
of queries, scores through memory. Times are events behind a spin kernel that holds the stream while the host queues.
"""

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from refsched.calibration.shapes import Shape
from refsched_gpu.cupy_load import Device
from refsched_gpu.layout import Layout, Tile
from refsched_gpu.ops import Array

BYTES = 2
THREADS, DECODE_THREADS = 256, 128
MOST_BLOCKS = 4096
DRAW = 1 << 26  # numbers drawn at once: the float32 draw is a temporary
SPIN_NS, LONGEST_SPIN_NS, TRIES = 2_000_000, 50_000_000, 3
NULL = np.uint64(0)


class Placed(NamedTuple):
    """Hold a layout with its tables on the device."""

    layout: Layout
    query: Array
    query_stride: Array
    cache: Array
    capacity: Array
    position: Array
    decode_cache: Array
    decode_capacity: Array
    items: Array
    ranges: Array
    decode_rows: Array


class CupyOps:
    """Run the operators on a GPU."""

    element_bytes = BYTES

    def __init__(self, device: Device, seed: int = 0):
        self.cupy, self.blas, self.kernels = device
        self.stream = self.cupy.cuda.Stream(non_blocking=True)
        self.stream.use()
        self.handle = self.cupy.cuda.device.get_cublas_handle()
        self.half = self.cupy.cuda.runtime.CUDA_R_16F
        self.one, self.zero = np.array(1, np.float32), np.array(0, np.float32)
        self.generator = self.cupy.random.default_rng(seed)
        self.events = self.cupy.cuda.Event(), self.cupy.cuda.Event()
        self.spin_ns = SPIN_NS

    # ARRAYS

    def random(self, shape: tuple[int, ...], scale: float) -> Array:
        """Draw normal numbers, piece by piece."""
        out = self.cupy.empty(shape, self.cupy.float16)
        flat = out.reshape(-1)
        for first in range(0, flat.size, DRAW):
            last = min(flat.size, first + DRAW)
            flat[first:last] = self.generator.standard_normal(last - first, dtype=self.cupy.float32) * scale
        return out

    def poisoned(self, shape: tuple[int, ...]) -> Array:
        """Make an array full of NaN."""
        return self.cupy.full(shape, math.nan, self.cupy.float16)

    def put(self, layout: Layout) -> Placed:
        """Bring a layout's tables to the device."""
        decodes, put = layout.decode_rows, self.put_table
        wide, narrow = np.int64, np.int32
        return Placed(
            layout,
            put(layout.query, wide),
            put(layout.query_stride, narrow),
            put(layout.cache, wide),
            put(layout.capacity, narrow),
            put(layout.position, narrow),
            put([layout.cache[row] for row in decodes], wide),
            put([layout.capacity[row] for row in decodes], narrow),
            put(layout.items, narrow),
            put(layout.ranges, narrow),
            put(decodes, narrow),
        )

    def put_table(self, values: Sequence[Any], kind: Any) -> Array:
        """Bring one table to the device."""
        return self.cupy.asarray(np.array(values, kind))

    def copy(self, source: Array, target: Array) -> None:
        """Copy an array."""
        target[...] = source

    def to_host(self, x: Array) -> Any:
        """Give float64."""
        return np.asarray(self.cupy.asnumpy(x), np.float64)

    # MATRIX PRODUCTS. cuBLAS is column-major: a row-major out = x w is, seen by it, out' = w' x'.

    def linear(self, x: Array, weight: Array, out: Array) -> None:
        """Multiply matrices."""
        blas, columns, depth = self.blas, weight.shape[1], weight.shape[0]
        blas.gemmEx(
            self.handle, blas.CUBLAS_OP_N, blas.CUBLAS_OP_N, columns, x.shape[0], depth, self.one.ctypes.data,
            weight.data.ptr, self.half, columns, x.data.ptr, self.half, depth, self.zero.ctypes.data,
            out.data.ptr, self.half, columns, blas.CUBLAS_COMPUTE_32F, blas.CUBLAS_GEMM_DEFAULT_TENSOR_OP,
        )  # fmt: skip

    def multiply_tile(
        self, shape: Shape, turn: int, sizes: tuple[int, int, int], left: tuple[int, int, int],
        right: tuple[int, int, int], out: tuple[int, int, int],
    ) -> None:  # fmt: skip
        """Multiply for every KV head; each operand is (address, leading dimension, elements from head to head)."""
        blas = self.blas
        blas.gemmStridedBatchedEx(
            self.handle, turn, blas.CUBLAS_OP_N, *sizes, self.one.ctypes.data, left[0], self.half, *left[1:],
            right[0], self.half, *right[1:], self.zero.ctypes.data, out[0], self.half, *out[1:],
            shape.kv_heads, blas.CUBLAS_COMPUTE_32F, blas.CUBLAS_GEMM_DEFAULT_TENSOR_OP,
        )  # fmt: skip

    # KERNELS

    def launch(self, name: str, blocks: int, threads: int, *arguments: Any) -> None:
        """Launch one kernel."""
        self.kernels[name]((blocks,), (threads,), arguments)

    def add_norm(self, x: Array, delta: Array | None, weight: Array, out: Array) -> None:
        """Add, then normalise; one block a row."""
        added = NULL if delta is None else delta
        self.launch("add_rmsnorm", x.shape[0], THREADS, x, added, weight, out, np.int32(x.shape[1]))

    def gate(self, gate_up: Array, out: Array) -> None:
        """Write silu(gate) x up."""
        blocks = min(MOST_BLOCKS, -(-out.size // THREADS))
        self.launch("silu_mul", blocks, THREADS, gate_up, out, np.int64(out.size), np.int32(out.shape[1]))

    def rotate_and_split(self, shape: Shape, at: Placed, qkv: Array, query: Array, keys: Array, values: Array) -> None:
        """Rotate and put away; one block a row."""
        tables = at.query, at.query_stride, at.cache, at.capacity, at.position
        counts = np.int32(shape.heads), np.int32(shape.kv_heads)
        self.launch("rope_split", at.layout.rows, THREADS, qkv, query, keys, values, *tables, *counts)

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
        """Attend tile by tile: scores, causal softmax, weighted values, heads merged into rows."""
        for tile in at.layout.tiles:
            self.attend_tile(shape, tile, query, keys, values, scores, parts)
            pieces = shape.heads * tile.rows * shape.head_dim // 8
            blocks = min(MOST_BLOCKS, -(-pieces // THREADS))
            counts = np.int64(tile.row), np.int32(tile.rows), np.int32(shape.heads)
            self.launch("merge_heads", blocks, THREADS, parts, out, *counts)

    def attend_tile(
        self, shape: Shape, tile: Tile, query: Array, keys: Array, values: Array, scores: Array, parts: Array
    ) -> None:
        """Compute one tile's attention into `parts`, [head][row][head dim]."""
        rows, depth, blas = shape.group * tile.rows, shape.head_dim, self.blas
        cached_keys, cached_values = (
            (cache.data.ptr + tile.cache * BYTES, depth, tile.capacity * depth) for cache in (keys, values)
        )
        asked = query.data.ptr + tile.query * BYTES, depth, rows * depth
        scored = scores.data.ptr, tile.keys, rows * tile.keys
        self.multiply_tile(shape, blas.CUBLAS_OP_T, (tile.keys, rows, depth), cached_keys, asked, scored)
        counts = np.int32(tile.keys), np.int32(tile.keys), np.int32(tile.rows), np.int32(tile.history)
        scale = np.float32(depth**-0.5)
        self.launch("causal_softmax", shape.kv_heads * rows, THREADS, scores, *counts, scale)
        summed = parts.data.ptr, depth, rows * depth
        self.multiply_tile(shape, blas.CUBLAS_OP_N, (depth, rows, tile.keys), cached_values, scored, summed)

    def decode_attention(
        self, shape: Shape, at: Placed, query: Array, keys: Array, values: Array, parts: Array, out: Array
    ) -> None:
        """Attend ragged, split over keys, and join the parts."""
        first = query[at.layout.first_decode * shape.heads * shape.head_dim :]
        heads, scale = np.int32(shape.kv_heads), np.float32(shape.head_dim**-0.5)
        tables = at.decode_cache, at.decode_capacity, at.items
        items = len(at.layout.items)
        self.launch("decode_attn", items, DECODE_THREADS, first, keys, values, *tables, parts, heads, scale)
        self.launch("decode_join", len(at.layout.ranges), DECODE_THREADS, parts, at.ranges, out, at.decode_rows, heads)

    # TIME

    def timed(self, work: Callable[[], None]) -> tuple[float, bool]:
        """Give the seconds of the kernels back to back, and whether the host could not queue them in time.

        Run `work` once before: compiling and lazy loading must not happen behind the spin. The spin is bounded in
        time, not held by a flag of the host, so nothing can deadlock.
        """
        for _ in range(TRIES):
            queued = self.queue(work)
            self.events[1].synchronize()
            late = queued * 1e9 > 0.9 * self.spin_ns
            if not late:
                break
            self.spin_ns = min(LONGEST_SPIN_NS, int(queued * 1.5e9))
        return float(self.cupy.cuda.get_elapsed_time(*self.events)) * 1e-3, late

    def queue(self, work: Callable[[], None]) -> float:
        """Queue a spin, an event, the work and an event; give the seconds that took the host."""
        self.stream.synchronize()
        start = time.perf_counter()
        self.launch("spin", 1, 1, np.uint64(self.spin_ns))
        self.events[0].record(self.stream)
        work()
        self.events[1].record(self.stream)
        return time.perf_counter() - start
