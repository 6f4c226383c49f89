"""A device made of host memory: kernels.cu compiled by g++, cuBLAS by NumPy, CuPy's arrays by NumPy's.

It runs CupyOps' own code: pointer arithmetic, launch arguments, matrix layouts. What it cannot show: races beyond what
its barriers catch, registers, speed.
"""

import ctypes
import math
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from refsched_gpu.cupy_load import SOURCE, Device

HERE = Path(__file__).parent
HALF, FLOAT_32 = 2, 68
COMPILER = shutil.which("g++")
SINGLE_WARPS = 64  # threads a fake block has at most, where the kernel allows any number
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="the kernels are compiled for the host by g++")


class FakeArray(np.ndarray):  # type: ignore[type-arg]
    """An array with CuPy's way to tell its address."""

    @property
    def data(self) -> Any:  # type: ignore[override]
        return SimpleNamespace(ptr=self.ctypes.data)


def fake(values: Any) -> Any:
    """Make a fake device array."""
    return np.ascontiguousarray(values).view(FakeArray)


@cache
def compile_for_host(head_dim: int, group: int) -> ctypes.CDLL:
    """Compile the kernels for a head dim and a group size into a library; skip where the compiler cannot."""
    folder = Path(mkdtemp(prefix="refsched-kernels-"))
    library = folder / "kernels.so"
    command = [str(COMPILER), "-std=c++20", "-O1", "-shared", "-fPIC", "-pthread", f"-DHEAD_DIM={head_dim}"]
    command += [f"-DGROUP={group}", f'-DKERNELS="{SOURCE}"', str(HERE / "host_kernels.cc"), "-o", str(library)]
    made = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if "_Float16" in made.stderr or "std=c++20" in made.stderr:
        pytest.skip("g++ here knows no _Float16 or no C++20")
    assert made.returncode == 0, made.stderr
    loaded = ctypes.CDLL(str(library))
    shutil.rmtree(folder)
    return loaded


def to_c(value: Any) -> Any:
    """Turn a launch argument into what the compiled kernel takes; raise TypeError for what CuPy would misread."""
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.ctypes.data)
    if isinstance(value, np.uint64):
        return ctypes.c_void_p(int(value) or None)
    kinds = {np.int32: ctypes.c_int, np.int64: ctypes.c_longlong, np.float32: ctypes.c_float}
    for kind, made in kinds.items():
        if isinstance(value, kind):
            return made(value.item())
    raise TypeError(f"{type(value)} has no size that a kernel can rely on")


def make_kernel(library: ctypes.CDLL, name: str) -> Any:
    """Make a kernel that is launched as CuPy's are."""
    function = getattr(library, f"host_{name}")

    def launch(grid: tuple[int, ...], block: tuple[int, ...], arguments: tuple[Any, ...]) -> None:
        threads = block[0] if name == "decode_attn" else min(block[0], SINGLE_WARPS)
        function(ctypes.c_int(grid[0]), ctypes.c_int(threads), *map(to_c, arguments))

    return launch


def view(address: int, rows: int, columns: int, leading: int) -> Any:
    """View memory as a column-major matrix of halves."""
    buffer = (ctypes.c_uint16 * (leading * (columns - 1) + rows)).from_address(address)
    flat = np.frombuffer(buffer, np.float16)
    return np.lib.stride_tricks.as_strided(flat, (rows, columns), (2, 2 * leading))


class FakeBlas:
    """cuBLAS's two calls, by their documentation: column-major, op(A) op(B) into C."""

    CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT_TENSOR_OP = 0, 1, FLOAT_32, 99

    def gemmEx(  # noqa: N802
        self, handle: Any, ta: int, tb: int, m: int, n: int, k: int, alpha: int, a: int, a_type: int, lda: int,
        b: int, b_type: int, ldb: int, beta: int, c: int, c_type: int, ldc: int, compute: int, algorithm: int,
    ) -> None:  # fmt: skip
        assert a_type == b_type == c_type == HALF and compute == FLOAT_32
        assert lda >= (k if ta else m) and ldb >= (n if tb else k) and ldc >= m
        left = view(a, k, m, lda).T if ta else view(a, m, k, lda)
        right = view(b, n, k, ldb).T if tb else view(b, k, n, ldb)
        view(c, m, n, ldc)[:] = (left.astype(np.float32) @ right.astype(np.float32)).astype(np.float16)

    def gemmStridedBatchedEx(  # noqa: N802
        self, handle: Any, ta: int, tb: int, m: int, n: int, k: int, alpha: int, a: int, a_type: int, lda: int,
        sa: int, b: int, b_type: int, ldb: int, sb: int, beta: int, c: int, c_type: int, ldc: int, sc: int,
        batch: int, compute: int, algorithm: int,
    ) -> None:  # fmt: skip
        for i in range(batch):
            self.gemmEx(
                handle, ta, tb, m, n, k, alpha, a + 2 * i * sa, a_type, lda, b + 2 * i * sb, b_type, ldb, beta,
                c + 2 * i * sc, c_type, ldc, compute, algorithm,
            )  # fmt: skip


class FakeEvent:
    def record(self, stream: Any) -> None: ...
    def synchronize(self) -> None: ...


def make_fake_cupy() -> Any:
    """Make the part of CuPy that CupyOps uses."""
    stream = SimpleNamespace(use=lambda: None, synchronize=lambda: None)
    cuda = SimpleNamespace(
        Stream=lambda non_blocking: stream,
        Event=FakeEvent,
        device=SimpleNamespace(get_cublas_handle=lambda: 0),
        runtime=SimpleNamespace(CUDA_R_16F=HALF),
        get_elapsed_time=lambda first, last: 1.0,
    )
    return SimpleNamespace(
        cuda=cuda,
        float16=np.float16,
        float32=np.float32,
        empty=lambda shape, kind: fake(np.full(shape, math.nan, kind)),
        full=lambda shape, value, kind: fake(np.full(shape, value, kind)),
        asarray=fake,
        asnumpy=np.asarray,
        random=np.random,
    )


def open_fake_device(head_dim: int, group: int) -> Device:
    """Open the fake device with kernels for a shape."""
    library = compile_for_host(head_dim, group)
    names = ("add_rmsnorm", "silu_mul", "rope_split", "causal_softmax", "decode_attn", "decode_join", "merge_heads")
    kernels = {name: make_kernel(library, name) for name in names}
    kernels["spin"] = lambda grid, block, arguments: None
    return Device(make_fake_cupy(), FakeBlas(), kernels)
