"""refsched check for an engine that can be asked: smoke, then every scenario of the corpus, one outcome each."""

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, redirect_stdout
from typing import TextIO

from refsched.cli.check_report import Checked, put, result_to_json, summarise, write_reports
from refsched.cli.common import parse_dialect
from refsched.cli.ending import ending_in_order
from refsched.conformance.adapters import Adapter, open_adapter
from refsched.conformance.choice import Choice, choose_dialect
from refsched.conformance.expectations import Expectation, read_expectations
from refsched.conformance.recording import Opening
from refsched.conformance.runner import NO, Finding, Result, Runner, find_smallest, get_exit_code
from refsched.conformance.scenario_file import Scenario, parse_scenario
from refsched.conformance.search import minimise
from refsched.conformance.smoke import greet, smoke
from refsched.conformance.vectors import select_scenarios
from refsched.errors import EngineError, InputError
from refsched.report.files import open_for_writing

SMALL, SHRUNK, SHRINKING_RUNS = 3, 4, 400  # requests of a small scenario; how many are shrunk, and how hard


def check_engine(arguments: argparse.Namespace) -> int:
    """Check an engine; return its exit code, or raise EngineError where it broke."""
    if [arguments.json, arguments.junit, arguments.matrix].count("-") > 1:
        raise InputError("only one of --json, --junit and --matrix can be standard output")
    expectations = () if arguments.expect is None else read_expectations(arguments.expect)
    with ExitStack() as stack:
        stream = None if arguments.json is None else stack.enter_context(open_for_writing(arguments.json))
        stack.enter_context(ending_in_order())
        stack.enter_context(redirect_stdout(sys.stderr))  # what a Python engine prints is no report of ours
        try:
            adapter = open_adapter(arguments.engine, parse_dialect, arguments.timeout)
            stack.callback(adapter.close)
            checked: Checked | EngineError = run_check(arguments, adapter, expectations, stream)
        except EngineError as error:
            checked = error
        put(stream, {"event": "summary", **summarise(checked)})
    write_reports(arguments, checked)
    if isinstance(checked, EngineError):
        raise checked
    broke = next((each for each in checked.results if each.outcome == "error"), None)
    if broke is not None:
        raise EngineError(f"{broke.scenario.id or 'the scenario'}: {broke.because}")
    return checked.code


def read_scenarios(arguments: argparse.Namespace) -> tuple[Scenario, ...]:
    """Read the scenarios asked for: files, or those of the corpus that `--only` names."""
    if not arguments.scenario:
        return select_scenarios(arguments.only)
    return tuple(read_scenario_file(path) for path in arguments.scenario)


def read_scenario_file(path: str) -> Scenario:
    """Read a scenario from a file; raise InputError where there is none."""
    try:
        with open(path, encoding="utf-8") as file:
            return parse_scenario(file.read(), path)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}", file=path) from None


def run_check(
    arguments: argparse.Namespace,
    adapter: Adapter,
    expectations: Sequence[Expectation],
    stream: TextIO | None,
) -> Checked:
    """Shake hands, run the smoke, then the scenarios."""
    opening = greet(adapter)
    smoke(adapter, opening)
    choice, scenarios = make_choice(opening, arguments.dialect), read_scenarios(arguments)
    put(stream, {"event": "start", "engine": opening.engine, "dialect": opening.dialect, "vectors": len(scenarios)})
    runner, results = Runner(adapter, opening, choice, arguments.ask, expectations), []
    for result in limit_time(show_progress(runner.run_all(scenarios), len(scenarios)), arguments.total_timeout):
        results.append(result)
        put(stream, result_to_json(result))
    stale = () if arguments.only != "*" or arguments.scenario else tuple(runner.list_stale())
    code, findings = get_exit_code(results, stale), find_smallest(results)
    if code == NO:
        findings = [*sharpen(runner, findings)]
    return Checked(arguments.engine, opening, choice, tuple(results), tuple(findings), stale, code)


def sharpen(runner: Runner, findings: Sequence[Finding]) -> Iterator[Finding]:
    """Shrink what no small scenario shows, within reason; the first findings only."""
    for place, finding in enumerate(findings):
        scenario = finding.result.scenario
        if place >= SHRUNK or len(scenario.arrivals) <= SMALL:
            yield finding
            continue
        found = minimise(runner, scenario, finding.breach.clause, most_runs=SHRINKING_RUNS)
        yield Finding(found.breach, found.result, finding.times)


def make_choice(opening: Opening, name: str | None) -> Choice:
    """Choose the dialect to judge by; raise InputError where the one named is unknown."""
    try:
        return choose_dialect(opening.dialect, name)
    except InputError as error:
        raise error.at(field="--dialect") from None


def limit_time(results: Iterable[Result], seconds: float) -> Iterator[Result]:
    """Pass results on; raise EngineError where all of them together take too long."""
    deadline = time.monotonic() + seconds
    for result in results:
        yield result
        if time.monotonic() > deadline:
            raise EngineError(f"it is too slow: the check takes longer than {seconds:g} s (--total-timeout)")


def show_progress(results: Iterable[Result], total: int) -> Iterator[Result]:
    """Pass results on, and show on a terminal how many there are."""
    for number, result in enumerate(results, 1):
        if sys.stderr.isatty():
            print(f"\r\x1b[K{number} of {total} scenarios", end="", file=sys.stderr, flush=True)
        yield result
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
