"""refsched tables: the two documents' tables, computed."""

import argparse
from dataclasses import asdict
from fractions import Fraction

from refsched.cli.common import (
    count_argument,
    get_provenance,
    read_duration,
    write_json,
)
from refsched.report.table import format_table
from refsched.simulation.cost import ChunkCost
from refsched.simulation.teaching import (
    DECODERS,
    ChunkRow,
    Timetable,
    compute_chunk_row,
    compute_timetable,
)
from refsched.units import Ticks, format_decimal
from refsched.workload.scenarios import get_scenario

SUMMARY = "show what continuous batching and chunked prefill change, in two exact tables"
EXAMPLE = """examples:
  refsched tables
  refsched tables --chunk 512 --chunk 333 --overhead-ms 2 --json -"""
DEFAULT_CHUNKS = (4096, 1024, 256, 1000)
RULES = {"static": "static", "continuous": "document-a"}
MILLISECOND = 10**9


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refsched tables`."""
    parser.add_argument(
        "--chunk",
        type=count_argument("--chunk"),
        action="append",
        metavar="N",
        help="prefill tokens an iteration may take; may be repeated (default: 4096 1024 256 1000)",
    )
    parser.add_argument(
        "--prompt", type=count_argument("--prompt"), default=4096, metavar="N", help="tokens of the long prompt (4096)"
    )
    parser.add_argument(
        "--decode-ms", default="4", metavar="X", help="decode time of an iteration, all decodes together (4)"
    )
    parser.add_argument("--full-prefill-ms", default="64", metavar="X", help="time to prefill the whole prompt (64)")
    parser.add_argument("--overhead-ms", default="0.5", metavar="X", help="fixed time of every iteration (0.5)")
    parser.add_argument("--json", metavar="FILE", help="write the tables as JSON; - is standard output")


def run(arguments: argparse.Namespace) -> int:
    """Compute both tables and print them."""
    cost = ChunkCost(
        decode=read_duration(arguments.decode_ms, "--decode-ms", "ms"),
        full_prefill=read_duration(arguments.full_prefill_ms, "--full-prefill-ms", "ms"),
        prompt=arguments.prompt,
        overhead=read_duration(arguments.overhead_ms, "--overhead-ms", "ms"),
    )
    tables = {name: compute_timetable(rule, get_scenario("four-requests").offers) for name, rule in RULES.items()}
    chunks = [compute_chunk_row(chunk, cost) for chunk in arguments.chunk or DEFAULT_CHUNKS]
    write_json(arguments.json, to_json(tables, chunks, cost))
    if arguments.json != "-":
        print(format_text(tables, chunks, cost))
    return 0


def to_ms(ticks: Ticks) -> str:
    """Write ticks as an exact number of milliseconds."""
    return format_decimal(Fraction(ticks, MILLISECOND)) or str(ticks)


# JSON


def to_json(tables: dict[str, Timetable], chunks: list[ChunkRow], cost: ChunkCost) -> dict[str, object]:
    """Give both tables; times are exact decimals in text, the timetable counts iterations."""
    return {
        "timetable": {name: timetable_to_json(table) for name, table in tables.items()},
        "chunks": [chunk_to_json(row) for row in chunks],
        "cost": {"name": cost.name, "label": cost.label, "parameters": dict(cost.describe())},
        "provenance": get_provenance("simulated: the timetable in unit iterations, the chunks under cost model chunk"),
    }


def timetable_to_json(table: Timetable) -> dict[str, object]:
    """Give when each request is done, when all are, and the rows."""
    return {**table.done, "end": table.end, "rows": [asdict(row) for row in table.rows]}


def chunk_to_json(row: ChunkRow) -> dict[str, object]:
    """Give one row of the chunk table."""
    counts: dict[str, object] = {"chunk": row.chunk, "iterations": row.iterations}
    times = ("longest_gap", "prefill_done", "delay", "delay_decode", "delay_overhead")
    return counts | {f"{name}_ms": to_ms(getattr(row, name)) for name in times} | {"tokens_gained": row.tokens_gained}


# TEXT


def format_text(tables: dict[str, Timetable], chunks: list[ChunkRow], cost: ChunkCost) -> str:
    """Lay out both tables with what a reader must know to read them."""
    return "\n".join(
        [
            "Who runs when: four requests, two places, one token per request and iteration (times are iterations)",
            *(format_timetable(name, table) for name, table in tables.items()),
            "",
            "No iteration got faster and D still waits: what changed is that places freed early are used again.",
            "",
            f"A prompt of {cost.prompt} tokens beside {DECODERS} running requests: decodes {to_ms(cost.decode)} ms and "
            f"overhead {to_ms(cost.overhead)} ms per iteration, {to_ms(cost.full_prefill)} ms for the whole prefill",
            format_chunks(chunks),
            "longest gap: between two tokens of a running request. prefill done: the last chunk of the prompt, not TTFT.",
            "later by: against one chunk; of its parts decode time bought the tokens gained, overhead is cost.",
            "Simulated under the cost model chunk, whose parameters are assumptions; nothing here was measured.",
        ]
    )


def format_timetable(name: str, table: Timetable) -> str:
    """Lay out one timetable."""
    rows = [f"    [{row.start}, {row.stop})  {' '.join([*row.members, *['-'] * row.empty])}" for row in table.rows]
    done = ", ".join(f"{id} {when}" for id, when in table.done.items())
    return "\n".join(["", f"  {name}", *rows, f"    done: {done}; all at {table.end}"])


def format_chunks(chunks: list[ChunkRow]) -> str:
    """Lay out the chunk table."""
    header = (
        "chunk",
        "iterations",
        "longest gap ms",
        "prefill done ms",
        "later by ms",
        "= decode ms",
        "+ overhead ms",
        "tokens gained",
    )
    times = ("longest_gap", "prefill_done", "delay", "delay_decode", "delay_overhead")
    return format_table(
        header,
        [
            (
                str(row.chunk),
                str(row.iterations),
                *(to_ms(getattr(row, name)) for name in times),
                str(row.tokens_gained),
            )
            for row in chunks
        ],
    )
