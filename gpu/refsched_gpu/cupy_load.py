"""Finding out whether a GPU can be used here: package, driver, device, compiler, cuBLAS, each with its own sentence.

They fail late and differently: CuPy imports without a driver, cuBLAS is looked for at its first call, NVRTC at the
first compilation. So each is tried once, before anything is measured.
"""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from refsched.calibration.shapes import Shape
from refsched_gpu.errors import NotAvailableError

KERNELS = (
    "spin",
    "add_rmsnorm",
    "silu_mul",
    "rope_split",
    "causal_softmax",
    "decode_attn",
    "decode_join",
    "merge_heads",
)
HEAD_DIMS, MOST_GROUP_WIDTH = (32, 64, 128, 256), 1024  # registers: group x head dim floats per 8 lanes
CUBLAS_NAMES = ("gemmEx", "gemmStridedBatchedEx", "CUBLAS_COMPUTE_32F", "CUBLAS_GEMM_DEFAULT_TENSOR_OP")
SOURCE = Path(__file__).with_name("kernels.cu")


class Device(NamedTuple):
    """Hold what a backend needs of CuPy: the package, its cuBLAS module, the compiled kernels."""

    cupy: Any
    blas: Any
    kernels: dict[str, Any]


def open_device(shape: Shape) -> Device:
    """Load CuPy, find a device, compile the kernels for a shape, load cuBLAS; raise NotAvailableError otherwise."""
    check_shape(shape)
    cupy = load_cupy()
    count = attempt("no usable CUDA device", cupy.cuda.runtime.getDeviceCount)
    if count == 0:
        raise NotAvailableError("no CUDA device is visible")
    kernels = attempt("the CUDA compiler NVRTC cannot be used", lambda: compile_kernels(cupy, shape))
    return Device(cupy, attempt("cuBLAS cannot be used", lambda: load_cublas(cupy)), kernels)


def check_shape(shape: Shape) -> None:
    """Raise NotAvailableError for a shape that the kernels were not written for."""
    fits = shape.head_dim in HEAD_DIMS and shape.group * shape.head_dim <= MOST_GROUP_WIDTH and shape.experts == 1
    if not fits:
        raise NotAvailableError(
            f"the kernels take head dims {HEAD_DIMS}, group x head dim up to {MOST_GROUP_WIDTH} and no experts"
        )


def load_cupy() -> Any:
    """Import CuPy, or say that it is not installed."""
    try:
        return importlib.import_module("cupy")
    except ImportError as error:
        raise NotAvailableError(
            f"CuPy cannot be imported ({error}); install refsched[gpu] or refsched[gpu12]"
        ) from None


def attempt(problem: str, work: Callable[[], Any]) -> Any:
    """Do something that fails where a library or driver is missing; CuPy's errors are RuntimeErrors or ImportErrors."""
    try:
        return work()
    except (ImportError, OSError, RuntimeError, AttributeError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise NotAvailableError(f"{problem}: {lines[0]}") from None


def compile_kernels(cupy: Any, shape: Shape) -> dict[str, Any]:
    """Compile all kernels for a head dim and a group size."""
    options = ("-std=c++17", f"-DHEAD_DIM={shape.head_dim}", f"-DGROUP={shape.group}")
    module = cupy.RawModule(code=SOURCE.read_text(encoding="utf-8"), options=options)
    return {name: module.get_function(name) for name in KERNELS}


def load_cublas(cupy: Any) -> Any:
    """Load CuPy's cuBLAS module and the library behind it; its names are private, so they are looked at first."""
    blas = cupy.cuda.cublas
    missing = [name for name in CUBLAS_NAMES if not hasattr(blas, name)]
    if missing:
        raise RuntimeError(f"this CuPy has no {missing[0]}; a version from 14 up to, not including, 15 is needed")
    blas.getVersion(cupy.cuda.device.get_cublas_handle())
    return blas
