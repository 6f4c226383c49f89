"""refsched simulate: replay a workload through a scheduler and say what every client saw."""

import argparse
from contextlib import ExitStack

from refsched import __version__
from refsched.cli.common import count_argument, make_engine, write_json
from refsched.cli.progress import make_progress
from refsched.cli.simulate_report import Report, format_text, to_json
from refsched.conformance.protocol import TraceWriter
from refsched.dialect import Dialect
from refsched.errors import InputError
from refsched.metrics.measure import measure
from refsched.metrics.quantile import DEFAULT_METHOD, METHODS
from refsched.model import Limits
from refsched.report.files import open_for_writing
from refsched.report.records import write_records
from refsched.scheduling.engine import ReferenceEngine
from refsched.simulation.cost import BUILT_IN, CostModel, get_cost_model
from refsched.simulation.observe import Observer, RunCounter
from refsched.simulation.step import Simulated, simulate
from refsched.workload.load import load_workload
from refsched.workload.offer import Workload

SUMMARY = "replay a workload through a scheduler and say what every client saw"
EXAMPLE = """WORKLOAD is a file, a built-in scenario (four-requests, long-prompt, research-assistant) or a generator.
ENGINE is a policy with options, such as vllm-v1,watermark_blocks=4.

examples:
  refsched simulate research-assistant --engine vllm-v1 --token-budget 2048 --max-seqs 64
  refsched simulate poisson:rate=4,n=1000,prompt=1024,output=128 --token-budget 512 --max-seqs 64 --json -
  refsched simulate requests.csv --token-budget 2048 --max-seqs 256 --block-size 16 --num-blocks 4000"""
STUCK = 1

COUNTS: tuple[tuple[str, int | None, str], ...] = (
    ("--chunk-cap", None, "tokens that one request may prefill in an iteration (no cap)"),
    ("--block-size", 16, "tokens in a KV block (16)"),
    ("--num-blocks", None, "KV blocks (without limit)"),
    ("--max-len", None, "known tokens, prompt and outputs, at which a request ends (none)"),
    ("--first", None, "offer only the first N requests"),
)
FILES = (
    ("--json", "write everything as JSON; - is standard output"),
    ("--records", "write what every client saw, one JSON line a request"),
    ("--trace", "write every decision in the recorded-trace form"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refsched simulate`."""
    parser.add_argument("workload", metavar="WORKLOAD", help="what is offered, and when")
    parser.add_argument("--engine", default="vllm-v1", metavar="ENGINE", help="who schedules (vllm-v1)")
    add_count(parser, "--token-budget", None, "tokens that an iteration may run", required=True)
    add_count(parser, "--max-seqs", None, "requests that may run at once", required=True)
    for name, default, meaning in COUNTS:
        add_count(parser, name, default, meaning)
    models = ", ".join(BUILT_IN)
    parser.add_argument("--cost", default="a100-8b", metavar="NAME|FILE", help=f"step-time model: {models} or a file")
    parser.add_argument("--quantile", default=DEFAULT_METHOD, choices=METHODS, help="definition of quantiles")
    parser.add_argument("--seed", type=count_argument("--seed", least=0), default=0, metavar="N", help="for generators")
    parser.add_argument("--method", choices=("step",), default="step", help="how to simulate; step is the definition")
    for name, meaning in FILES:
        parser.add_argument(name, metavar="FILE", help=meaning)


def add_count(
    parser: argparse.ArgumentParser, name: str, default: int | None, meaning: str, required: bool = False
) -> None:
    """Add an argument that is a positive whole number."""
    parser.add_argument(name, type=count_argument(name), default=default, required=required, metavar="N", help=meaning)


def run(arguments: argparse.Namespace) -> int:
    """Simulate, write what was asked for, and print the report."""
    outputs = [arguments.json, arguments.records, arguments.trace]
    if outputs.count("-") > 1:
        raise InputError("only one of --json, --records and --trace can be standard output")
    limits = read_limits(arguments)
    engine, dialect = make_engine(arguments.engine, limits)
    cost = get_cost_model(arguments.cost)
    workload = load_workload(arguments.workload, arguments.seed, arguments.first)
    counter = RunCounter()
    simulated = run_with_outputs(arguments, engine, dialect, limits, cost, workload, counter)
    measured = measure(simulated.records, arguments.quantile)
    report = Report(simulated, measured, counter.total(), engine, dialect, limits, cost, workload)
    write_json(arguments.json, to_json(report))
    if "-" not in outputs:
        print(format_text(report))
    return 0 if simulated.ending.kind == "done" else STUCK


def read_limits(arguments: argparse.Namespace) -> Limits:
    """Collect the limits from the arguments."""
    return Limits(
        token_budget=arguments.token_budget,
        max_seqs=arguments.max_seqs,
        chunk_cap=arguments.chunk_cap,
        block_size=arguments.block_size,
        num_blocks=arguments.num_blocks,
        max_len=arguments.max_len,
    )


def run_with_outputs(
    arguments: argparse.Namespace,
    engine: ReferenceEngine,
    dialect: Dialect,
    limits: Limits,
    cost: CostModel,
    workload: Workload,
    counter: RunCounter,
) -> Simulated:
    """Simulate while the trace is written, then write the records."""
    with ExitStack() as stack:
        observers: list[Observer] = [counter, *make_progress(len(workload.offers))]
        if arguments.trace:
            file = stack.enter_context(open_for_writing(arguments.trace))
            name = {"name": dialect.name, **dialect.options()}
            header = {
                "name": workload.name,
                "about": f"simulated by refsched {__version__}",
                "recorded_from": "refsched",
            }
            writer = TraceWriter(lambda line: print(line, file=file), "refsched", __version__, name, limits, header)
            observers.append(writer)
            stack.callback(writer.close)
        simulated = simulate(engine, limits, cost, workload.offers, observers)
    if arguments.records:
        with open_for_writing(arguments.records) as file:
            write_records(simulated.records, file)
    return simulated
