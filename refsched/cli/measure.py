"""refsched measure: every metric of a file of Records, each under the name of its definition."""

import argparse
from fractions import Fraction

from refsched.cli.common import get_provenance, write_json
from refsched.errors import InputError
from refsched.metrics.goodput import (
    DENOMINATORS,
    FAILURES,
    NOT_APPLICABLE,
    Policy,
    parse_slos,
)
from refsched.metrics.measure import Measured, Settings, measure
from refsched.metrics.quantile import DEFAULT_METHOD, METHODS
from refsched.metrics.window import RULES, parse_choice
from refsched.report.measured import format_measured, to_json
from refsched.results.records import RecordsFile
from refsched.units import Ticks, format_decimal, parse_decimal, parse_time, to_seconds

SUMMARY = "measure what clients saw: every metric of a file of records, under its name"
EXAMPLE = """RECORDS is JSON lines, one request each, as `refsched simulate --records` writes them; it may be gzipped.
Seconds are exact decimals; a delivery is [time, tokens in it or null, kind?].

examples:
  refsched measure records.jsonl
  refsched measure records.jsonl --slo ttft=1s,longest-gap=100ms --json -
  refsched measure records.jsonl --window steady --quantile linear --stall 200ms"""
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
    parser.add_argument("--playback", metavar="RATE", help="let readers take this many tokens a second: 10")
    parser.add_argument("--deadlines", metavar="FIRST,NEXT", help="count tokens late for their deadline: 1s,50ms")
    parser.add_argument("--window", metavar="WINDOW", help="count this time only: steady, level=0.8 or 10s..60s")
    parser.add_argument("--attribute", choices=RULES, default=RULES[0], help="what belongs to a window (start-in)")
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
        stall=None if arguments.stall is None else read_span(arguments.stall, "--stall"),
        window=None if arguments.window is None else parse_choice(arguments.window, arguments.attribute),
        playback=None if arguments.playback is None else read_rate(arguments.playback),
        deadlines=None if arguments.deadlines is None else read_deadlines(arguments.deadlines),
    )


def read_span(text: str, name: str) -> Ticks:
    """Read a time that is not negative."""
    try:
        ticks, rounded = parse_time(text)
    except InputError as error:
        raise error.at(field=name) from None
    if ticks < 0 or rounded:
        raise InputError(f"{text!r} is {'negative' if ticks < 0 else 'finer than a picosecond'}", field=name)
    return ticks


def read_rate(text: str) -> Fraction:
    """Read how many tokens a second a reader takes."""
    try:
        rate = Fraction(parse_decimal(text))
    except InputError as error:
        raise error.at(field="--playback") from None
    if not Fraction(1, 10**6) <= rate <= 10**9:
        raise InputError(f"{text!r} is not a number of tokens a second", field="--playback")
    return rate


def read_deadlines(text: str) -> tuple[Ticks, Ticks]:
    """Read the deadline of the first token, and that of each after it."""
    first, comma, between = text.partition(",")
    if not comma:
        raise InputError(f"{text!r} is not two times, such as 1s,50ms", field="--deadlines")
    ticks = read_span(first, "--deadlines"), read_span(between, "--deadlines")
    if not ticks[1]:
        raise InputError("the time between tokens must be positive", field="--deadlines")
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
