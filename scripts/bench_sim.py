#!/usr/bin/env python3
"""Print how fast the simulator is: leap against step, real and drawn workloads, growth from 10,000 to a million.

    scripts/bench_sim.py [TRACES] [--json FILE] [--only NAME …] [--ten-million]

TRACES is a folder with the public traces; what is not there is left out. Times are CPU seconds. Each case runs in a
process of its own, whose peak is its memory: first reading or drawing alone, then with the simulation, then with all
metrics as well, which gives each part by difference. `command` is the whole of `refsched simulate`, from start to the
printed report, in one more process. `step / leap` compares simulations. The numbers are for people to read; no test
asserts them.
"""

import argparse
import gc
import json
import platform
import resource
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from refsched.cli import LAZY_COLLECTION  # noqa: E402
from refsched.dialect import get_dialect  # noqa: E402
from refsched.metrics.measure import Measured, measure  # noqa: E402
from refsched.model import Limits  # noqa: E402
from refsched.report.files import write_text  # noqa: E402
from refsched.report.table import format_table  # noqa: E402
from refsched.scheduling.engine import ReferenceEngine  # noqa: E402
from refsched.simulation.cost import CostModel, get_cost_model  # noqa: E402
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
    Case("overloaded, 40/s, 10k", "poisson:rate=40,n=10000,prompt=uniform:1:1999,output=uniform:1:399"),
    Case("all at once, 10k waiting", "batch:n=10000,prompt=1024,output=128"),
)
GROWING = "mean 1000/200, 4/s"
SIZES, TEN_MILLION = (10_000, 100_000, 1_000_000), 10_000_000
LARGEST_STEPPED = 20_000  # requests; more would take minutes
PARTS = ("read_s", "simulate_s", "metrics_s")


def list_cases(traces: Path, sizes: tuple[int, ...]) -> Iterator[Case]:
    """List every case, each as a leap and, where that does not take minutes, as steps."""
    for case in FILES:
        if (traces / case.workload).is_file():
            found = replace(case, workload=str((traces / case.workload).resolve()))
            yield from (found, replace(found, method="step"))
    for case in DRAWN:
        yield from (case, replace(case, method="step"))
    for n in sizes:
        drawn = Case(f"{GROWING}, {n:,}", f"poisson:rate=4,n={n},prompt=uniform:1:1999,output=uniform:1:399")
        yield drawn
        if n <= LARGEST_STEPPED:
            yield replace(drawn, method="step")


LIMITS = {"token_budget": 2048, "max_seqs": 256, "block_size": 16}


