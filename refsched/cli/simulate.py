"""refsched simulate: replay a workload through a scheduler and say what every client saw."""

import argparse
from collections import deque
from collections.abc import Mapping
from contextlib import ExitStack

from refsched import __version__
from refsched.cli.classes import parse_split
from refsched.cli.common import count_argument, make_engine, read_duration, write_json
from refsched.cli.dry_run import dry_run
from refsched.cli.progress import follow_requests, tell_when_over
from refsched.cli.simulate_report import Report, format_text, to_json
from refsched.conformance.protocol import TraceWriter
from refsched.errors import InputError
from refsched.metrics.measure import measure
from refsched.metrics.quantile import DEFAULT_METHOD, METHODS
from refsched.model import Limits
from refsched.report.files import open_for_writing
from refsched.report.records import write_records
from refsched.simulation.cost import BUILT_IN, CostModel, get_cost_model
from refsched.simulation.cost_fitted import FittedCost, set_overhead
from refsched.simulation.cost_range import check_offers, extrapolate
from refsched.simulation.fleet import (
    ROUTERS,
    Fleet,
    Member,
    Method,
    deal_out,
    run_fleet,
    run_least_outstanding,
    split_by_group,
)
from refsched.simulation.leap import leap, leap_through
from refsched.simulation.observe import Observer
from refsched.simulation.step import simulate
from refsched.workload.formats.ties import TIES
from refsched.workload.load import load_workload
from refsched.workload.offer import Workload
from refsched.workload.stream import open_stream

SUMMARY = "replay a workload through a scheduler and say what every client saw"
EXAMPLE = """WORKLOAD is a file, a built-in scenario (four-requests, long-prompt, research-assistant) or a generator.
ENGINE is a policy with options, such as vllm-v1,watermark_blocks=4.

examples:
  refsched simulate research-assistant --engine vllm-v1 --token-budget 2048 --max-seqs 64
  refsched simulate poisson:rate=4,n=1000,prompt=1024,output=128 --token-budget 512 --max-seqs 64 --json -
  refsched simulate requests.csv --token-budget 2048 --max-seqs 256 --block-size 16 --num-blocks 4000"""
STUCK = 1
SIMULATORS: Mapping[str, Method] = {"leap": leap, "step": simulate}

