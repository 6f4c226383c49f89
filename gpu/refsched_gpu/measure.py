"""Measuring: correctness first, then ceilings, then the points, shuffled anew in every pass, within a time budget.

A point's time is the median over passes, its spread the distance of the quartiles relative to it. Each point is run
once untimed before it is timed. Interrupted, or out of budget, what was measured so far is returned.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from refsched.calibration.floors import Ceilings, count_matrices, get_floor
from refsched.calibration.forms import Knots
from refsched.calibration.page import Point
from refsched.calibration.samples import Step, quantile
from refsched.calibration.shapes import Shape, get_shape
from refsched_gpu.check import find_error
from refsched_gpu.design import CPU, GPU, TINY, Design, list_steps
from refsched_gpu.errors import NotAvailableError
from refsched_gpu.layer import Head, Stack, find_sizes
from refsched_gpu.layout import Layout, lay_out
from refsched_gpu.machine import describe_device, get_versions, read_gpu
from refsched_gpu.numpy_ops import NumpyOps
from refsched_gpu.ops import Ops

LIMITS = {"numpy": 1e-5, "cupy": 1e-2}  # relative error that a backend may have
CLOCKS = {"numpy": "CPU time of one thread", "cupy": "CUDA events behind a spin kernel"}
KINDS = {"numpy": "float32", "cupy": "float16"}
CEILING_REPEATS = 9
MOST_PASSES = 15
DEPTH_POINTS, DEPTH_REPEATS = 5, 3
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Measurement:
    """Hold what was measured on one device."""

    shape: Shape
    points: tuple[Point, ...]
    rows: Knots
    depth: tuple[tuple[Step, float], ...]  # some points through all of the model's layers, in seconds
    ceilings: Ceilings
    element_bytes: int
    complete: bool  # every point at least once, and no interruption
    interrupted: bool
    parts: dict[str, object]  # for the file


@dataclass(slots=True)
class Series:
    """Collect one point's times."""

    use: str
    step: Step
    layout: Layout
    at: object
    seconds: list[float] = field(default_factory=list)
    launch_bound: bool = False


def measure(backend: str, shape_name: str, budget: float, seed: int, say: Say) -> Measurement:
    """Measure a backend at a model's shape; raise NotAvailableError where it cannot be used or computes wrongly."""
    began = time.monotonic()
    shape, ops = get_shape(shape_name), open_ops(backend, get_shape(shape_name), seed)
    design = choose_design(backend, shape_name)
    error = find_error(ops, shape)
    if not error <= LIMITS[backend]:
        raise NotAvailableError(f"the {backend} backend computes wrongly: error {error:.2g}, limit {LIMITS[backend]:g}")
    say(f"correct to {error:.1e}")
    before = read_gpu() if backend == "cupy" else {}
    ceilings = measure_ceilings(ops, design)
    say(f"ceilings: {ceilings.flops / 1e12:.3g} TFLOP/s, {ceilings.bandwidth / 1e9:.3g} GB/s")
    session = Session(ops, shape, design, seed)
    passes, interrupted = session.run(began + budget, say)
    rows = session.measure_logits()
    depth = () if interrupted else session.measure_depth()
    parts = {
        "device": describe_device(backend, before, read_gpu() if backend == "cupy" else {}),
        "versions": get_versions(),
        "workload": describe_workload(backend, design),
        "correctness": {"relative_error": float(f"{error:.3g}"), "limit": LIMITS[backend]},
        "passes": passes,
        "wall_s": round(time.monotonic() - began, 1),
    }
    return sum_up(session, ceilings, rows, depth, interrupted, {"shape": shape_name, **parts})


def sum_up(
    session: "Session",
    ceilings: Ceilings,
    rows: Knots,
    depth: tuple[tuple[Step, float], ...],
    interrupted: bool,
    parts: dict[str, object],
) -> Measurement:
    """Sum up what a session measured."""
    ops, shape = session.ops, session.shape
    points = tuple(make_point(series, shape, ops, ceilings) for series in session.series if series.seconds)
    complete = not interrupted and len(points) == len(session.series)
    return Measurement(shape, points, rows, depth, ceilings, ops.element_bytes, complete, interrupted, parts)


def open_ops(backend: str, shape: Shape, seed: int) -> Ops:
    """Open a backend."""
    if shape.experts > 1:
        raise NotAvailableError("shapes with experts cannot be measured")
    if backend == "numpy":
        return NumpyOps(seed)
    from refsched_gpu.cupy_load import open_device
    from refsched_gpu.cupy_ops import CupyOps

    return CupyOps(open_device(shape), seed)


def choose_design(backend: str, shape_name: str) -> Design:
    """Choose the grid of points."""
    return TINY if shape_name == "tiny" else GPU if backend == "cupy" else CPU


def describe_workload(backend: str, design: Design) -> dict[str, object]:
    """Say what the numbers are of, and what they leave out."""
    return {
        "dtype": KINDS[backend],
        "accumulate": "float32",
        "attention": "prefill and decodes in separate kernels; prefill not fused, tiles of queries; contiguous cache",
        "query_tile": design.tile,
        "layers_measured": design.depth,
        "clock": CLOCKS[backend],
        "left_out": "host and scheduler, sampling, paging of the cache, overlap",
    }


