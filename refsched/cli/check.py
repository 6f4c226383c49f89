"""refsched check: hold what an engine decided against the rules, and name the rule that it broke."""

import argparse
import json
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import IO

from refsched.cli.check_engine import check_engine
from refsched.cli.common import EDITION, get_provenance, write_json
from refsched.conformance.adapters import SECONDS
from refsched.conformance.breach import Breach, count
from refsched.conformance.choice import choose_dialect
from refsched.conformance.clauses import get_clause
from refsched.conformance.messages import Told
from refsched.conformance.recording import Recording
from refsched.conformance.verdict import RELATIONS, Verdict, judge
from refsched.conformance.wire import LONGEST_LINE
from refsched.errors import InputError
from refsched.report.files import write_text
from refsched.report.junit import Case, format_junit

SUMMARY = "judge an engine's decisions, and name the rule that they break"
EXAMPLE = """ENGINE is a policy with options (vllm-v1,watermark_blocks=4), python:module:factory, a command that
speaks the protocol (cmd:./engine --flag), or a recorded trace (trace:FILE).

examples:
  refsched check vllm-v1
  refsched check 'cmd:node engine.js' --junit check.xml --expect known.txt
  refsched check python:mypackage.adapter:make_engine --dialect vllm-v1 --json -
  refsched check trace:run.jsonl --dialect vllm-v1"""
TRACE = "trace:"
TOTAL_SECONDS = 600.0
EVERY_EVENTS = 5000
SHOWN = 12  # events of a scenario in the text report; --json has them all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refsched check`."""
    parser.add_argument("engine", metavar="ENGINE", help="what to check; trace:- reads a trace from standard input")
    parser.add_argument(
        "--dialect",
        metavar="NAME",
        help="judge by this dialect; the options in the trace's hello override its defaults",
    )
    parser.add_argument(
        "--ask",
        choices=RELATIONS[1:],
        metavar="RELATION",
        help="safe, refines or exact: what must hold (default: refines, or safe where no dialect is known)",
    )
    parser.add_argument(
        "--json",
        metavar="FILE",
        help="write the verdict as JSON, of an engine after one line per scenario; - is standard output",
    )
    parser.add_argument(
        "--junit", metavar="FILE", help="write JUnit XML: a case per scenario, or per clause of a trace"
    )
    parser.add_argument("--expect", metavar="FILE", help="known failures, one line each: id-glob reason url")
    parser.add_argument("--only", metavar="GLOB", default="*", help="run only the vectors whose ids match")
    parser.add_argument("--scenario", metavar="FILE", action="append", help="run this scenario instead of the corpus")
    parser.add_argument("--matrix", metavar="FILE", help="write what was found about each clause as a Markdown table")
    parser.add_argument("--timeout", type=seconds, default=SECONDS, metavar="S", help="for one answer (10)")
    parser.add_argument("--total-timeout", type=seconds, default=TOTAL_SECONDS, metavar="S", help="for all (600)")


