#!/usr/bin/env python3
"""Print how fast the simulator is: leap against step, real and drawn workloads, growth from 10,000 to a million.

    scripts/bench_sim.py [TRACES] [--json FILE] [--only NAME …]

TRACES is a folder with the public traces; what is not there is left out. Each case runs in a process of its own;
times are CPU seconds, memory is the peak of the process. The numbers are for people to read; no test asserts them.
"""

import argparse
import gc
import json
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from refsched.cli import LAZY_COLLECTION  # noqa: E402
from refsched.dialect import get_dialect  # noqa: E402
from refsched.metrics.measure import measure  # noqa: E402
from refsched.model import Limits  # noqa: E402
from refsched.report.files import write_text  # noqa: E402
from refsched.report.table import format_table  # noqa: E402
from refsched.scheduling.engine import ReferenceEngine  # noqa: E402
from refsched.simulation.cost import get_cost_model  # noqa: E402
from refsched.simulation.leap import leap_through  # noqa: E402
from refsched.simulation.step import Simulated, Totals, simulate  # noqa: E402
from refsched.workload.load import load_workload  # noqa: E402
from refsched.workload.stream import open_stream  # noqa: E402


@dataclass(frozen=True, slots=True)
class Case:
    """Name a workload and the pool that it is run with."""

    name: str
    workload: str
    num_blocks: int = 26_000
    method: str = "leap"


FILES = (
    Case("azure conv", "azure2023/AzureLLMInferenceTrace_conv.csv"),
    Case("azure conv, tight pool", "azure2023/AzureLLMInferenceTrace_conv.csv", 4_000),
    Case("azure code", "azure2023/AzureLLMInferenceTrace_code.csv"),
    Case("mooncake conversation", "mooncake_fast25/conversation_trace.jsonl"),
)
DRAWN = (
    Case("fixed 1024/128, 4/s, 10k", "poisson:rate=4,n=10000,prompt=1024,output=128"),
    Case("all at once, 10k waiting", "batch:n=10000,prompt=1024,output=128"),
    *(
        Case(f"mean 1000/200, 4/s, {n:,}", f"poisson:rate=4,n={n},prompt=uniform:1:1999,output=uniform:1:399")
        for n in (10_000, 100_000, 1_000_000)
    ),
)


def list_cases(traces: Path) -> Iterator[Case]:
    """List every case, each as a leap and, where that does not take minutes, as steps."""
    found = [
        replace(case, workload=str(traces / case.workload)) for case in FILES if (traces / case.workload).is_file()
    ]
    for case in (*found, *DRAWN):
        yield case
        if not case.name.endswith(("100,000", "1,000,000")):
            yield replace(case, method="step")


def run_case(case: Case) -> dict[str, object]:
    """Read or draw, simulate and measure one case in this process."""
    gc.set_threshold(*LAZY_COLLECTION)  # as the command does
    limits = Limits(token_budget=2048, max_seqs=256, block_size=16, num_blocks=case.num_blocks)
    engine, cost = ReferenceEngine(get_dialect("vllm-v1"), limits), get_cost_model("a100-8b")
    began = time.process_time()
    if case.method == "step":
        run: Simulated | Totals = simulate(engine, limits, cost, load_workload(case.workload).offers)
        simulated = time.process_time()
        measured = measure(run.records if isinstance(run, Simulated) else ())
    else:
        passing = leap_through(engine, limits, cost, iter(open_stream(case.workload)))
        measured = measure(passing)
        run, simulated = passing.get_totals(), began
    ended = time.process_time()
    offered = measured.counts["offered"]
    return {
        **asdict(case),
        "requests": offered,
        "iterations": run.iterations,
        "events": run.events,
        "request_steps": run.entries,
        "preemptions": run.preemptions,
        "all_s": ended - began,
        "metrics_s": ended - simulated if case.method == "step" else None,
        "requests_per_s": offered / (ended - began),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def run_apart(case: Case) -> dict[str, object]:
    """Run one case in a process of its own."""
    command = [sys.executable, __file__, "--case", json.dumps(asdict(case))]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    page: dict[str, object] = json.loads(done.stdout)
    return page


def make_row(page: dict[str, object]) -> tuple[str, ...]:
    """Lay out one case."""
    counts = (f"{page[name]:,}" for name in ("requests", "iterations", "events", "preemptions"))
    rates = (f"{page[name]:,.0f}" for name in ("requests_per_s", "peak_mb"))
    return str(page["name"]), str(page["method"]), *counts, f"{page['all_s']:.2f}", *rates


def main() -> int:
    """Run the cases and print the table, or one case as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="?", type=Path, default=Path("../shared/data/traces"))
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        print(json.dumps(run_case(Case(**json.loads(arguments.case)))))
        return 0
    pages = []
    for case in list_cases(arguments.traces):
        if arguments.only is None or any(name in case.name for name in arguments.only):
            pages.append(run_apart(case))
            print(" ".join(make_row(pages[-1])), file=sys.stderr)
    header = ("workload", "method", "requests", "iterations", "events", "preemptions", "CPU s", "requests/s", "peak MB")
    print(
        f"{platform.processor() or platform.machine()}, Python {platform.python_version()}, "
        "cost a100-8b, vllm-v1, budget 2,048, 256 sequences"
    )
    print(format_table(header, [make_row(page) for page in pages]))
    if arguments.json:
        write_text(arguments.json, json.dumps(pages, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
