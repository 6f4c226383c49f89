"""The operators that a backend supplies. Arrays are the backend's own; nothing else looks into them."""

from collections.abc import Callable
from typing import Any, Protocol

from refsched.calibration.shapes import Shape
from refsched_gpu.layout import Layout

Array = Any  # numpy.ndarray or cupy.ndarray; CuPy ships no types
ROPE_BASE = 500000.0
EPSILON = 1e-5


class Ops(Protocol):
    """Run the operators of a decoder layer. `put` turns a Layout into what the other operators take as `at`."""

    element_bytes: int

    def random(self, shape: tuple[int, ...], scale: float) -> Array: ...
    def poisoned(self, shape: tuple[int, ...]) -> Array:
        """Make an array full of NaN: output that nothing wrote shows."""
        ...

    def put(self, layout: Layout) -> Any: ...
    def linear(self, x: Array, weight: Array, out: Array) -> None: ...
    def add_norm(self, x: Array, delta: Array | None, weight: Array, out: Array) -> None:
        """Add delta to x in place, where there is one, and write x normalised by its root mean square."""
        ...

    def rotate_and_split(self, shape: Shape, at: Any, qkv: Array, query: Array, keys: Array, values: Array) -> None: ...
    def prefill_attention(
        self, shape: Shape, at: Any, query: Array, keys: Array, values: Array, scores: Array, parts: Array, out: Array
    ) -> None: ...
    def decode_attention(
        self, shape: Shape, at: Any, query: Array, keys: Array, values: Array, parts: Array, out: Array
    ) -> None: ...
    def gate(self, gate_up: Array, out: Array) -> None:
        """Write silu(gate) x up."""
        ...

    def copy(self, source: Array, target: Array) -> None: ...
    def to_host(self, x: Array) -> Any:
        """Give a NumPy array of float64."""
        ...

    def timed(self, work: Callable[[], None]) -> tuple[float, bool]:
        """Give the seconds that work takes on the device, and whether launching it was slower than running it."""
        ...