def run_case(case: Case) -> dict[str, object]:
    """Read or draw, simulate and measure one case in this process."""
    gc.set_threshold(*LAZY_COLLECTION)  # as the command does
    times, run, measured = (leap_apart if case.method == "leap" else step_apart)(case)
    offered, seconds = measured.counts["offered"], sum(times.values())
    return {
        **asdict(case),
        "requests": offered,
        "iterations": run.iterations,
        "events": run.events,
        "request_steps": run.entries,
        "preemptions": run.preemptions,
        **times,
        "requests_per_s": offered / seconds,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def make_engine(case: Case) -> tuple[ReferenceEngine, Limits, CostModel]:
    """Make the engine of a case, its limits and its cost model."""
    limits = Limits(**LIMITS, num_blocks=case.num_blocks)
    return ReferenceEngine(get_dialect("vllm-v1"), limits), limits, get_cost_model("a100-8b")


def step_apart(case: Case) -> tuple[dict[str, float], Simulated, Measured]:
    """Read, simulate step by step, and measure, one after the other."""
    marks = [time.process_time()]
    offers = load_workload(case.workload).offers
    marks.append(time.process_time())
    run = simulate(*make_engine(case), offers)
    marks.append(time.process_time())
    measured = measure(run.records)
    marks.append(time.process_time())
    return dict(zip(PARTS, (after - before for before, after in pairwise(marks)), strict=True)), run, measured


def leap_apart(case: Case) -> tuple[dict[str, float], Totals, Measured]:
    """Read; read and simulate; read, simulate and measure as one stream, as the command does."""
    marks = [time.process_time()]
    deque(open_stream(case.workload), maxlen=0)
    marks.append(time.process_time())
    deque(leap_through(*make_engine(case), iter(open_stream(case.workload))), maxlen=0)
    marks.append(time.process_time())
    passing = leap_through(*make_engine(case), iter(open_stream(case.workload)))
    measured = measure(passing)
    marks.append(time.process_time())
    read, simulated, everything = (after - before for before, after in pairwise(marks))
    times = dict(zip(PARTS, (read, simulated - read, everything - simulated), strict=True))
    return times, passing.get_totals(), measured


def run_apart(case: Case) -> dict[str, object]:
    """Run one case in a process of its own, and the command in another."""
    command = [sys.executable, __file__, "--case", json.dumps(asdict(case))]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    page: dict[str, object] = json.loads(done.stdout)
    page["command_s"] = time_command(case) if case.method == "leap" else None
    return page


def time_command(case: Case) -> float:
    """Give the CPU seconds of the whole command, from its start to the printed report."""
    flags = [
        f"--{name.replace('_', '-')}={count}" for name, count in (LIMITS | {"num_blocks": case.num_blocks}).items()
    ]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "refsched", "simulate", case.workload, *flags]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, cwd=ROOT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def make_row(page: dict[str, Any]) -> tuple[str, ...]:
    """Lay out one case."""
    counts = (f"{page[name]:,}" for name in ("requests", "iterations", "events", "preemptions"))
    seconds = ("" if page[name] is None else f"{page[name]:.2f}" for name in (*PARTS, "command_s"))
    rates = (f"{page[name]:,.0f}" for name in ("requests_per_s", "peak_mb"))
    return page["name"], page["method"], *counts, *seconds, *rates


def compare(pages: list[dict[str, Any]]) -> Iterator[str]:
    """Say how step and leap compare, how fast step is, and how the cost of a request grows."""
    by_name = {(page["name"], page["method"]): page for page in pages}
    for (name, method), page in by_name.items():
        if method == "step" and (name, "leap") in by_name:
            ratio = page["simulate_s"] / by_name[name, "leap"]["simulate_s"]
            rate = page["request_steps"] / page["simulate_s"]
            yield f"{name}: step / leap {ratio:.1f}; step {rate:,.0f} request-steps per CPU second"
    drawn = [page for page in pages if page["name"].startswith(GROWING) and page["method"] == "leap"]
    costs = [sum(page[name] for name in PARTS) / page["requests"] for page in drawn]
    for page, cost in zip(drawn, costs, strict=True):
        yield f"{page['name']}: {cost * 1e6:.1f} us a request, {cost / costs[0]:.2f} times that of the first"


def main() -> int:
    """Run the cases and print the table, or one case as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="?", type=Path, default=Path("../shared/data/traces"))
    parser.add_argument("--json", metavar="FILE", help="write the numbers as JSON")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only the cases whose name has one of these in it")
    parser.add_argument("--ten-million", action="store_true", help="add ten million drawn requests: half an hour")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        print(json.dumps(run_case(Case(**json.loads(arguments.case)))))
        return 0
    pages = []
    for case in list_cases(arguments.traces, SIZES + (TEN_MILLION,) * arguments.ten_million):
        if arguments.only is None or any(name in case.name for name in arguments.only):
            pages.append(run_apart(case))
            print(" ".join(make_row(pages[-1])), file=sys.stderr)
    counts, rates = ("requests", "iterations", "events", "preemptions"), ("requests/s", "peak MB")
    print(
        f"{platform.processor() or platform.machine()}, Python {platform.python_version()}, "
        "cost a100-8b, vllm-v1, budget 2,048, 256 sequences"
    )
    header = ("workload", "method", *counts, "read s", "simulate s", "metrics s", "command s", *rates)
    print(format_table(header, [make_row(page) for page in pages]), *compare(pages), sep="\n")
    if arguments.json:
        write_text(arguments.json, json.dumps(pages, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
