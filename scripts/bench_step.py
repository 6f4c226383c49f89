#!/usr/bin/env python3
"""Print how many request-steps per CPU second the step simulator does, on a workload file or a generated one.

    scripts/bench_step.py [WORKLOAD] [--num-blocks N …]

A request-step is one entry of one plan. The numbers are for people to read; no test asserts them.
"""

import argparse
import platform
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from refsched.dialect import get_dialect  # noqa: E402
from refsched.metrics.measure import measure  # noqa: E402
from refsched.model import Limits  # noqa: E402
from refsched.report.table import format_table  # noqa: E402
from refsched.scheduling.engine import ReferenceEngine  # noqa: E402
from refsched.simulation.cost import get_cost_model  # noqa: E402
from refsched.simulation.step import simulate  # noqa: E402
from refsched.workload.load import load_workload  # noqa: E402
from refsched.workload.offer import Workload  # noqa: E402

GENERATED = "poisson:rate=4,n=5000,prompt=1024,output=128"


def time_run(workload: Workload, rule: str, num_blocks: int) -> tuple[str, ...]:
    """Simulate and measure once, and give a row of the table."""
    limits = Limits(token_budget=2048, max_seqs=256, block_size=16, num_blocks=num_blocks)
    engine = ReferenceEngine(get_dialect(rule), limits)
    began = time.process_time()
    run = simulate(engine, limits, get_cost_model("a100-8b"), workload.offers)
    simulated = time.process_time()
    measure(run.records)
    measured = time.process_time()
    seconds = simulated - began
    counts = (run.iterations, run.entries, run.preemptions, round(run.entries / seconds))
    return rule, f"{num_blocks:,}", *(f"{count:,}" for count in counts), f"{seconds:.2f}", f"{measured - simulated:.2f}"


def main() -> int:
    """Run every rule over the workload, and print a table with the machine named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload", nargs="?", default=GENERATED)
    parser.add_argument("--engine", nargs="+", default=["vllm-v1", "document-a", "static"])
    parser.add_argument("--num-blocks", type=int, nargs="+", default=[4000, 26000])
    arguments = parser.parse_args()
    workload = load_workload(arguments.workload)
    rows = [time_run(workload, rule, blocks) for rule in arguments.engine for blocks in arguments.num_blocks]
    header = (
        "engine",
        "blocks",
        "iterations",
        "request-steps",
        "preemptions",
        "request-steps / CPU s",
        "CPU s",
        "metrics s",
    )
    machine = f"{platform.processor() or platform.machine()}, Python {platform.python_version()}"
    print(f"{workload.name}: {len(workload.offers):,} requests; {machine}")
    print(format_table(header, rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