COUNTS: tuple[tuple[str, int | None, str], ...] = (
    ("--chunk-cap", None, "tokens that one request may prefill in an iteration (no cap)"),
    ("--block-size", 16, "tokens in a KV block (16)"),
    ("--num-blocks", None, "KV blocks (without limit)"),
    ("--max-len", None, "known tokens, prompt and outputs, at which a request ends (none)"),
    ("--first", None, "offer only the first N requests"),
    ("--replicas", 1, "run N equal engines behind a router (1)"),
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
    parser.add_argument(
        "--host-overhead", metavar="TIME", help="host time per iteration, of a calibrated model (0.3 ms)"
    )
    parser.add_argument("--extrapolate", action="store_true", help="use a calibrated model outside what was measured")
    parser.add_argument("--quantile", default=DEFAULT_METHOD, choices=METHODS, help="definition of quantiles")
    parser.add_argument("--seed", type=count_argument("--seed", least=0), default=0, metavar="N", help="for generators")
    parser.add_argument("--ties", choices=TIES, default="raw", help="what becomes of equal times in a file (raw)")
    parser.add_argument("--method", choices=SIMULATORS, default="leap", help="leap equals step, the definition, sooner")
    parser.add_argument("--router", choices=ROUTERS, default=ROUTERS[0], help="how replicas share requests")
    parser.add_argument("--split", metavar="group=G:LIMIT=N,…;…", help="one engine per group, with limits of its own")
    parser.add_argument(
        "--warm", action="store_true", help="run everything once before, so that prefix caches are warm"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what is in WORKLOAD, and simulate nothing")
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
    cost = read_cost(arguments)
    members = make_members(arguments, limits)
    if arguments.dry_run:
        workload = load_workload(arguments.workload, arguments.seed, arguments.first, arguments.ties)
        return dry_run(workload, limits, cost, arguments.json)
    run_it = run_passing if can_pass(arguments, members) else run_whole
    report = run_it(arguments, members, limits, cost)
    write_json(arguments.json, to_json(report))
    if "-" not in outputs:
        print(format_text(report))
    return 0 if all(part.ending.kind == "done" for part in report.fleet.runs) else STUCK


def can_pass(arguments: argparse.Namespace, members: list[Member]) -> bool:
    """Tell whether offers and records can pass by: one engine that leaps, and nobody needs them afterwards."""
    kept = (arguments.records, arguments.trace, arguments.warm, arguments.split, len(members) > 1)
    return arguments.method == "leap" and not any(kept) and not members[0].engine.dialect.prefix_cache


def run_passing(arguments: argparse.Namespace, members: list[Member], limits: Limits, cost: CostModel) -> Report:
    """Simulate and measure while the workload is read; nothing is kept but live requests and compact columns."""
    stream = open_stream(arguments.workload, arguments.seed, arguments.first, arguments.ties)
    offers = check_offers(cost, limits, stream)
    with follow_requests(stream.estimate_total) as line:
        run = leap_through(members[0].engine, limits, cost, offers, line)
        measured = measure(tell_when_over(run, line), arguments.quantile)
    fleet = Fleet(tuple(members), (run.get_totals(),), ())
    return Report(fleet, measured, limits, cost, stream.describe(), arguments.method, "cold")


def run_whole(arguments: argparse.Namespace, members: list[Member], limits: Limits, cost: CostModel) -> Report:
    """Simulate with everything kept, and write trace and records where they were asked for."""
    workload = load_workload(arguments.workload, arguments.seed, arguments.first, arguments.ties)
    check_blocks(workload, members[0])
    deque(check_offers(cost, limits, workload.offers), maxlen=0)
    if arguments.warm:
        run_members(arguments, members, cost, workload, ())
        for member in members:
            member.engine.count_anew()
    fleet = run_observed(arguments, members, cost, workload)
    if arguments.records:
        with open_for_writing(arguments.records) as file:
            write_records(fleet.records, file)
    start = "warm" if arguments.warm else "cold"
    return Report(fleet, measure(fleet.records, arguments.quantile), limits, cost, workload, arguments.method, start)


def read_cost(arguments: argparse.Namespace) -> CostModel:
    """Find the cost model; raise InputError where --host-overhead is asked of a model that has none apart."""
    cost = get_cost_model(arguments.cost)
    if arguments.host_overhead is not None:
        if not isinstance(cost, FittedCost):
            raise InputError(f"cost model {cost.name} keeps no host overhead apart", field="--host-overhead")
        cost = set_overhead(cost, read_duration(arguments.host_overhead, "--host-overhead"))
    return extrapolate(cost) if arguments.extrapolate else cost


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


def check_blocks(workload: Workload, member: Member) -> None:
    """Raise InputError where a prefix cache would take the workload's block numbers for blocks of another size."""
    block_tokens, block_size = workload.source.get("block_tokens"), member.limits.block_size
    if member.engine.dialect.prefix_cache and block_tokens not in (None, block_size):
        raise InputError(
            f"is {block_size}, but the workload numbers blocks of {block_tokens} tokens", field="--block-size"
        )


def make_members(arguments: argparse.Namespace, limits: Limits) -> list[Member]:
    """Make one engine, or one per class or replica; raise InputError for what does not go together."""
    if arguments.split and arguments.replicas > 1:
        raise InputError("cannot be combined with --replicas", field="--split")
    if arguments.trace and (arguments.split or arguments.replicas > 1):
        raise InputError("a trace holds the decisions of one engine", field="--trace")
    if arguments.split:
        classes = parse_split(arguments.split, limits)
        return [Member(name, make_engine(arguments.engine, own)[0], own) for name, own in classes.items()]
    return [Member(str(place), make_engine(arguments.engine, limits)[0], limits) for place in range(arguments.replicas)]


def run_observed(arguments: argparse.Namespace, members: list[Member], cost: CostModel, workload: Workload) -> Fleet:
    """Run the members, writing the trace meanwhile if one was asked for."""
    if not arguments.trace:
        return run_members(arguments, members, cost, workload, ())
    with ExitStack() as stack:
        file = stack.enter_context(open_for_writing(arguments.trace))
        dialect = members[0].engine.dialect
        about = f"simulated by refsched {__version__}"
        header = {"name": workload.name, "about": about, "recorded_from": "refsched"}
        options = {"name": dialect.name, **dialect.options()}
        put = lambda line: print(line, file=file)  # noqa: E731
        writer = TraceWriter(put, "refsched", __version__, options, members[0].limits, header)
        stack.callback(writer.close)
        return run_members(arguments, members, cost, workload, (writer,))


def run_members(
    arguments: argparse.Namespace,
    members: list[Member],
    cost: CostModel,
    workload: Workload,
    observers: tuple[Observer, ...],
) -> Fleet:
    """Share the offers out among the members, and run them."""
    offers = workload.offers
    with follow_requests(lambda: len(offers)) as line:
        if len(members) > 1 and arguments.router == "least-outstanding" and not arguments.split:
            return run_least_outstanding(members, offers, cost, line)
        names = [member.name for member in members]
        parts = split_by_group(offers, names) if arguments.split else deal_out(offers, len(members))
        return run_fleet(members, parts, cost, SIMULATORS[arguments.method], observers, line)
