"""refsched measure: every metric of a file of Records, each under the name of its definition."""

import argparse

from refsched.cli.common import get_provenance, write_json
from refsched.errors import InputError
from refsched.metrics.goodput import DENOMINATORS, FAILURES, NOT_APPLICABLE, Policy, parse_slos
from refsched.metrics.measure import Measured, Settings, measure
from refsched.metrics.quantile import DEFAULT_METHOD, METHODS
from refsched.report.measured import format_measured, to_json
from refsched.results.records import RecordsFile
from refsched.units import Ticks, format_decimal, parse_time, to_seconds

SUMMARY = "measure what clients saw: every metric of a file of records, under its name"
EXAMPLE = """RECORDS is JSON lines, one request each, as `refsched simulate --records` writes them; it may be gzipped.
Seconds are exact decimals; a delivery is [time, tokens in it or null, kind?].

examples:
  refsched measure records.jsonl
  refsched measure records.jsonl --slo ttft=1s,longest-gap=100ms --json -
  refsched measure records.jsonl --quantile linear --stall 200ms"""
POLICIES = (
    ("--not-applicable", NOT_APPLICABLE, "pass", "what a request counts as that a condition does not apply to (pass)"),
    ("--failures", FAILURES, "count", "whether failed requests stay in the denominator (count)"),
    ("--denominator", DENOMINATORS, "offered", "what attainment is a share of (offered)"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refsched measure`."""
    parser.add_argument("records", metavar="RECORDS", help="a file of records")
    parser.add_argument("--slo", metavar="NAME=TIME,…", help="conditions that make a request good: ttft=1s,tpot=50ms")
    for name, words, default, meaning in POLICIES:
        parser.add_argument(name, choices=words, default=default, help=meaning)
    parser.add_argument("--stall", metavar="TIME", help="count gaps above this as stalls: 200ms")
    parser.add_argument("--quantile", default=DEFAULT_METHOD, choices=METHODS, help="definition of quantiles")
    parser.add_argument("--json", metavar="FILE", help="write everything as JSON; - is standard output")


def run(arguments: argparse.Namespace) -> int:
    """Measure the records and print the report."""
    settings = read_settings(arguments)
    records = RecordsFile(arguments.records)
    try:
        measured = measure(records, settings=settings)
    except InputError as error:
        raise error.at(file=arguments.records) from None
    write_json(arguments.json, make_page(measured, records))
    if arguments.json != "-":
        print("\n".join([*format_measured(measured), *list_notes(records)]))
    return 0


def read_settings(arguments: argparse.Namespace) -> Settings:
    """Collect how to measure from the arguments."""
    return Settings(
        method=arguments.quantile,
        slos=() if arguments.slo is None else parse_slos(arguments.slo),
        policy=Policy(arguments.not_applicable, arguments.failures, arguments.denominator),
        stall=None if arguments.stall is None else read_stall(arguments.stall),
    )


def read_stall(text: str) -> Ticks:
    """Read the stall threshold."""
    try:
        ticks, rounded = parse_time(text)
    except InputError as error:
        raise error.at(field="--stall") from None
    if ticks < 0 or rounded:
        raise InputError(f"{text!r} is {'negative' if ticks < 0 else 'finer than a picosecond'}", field="--stall")
    return ticks


def make_page(measured: Measured, records: RecordsFile) -> dict[str, object]:
    """Give the block, and where its numbers come from."""
    return {
        **to_json(measured),
        "source": {"file": records.path, "origin_s": to_seconds(records.origin or 0), "rounded": records.rounded},
        "notes": list_notes(records),
        "provenance": get_provenance("measured: computed from the records of the file, exactly"),
    }


def list_notes(records: RecordsFile) -> list[str]:
    """Say what was done to the times while reading."""
    notes = []
    if records.rounded:
        notes.append(f"{records.rounded:,} times were finer than a picosecond and were rounded to it, half to even")
    if records.origin:
        notes.append(f"times are counted from {format_decimal(to_seconds(records.origin))} s on the file's own clock")
    return notes
