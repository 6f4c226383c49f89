#!/usr/bin/env python3
"""Measure this machine's step times and write a cost model: `refsched calibrate`, straight from a checkout.

scripts/calibrate.py --out cpu.json                    the CPU, through NumPy, in about a minute
scripts/calibrate.py --backend cupy --out gpu.json     a GPU, through CuPy
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from refsched.cli import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(["calibrate", *sys.argv[1:]]))