def measure_ceilings(ops: Ops, design: Design) -> Ceilings:
    """Measure the fastest matrix product and copy, on random data; the fastest of some repeats is the ceiling."""
    edge = design.matmul
    left, right = ops.random((edge, edge), 1.0), ops.random((edge, edge), 1 / edge)
    out = ops.poisoned((edge, edge))
    product = find_fastest(ops, lambda: ops.linear(left, right, out))
    source, target = ops.random((design.copied,), 1.0), ops.poisoned((design.copied,))
    copy = find_fastest(ops, lambda: ops.copy(source, target))
    return Ceilings(2 * edge**3 / product, 2 * design.copied * ops.element_bytes / copy)


def find_fastest(ops: Ops, work: Callable[[], None]) -> float:
    """Run once untimed, then give the shortest of some times."""
    work()
    return min(ops.timed(work)[0] for _ in range(CEILING_REPEATS))


class Session:
    """Hold the points of one calibration and the layers they run through."""

    def __init__(self, ops: Ops, shape: Shape, design: Design, seed: int):
        self.ops, self.shape, self.design, self.random = ops, shape, design, random.Random(seed)
        steps = list(list_steps(design, seed))
        layouts = [lay_out(shape, step, design.tile) for _, step in steps]
        self.stack = Stack(ops, shape, design.depth, find_sizes(layouts))
        self.series = [
            Series(use, step, layout, ops.put(layout)) for (use, step), layout in zip(steps, layouts, strict=True)
        ]

    def run(self, deadline: float, say: Say) -> tuple[int, bool]:
        """Run passes while another is likely to fit; give how many were complete, and whether it was interrupted."""
        passes, longest = 0, 0.0
        try:
            while passes < MOST_PASSES and time.monotonic() + longest < deadline:
                began = time.monotonic()
                if not self.run_pass(deadline, first=passes == 0):
                    break
                passes, longest = passes + 1, max(longest, time.monotonic() - began)
                say(f"pass {passes}: {time.monotonic() - began:.1f} s")
        except KeyboardInterrupt:
            say("interrupted: going on with what was measured")
            return passes, True
        return passes, False

    def run_pass(self, deadline: float, first: bool) -> bool:
        """Time every point once more, in random order, held-out ones last in the first pass; False where time is up."""
        order = self.random.sample(self.series, len(self.series))
        if first:
            order.sort(key=lambda series: series.use == "held_out")
        for series in order:
            if time.monotonic() > deadline:
                return False
            self.time_point(series)
        return True

    def time_point(self, series: Series) -> None:
        """Run a point untimed, then time it."""

        def work() -> None:
            self.stack.run(series.layout, series.at, attention=series.use != "table")

        self.stack.reset()
        work()
        for _ in range(self.design.repeats):
            self.stack.reset()
            seconds, late = self.ops.timed(work)
            series.seconds.append(seconds / self.design.depth)
            series.launch_bound = series.launch_bound or late

    def measure_logits(self) -> Knots:
        """Measure the logits, by sequences that sample."""
        head = Head(self.ops, self.shape, self.design.logits[-1])
        return tuple((rows, self.time_logits(head, rows)) for rows in self.design.logits)

    def time_logits(self, head: Head, rows: int) -> float:
        """Give the median time of one logits product."""
        head.run(rows)
        return quantile([self.ops.timed(lambda: head.run(rows))[0] for _ in range(CEILING_REPEATS)], 0.5)

    def measure_depth(self) -> tuple[tuple[Step, float], ...]:
        """Time some points through all layers, to see whether layers add up; none where they do not fit the memory."""
        train = [series for series in self.series if series.use == "train"]
        chosen = train[:: -(-len(train) // DEPTH_POINTS)]
        try:
            stack = Stack(self.ops, self.shape, self.shape.layers, find_sizes([each.layout for each in chosen]))
            return tuple((each.step, self.time_stack(stack, each)) for each in chosen)
        except MemoryError:
            return ()

    def time_stack(self, stack: Stack, series: Series) -> float:
        """Give the median time of a point through a stack."""
        seconds = []
        for _ in range(DEPTH_REPEATS + 1):
            stack.reset()
            seconds.append(self.ops.timed(lambda: stack.run(series.layout, series.at))[0])
        return quantile(seconds[1:], 0.5)  # the first warms up


def make_point(series: Series, shape: Shape, ops: Ops, ceilings: Ceilings) -> Point:
    """Sum up one point, and say what share of its time its floor is."""
    middle = quantile(series.seconds, 0.5)
    spread = (quantile(series.seconds, 0.75) - quantile(series.seconds, 0.25)) / middle
    if series.use == "table":
        floor = count_matrices(shape, series.step.tokens, ops.element_bytes).floor(ceilings)
    else:
        floor = get_floor(shape, series.step.work, ops.element_bytes, ceilings)
    count = len(series.seconds)
    return Point(series.use, series.step, middle, spread, count, floor / middle, series.launch_bound)
