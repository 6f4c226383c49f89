"""What was measured on: versions, device, clocks. Clocks are read, never set."""

import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path

PACKAGES = ("numpy", "cupy-cuda13x", "cupy-cuda12x", "nvidia-cublas", "nvidia-cuda-nvrtc", "nvidia-cuda-runtime")
QUERY = (
    "name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,temperature.gpu,power.draw,power.limit,"
    "clocks_event_reasons.active,mig.mode.current"
)
PATIENCE = 20  # seconds
CPU_FACTS = Path("/proc/cpuinfo")


def get_versions() -> dict[str, str]:
    """Give the versions of the packages that times depend on, and Python's."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def read_gpu() -> dict[str, str]:
    """Ask nvidia-smi for the first device's name, driver and clocks; empty where it cannot tell."""
    command = ["nvidia-smi", f"--query-gpu={QUERY}", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    lines = answer.stdout.splitlines()
    if answer.returncode or not lines:
        return {}
    return dict(zip(QUERY.split(","), (cell.strip() for cell in lines[0].split(",")), strict=False))


def get_cpu_name() -> str:
    """Give the processor's name as far as the system tells it."""
    try:
        lines = CPU_FACTS.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def describe_device(backend: str, before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, object]:
    """Describe what was measured, for the file."""
    if backend == "numpy":
        threads = os.environ.get("OPENBLAS_NUM_THREADS", "not set")
        return {"backend": backend, "name": get_cpu_name(), "blas_threads": threads}
    name = before.get("name", "an unnamed CUDA device")
    return {"backend": backend, "name": name, "clocks_before": dict(before), "clocks_after": dict(after)}