def seconds(text: str) -> float:
    """Read a number of seconds that is positive; raise ArgumentTypeError otherwise."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value


def run(arguments: argparse.Namespace) -> int:
    """Judge an engine or a trace; return 0 if it conforms and 1 if it does not."""
    if not arguments.engine.startswith(TRACE):
        return check_engine(arguments)
    for name in ("expect", "scenario", "matrix"):
        if getattr(arguments, name) is not None:
            raise InputError("is for engines; a trace is one run", field=f"--{name}")
    return check_trace(arguments)


def check_trace(arguments: argparse.Namespace) -> int:
    """Judge a trace."""
    path = arguments.engine.removeprefix(TRACE)
    with open_trace(path) as file:
        recording = Recording(read_lines(file), path)
        try:
            choice = choose_dialect(recording.opening.dialect, arguments.dialect)
        except InputError as error:
            raise error.at(field="--dialect") from None
        events = show_progress(recording) if sys.stderr.isatty() else recording.events()
        verdict = judge(recording.opening, events, choice).conclude(recording.closed, arguments.ask)
    replay = get_replay(arguments)
    write_json(arguments.json, to_json(recording, verdict, replay))
    if arguments.junit is not None:
        write_text(arguments.junit, format_junit(f"refsched check {path}", list_cases(verdict)))
    if "-" not in (arguments.json, arguments.junit):
        print(format_text(recording, verdict, replay))
    return 0 if verdict.conforms() else 1


@contextmanager
def open_trace(path: str) -> Iterator[IO[bytes]]:
    """Open a trace for reading; raise InputError where that cannot be done."""
    if path == "-":
        yield sys.stdin.buffer
        return
    try:
        file = open(path, "rb")
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}", file=path) from None
    with file:
        yield file


def read_lines(file: IO[bytes]) -> Iterator[bytes]:
    """Read line by line, never more than a message may have."""
    while True:
        try:
            line = file.readline(LONGEST_LINE + 1)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}") from None
        if not line:
            return
        yield line


def show_progress(recording: Recording) -> Iterator[Told]:
    """Pass the events on, and show on a terminal how many rows were read."""
    for number, told in enumerate(recording.events(), 1):
        if number % EVERY_EVENTS == 0:
            print(f"\r\x1b[K{told.row:,} rows judged", end="", file=sys.stderr, flush=True)
        yield told
    print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def get_replay(arguments: argparse.Namespace) -> str:
    """Give the command that judges the same again."""
    options = [
        part
        for name in ("dialect", "ask")
        if getattr(arguments, name)
        for part in (f"--{name}", getattr(arguments, name))
    ]
    return shlex.join(["refsched", "check", arguments.engine, *options])


# REPORTS


def to_json(recording: Recording, verdict: Verdict, replay: str) -> dict[str, object]:
    """Give the whole verdict."""
    dialect = None if verdict.dialect is None else {"name": verdict.dialect.name, **verdict.dialect.options()}
    return {
        "relation": verdict.relation,
        "liveness": verdict.liveness.kind,
        "period": verdict.liveness.period,
        "waived": verdict.liveness.waived,
        "asked": verdict.asked,
        "conforms": verdict.conforms(),
        "broken": [breach_to_json(each, verdict) for each in verdict.broken],
        "remarks": [breach_to_json(each, verdict) for each in verdict.remarks],
        "passed": verdict.passed,
        "inconclusive": verdict.inconclusive,
        "counts": asdict(verdict.totals),
        "engine": recording.opening.engine,
        "dialect": dialect,
        "unsupported": verdict.unsupported,
        "limits": asdict(recording.opening.limits),
        "edition": EDITION,
        "replay": replay,
        "provenance": get_provenance("judged from a recorded trace"),
    }


def breach_to_json(breach: Breach, verdict: Verdict) -> dict[str, object]:
    """Give one broken clause with the scenario that shows it."""
    return {
        "clause": breach.clause,
        "iteration": breach.iteration,
        "because": breach.because,
        "scenario": verdict.scenarios.get(breach.clause),
    }


def format_text(recording: Recording, verdict: Verdict, replay: str) -> str:
    """Say the verdict, and each broken clause in a sentence."""
    name = "no dialect" if verdict.dialect is None else f"dialect {verdict.dialect.name}"
    outcome, totals = "conforms" if verdict.conforms() else "does not conform", verdict.totals
    counts = (
        (totals.iterations, "iteration"),
        (totals.submitted, "request"),
        (totals.emitted, "output"),
        (totals.preempted, "preemption"),
    )
    lines = [
        f"{verdict.relation}, {describe_liveness(verdict)} ({outcome}; {verdict.asked} is asked)",
        f"  {recording.opening.engine}, {name}: {', '.join(count(*each) for each in counts)}",
    ]
    if verdict.dialect is not None:
        lines.append(
            "  options: "
            + ", ".join(f"{option}={str(value).lower()}" for option, value in verdict.dialect.options().items())
        )
    if verdict.unsupported:
        lines.append(f"  judged by the clauses that hold for every engine only: {verdict.unsupported}")
    lines += [f"broken: {each.sentence()}" for each in verdict.broken]
    lines += [f"remark: {each.sentence()}" for each in verdict.remarks]
    if verdict.inconclusive:
        lines.append(f"inconclusive, for the trace does not tell what they need: {', '.join(verdict.inconclusive)}")
    if verdict.broken:
        lines += list(show_scenario(verdict.broken[0].clause, verdict.scenarios[verdict.broken[0].clause]))
        lines.append(f"replay: {replay}; refsched explain {verdict.broken[0].clause}")
    return "\n".join(lines)


def show_scenario(clause: str, page: Mapping[str, object]) -> Iterator[str]:
    """Show what led to the first breach: its row, the limits, and the last events, or where the live requests stand."""
    row = f" (row {page['row']})" if "row" in page else ""
    limits = page["limits"]
    assert isinstance(limits, dict)
    told = ", ".join(f"{name}={value}" for name, value in limits.items() if value is not None)
    yield f"scenario of {clause}{row}: {told}"
    events, live = page.get("events", []), page.get("live", [])
    assert isinstance(events, list) and isinstance(live, list)
    if len(events) > SHOWN:
        yield f"  … {len(events) - SHOWN} events before"
    yield from (f"  {json.dumps(each, ensure_ascii=False)}" for each in events[-SHOWN:] + live[:SHOWN])
    if len(live) > SHOWN:
        yield f"  … {len(live) - SHOWN} live requests more"


def describe_liveness(verdict: Verdict) -> str:
    """Say how the run ends."""
    liveness = verdict.liveness
    period = f" of period {liveness.period}" if liveness.period else ""
    return (
        liveness.kind + period + (", which the dialect allows for its impossible requests" if liveness.waived else "")
    )


def list_cases(verdict: Verdict) -> Iterator[Case]:
    """Give one test case per clause that was looked at, and one for the verdict."""
    broken = {each.clause: each.sentence() for each in verdict.broken}
    for clause in sorted({*broken, *verdict.passed, *verdict.inconclusive}):
        outcome = "failed" if clause in broken else "passed" if clause in verdict.passed else "skipped"
        yield Case(
            get_clause(clause).chapter.removesuffix(".md"),
            clause,
            outcome,
            broken.get(clause, "" if outcome == "passed" else "inconclusive"),
        )
    message = f"{verdict.relation}, {verdict.liveness.kind}; {verdict.asked} is asked"
    yield Case("verdict", f"{verdict.asked} and live", "passed" if verdict.conforms() else "failed", message)
