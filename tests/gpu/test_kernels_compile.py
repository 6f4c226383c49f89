"""The kernels compile for a real GPU, where a compiler is installed: NVRTC of a package, or nvcc. No GPU is needed."""

import importlib
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpy", reason="the measuring package needs NumPy")

from refsched_gpu.cupy_load import KERNELS, SOURCE  # noqa: E402

SHAPES = [(128, 4), (64, 4), (128, 8), (32, 2)]
NVCC = shutil.which("nvcc")


def find_nvrtc() -> tuple[Any, Path]:
    """Find CuPy's NVRTC and the folder of cuda_fp16.h in the runtime's package; skip where one is missing."""
    try:
        nvrtc = importlib.import_module("cupy.cuda").nvrtc
        nvrtc.getVersion()
        folders = list(importlib.import_module("nvidia").__path__)
    except (ImportError, RuntimeError, AttributeError) as error:
        pytest.skip(f"NVRTC is not installed: {str(error).splitlines()[0]}")
    headers = sorted(header.parent for folder in folders for header in Path(folder).rglob("cuda_fp16.h"))
    if not headers:
        pytest.skip("the package nvidia-cuda-runtime with cuda_fp16.h is not installed")
    return nvrtc, headers[0]


@pytest.mark.parametrize(("head_dim", "group"), SHAPES)
def test_nvrtc_compiles_every_kernel(head_dim: int, group: int) -> None:
    nvrtc, headers = find_nvrtc()
    program = nvrtc.createProgram(SOURCE.read_text(encoding="utf-8"), "kernels.cu", (), ())
    options = ("-arch=sm_90", "-std=c++17", f"-I{headers}", f"-DHEAD_DIM={head_dim}", f"-DGROUP={group}")
    try:
        nvrtc.compileProgram(program, options)
    except Exception as error:
        pytest.fail(f"{error}\n{nvrtc.getProgramLog(program)}")
    binary = nvrtc.getCUBIN(program)
    assert binary[:4] == b"\x7fELF"
    assert all(name.encode() in binary for name in KERNELS)


@pytest.mark.skipif(NVCC is None, reason="nvcc is not installed")
@pytest.mark.parametrize(("head_dim", "group"), SHAPES[:1])
def test_nvcc_compiles_every_kernel(head_dim: int, group: int, tmp_path: Path) -> None:
    out = tmp_path / "kernels.cubin"
    command = [str(NVCC), "-arch=sm_90", "-std=c++17", "-cubin", f"-DHEAD_DIM={head_dim}", f"-DGROUP={group}"]
    subprocess.run([*command, "-o", str(out), str(SOURCE)], check=True, capture_output=True, timeout=300)
    assert all(name.encode() in out.read_bytes() for name in KERNELS)
