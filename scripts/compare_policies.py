#!/usr/bin/env python3
"""Run every policy on the same workload and print one table, each row with the command that gives it again.

    scripts/compare_policies.py WORKLOAD
"""

import json
import shlex
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from refsched.report.table import format_table  # noqa: E402

POLICIES = ("static", "orca", "no-evict", "document-a", "prefill-first", "sarathi", "vllm-v1")
LIMITS = "--first 5000 --token-budget 2048 --max-seqs 128 --max-len 16384 --block-size 16 --num-blocks 4000"
HEADER = ("policy", "outcome", "TTFT p50 s", "p99 s", "longest gap p50 s", "p99 s", "tokens/s", "preemptions")


def make_command(workload: str, policy: str) -> list[str]:
    """Give the command of one row."""
    return ["simulate", workload, "--engine", policy, *shlex.split(LIMITS)]


def make_row(policy: str, page: dict[str, Any]) -> tuple[str, ...]:
    """Give one row from what `simulate --json` says."""
    ttft, gap = page["latency"]["ttft_s"], page["latency"]["longest_gap_s"]
    times = (round(Decimal(part[name]), 2) for part in (ttft, gap) for name in ("p50", "p99"))
    rate = round(Decimal(page["throughput"]["output_tokens_per_s"]))
    return policy, describe(page), *map(str, times), f"{rate:,}", f"{page['preemptions']:,}"


def describe(page: dict[str, Any]) -> str:
    """Say how a run ended, and for how many requests."""
    counts = page["counts"]
    return f"{page['outcome']['kind']}, {counts['completed']:,} of {counts['offered']:,}"


def run(command: list[str]) -> dict[str, Any]:
    """Run one command and read what it says."""
    words = [sys.executable, "-m", "refsched", *command, "--json", "-"]
    done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    page: dict[str, Any] = json.loads(done.stdout, parse_float=Decimal)
    return page


def main(arguments: list[str]) -> int:
    """Print the table and the commands."""
    if len(arguments) != 1:
        print((__doc__ or "").strip(), file=sys.stderr)
        return 2
    workload = str(Path(arguments[0]).resolve())
    rows = [make_row(policy, run(make_command(workload, policy))) for policy in POLICIES]
    print(format_table(HEADER, rows))
    for policy in POLICIES:
        print("python3 -m refsched", shlex.join(make_command(arguments[0], policy)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
