"""refsched check for an engine that can be asked: smoke, then every scenario of the corpus, one outcome each."""

import argparse
import json
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, redirect_stdout
from dataclasses import asdict, dataclass, fields
from typing import TextIO

from refsched.cli.common import EDITION, get_provenance, parse_dialect
from refsched.cli.ending import ending_in_order
from refsched.conformance.adapters import Adapter, open_adapter
from refsched.conformance.breach import count
from refsched.conformance.choice import Choice, choose_dialect
from refsched.conformance.clause_table import count_clauses, format_matrix, name_clause
from refsched.conformance.expectations import Expectation, read_expectations
from refsched.conformance.ledger import Totals
from refsched.conformance.recording import Opening
from refsched.conformance.runner import (
    OUTCOMES,
    Finding,
    Result,
    Runner,
    find_smallest,
    get_exit_code,
    get_liveness,
    get_relation,
)
from refsched.conformance.scenario_file import Scenario, parse_scenario, to_page
from refsched.conformance.search import minimise
from refsched.conformance.smoke import greet, smoke
from refsched.conformance.vectors import select_scenarios
from refsched.errors import EngineError, InputError
from refsched.report.files import open_for_writing, write_text
from refsched.report.junit import Case, format_junit

JUNIT = {"pass": "passed", "fail": "failed", "xpass": "failed", "error": "error"}  # all others are skipped
SMALL, SHRUNK, SHRINKING_RUNS = 3, 4, 400  # requests of a small scenario; how many are shrunk, and how hard
SHOWN = 8  # broken clauses that the text report shows with their scenario


@dataclass(frozen=True, slots=True)
class Checked:
    """Hold all that a check found, for its reports."""

    engine: str  # as named on the command line
    opening: Opening
    choice: Choice
    results: tuple[Result, ...]
    findings: tuple[Finding, ...]
    stale: tuple[Expectation, ...]
    code: int


def check_engine(arguments: argparse.Namespace) -> int:
    """Check an engine; return its exit code, or raise EngineError where it broke."""
    if [arguments.json, arguments.junit, arguments.matrix].count("-") > 1:
        raise InputError("only one of --json, --junit and --matrix can be standard output")
    expectations = () if arguments.expect is None else read_expectations(arguments.expect)
    with ExitStack() as stack:
        stream = None if arguments.json is None else stack.enter_context(open_for_writing(arguments.json))
        stack.enter_context(ending_in_order())
        stack.enter_context(redirect_stdout(sys.stderr))  # what a Python engine prints is no report of ours
        adapter = open_adapter(arguments.engine, parse_dialect, arguments.timeout)
        stack.callback(adapter.close)
        try:
            checked = run_check(arguments, adapter, expectations, stream)
        except EngineError as error:
            put(stream, {"event": "summary", "error": str(error), "exit": 3, "edition": EDITION})
            raise
        put(stream, {"event": "summary", **summarise(checked)})
    write_reports(arguments, checked)
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
    if code == 1:
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


# REPORTS


def put(stream: TextIO | None, event: Mapping[str, object]) -> None:
    """Write one event as one line, if anybody listens."""
    if stream is not None:
        print(json.dumps(event, ensure_ascii=False, allow_nan=False), file=stream, flush=True)


def result_to_json(result: Result) -> dict[str, object]:
    """Give the event of one scenario."""
    page: dict[str, object] = {"event": "vector", "id": result.scenario.id, "outcome": result.outcome}
    page |= {"because": result.because} if result.because else {}
    if result.driven is not None:
        verdict = result.driven.verdict
        page |= {"relation": verdict.relation, "liveness": verdict.liveness.kind, "events": result.driven.events}
        page["broken"] = [each.clause for each in verdict.broken]
    return page


def summarise(checked: Checked) -> dict[str, object]:
    """Give the summary: what `check` says of a trace, for all scenarios together."""
    results, dialect = checked.results, checked.choice.dialect
    outcomes = Counter(each.outcome for each in results)
    clauses = {id: name_clause(counts) for id, counts in sorted(count_clauses(results).items())}
    return {
        "relation": get_relation(results),
        "liveness": get_liveness(results),
        "conforms": checked.code == 0,
        "exit": checked.code,
        "broken": [finding_to_json(each, checked) for each in checked.findings],
        "outcomes": {outcome: outcomes[outcome] for outcome in OUTCOMES},
        "clauses": clauses,
        "passed": [id for id, word in clauses.items() if word == "passed"],
        "inconclusive": [id for id, word in clauses.items() if word == "open"],
        "stale": [f"row {each.row}: {each.pattern}" for each in checked.stale],
        "counts": sum_totals(results),
        "engine": checked.opening.engine,
        "dialect": None if dialect is None else {"name": dialect.name, **dialect.options()},
        "unsupported": checked.choice.unsupported,
        "edition": EDITION,
        "provenance": get_provenance("judged while the engine ran"),
    }


def sum_totals(results: Iterable[Result]) -> dict[str, int]:
    """Sum what all runs held."""
    totals = [each.driven.verdict.totals for each in results if each.driven is not None]
    return {field.name: sum(getattr(each, field.name) for each in totals) for field in fields(Totals)}


def finding_to_json(finding: Finding, checked: Checked) -> dict[str, object]:
    """Give one broken clause with the smallest scenario that shows it: what was offered, and what was decided."""
    driven, breach = finding.result.driven, finding.breach
    assert driven is not None
    return {
        **{name: value for name, value in asdict(breach).items()},
        "scenario": driven.verdict.scenarios.get(breach.clause),
        "times": finding.times,
        "vector": finding.result.scenario.id,
        "offered": to_page(finding.result.scenario),
        "replay": get_replay(finding.result.scenario, checked),
    }


def get_replay(scenario: Scenario, checked: Checked) -> str:
    """Give the command that runs one scenario again."""
    which = ["--only", scenario.id] if scenario.id and "/" in scenario.id else ["--scenario", "FILE"]
    return shlex.join(["refsched", "check", checked.engine, *which])


def write_reports(arguments: argparse.Namespace, checked: Checked) -> None:
    """Write JUnit, matrix and text."""
    if arguments.junit is not None:
        write_text(arguments.junit, format_junit(f"refsched check {checked.engine}", map(make_case, checked.results)))
    if arguments.matrix is not None:
        write_text(arguments.matrix, format_matrix(checked.results))
    broke = any(each.outcome == "error" for each in checked.results)
    if not broke and "-" not in (arguments.json, arguments.junit, arguments.matrix):
        print("\n".join(format_text(checked)))


def make_case(result: Result) -> Case:
    """Make the test case of one scenario."""
    group = result.scenario.id.rpartition("/")[0].replace("/", ".") or "scenario"
    name, outcome = result.scenario.id or "scenario", JUNIT.get(result.outcome, "skipped")
    return Case(group, name, outcome, "" if outcome == "passed" else f"{result.outcome}: {result.because}")


def format_text(checked: Checked) -> Iterator[str]:
    """Say what was found, with the smallest scenario for each broken clause."""
    outcomes = Counter(each.outcome for each in checked.results)
    dialect, words = checked.choice.dialect, {0: "conforms", 5: "nothing ran"}
    told = ", ".join(f"{outcomes[outcome]} {outcome}" for outcome in OUTCOMES if outcomes[outcome])
    verdict = words.get(checked.code, "does not conform" if checked.code == 1 else "stale expectations")
    yield f"{get_relation(checked.results) or 'none'}, {get_liveness(checked.results)} ({verdict})"
    yield f"  {checked.opening.engine}, {'no dialect' if dialect is None else f'dialect {dialect.name}'}: {told}"
    if dialect is not None:
        yield f"  options: {', '.join(f'{name}={str(value).lower()}' for name, value in dialect.options().items())}"
    if checked.choice.unsupported and checked.choice.promised == "refines":
        yield f"  unsupported: {checked.choice.unsupported}"
    elif checked.choice.unsupported:
        yield f"  judged by the clauses that hold for every engine only: {checked.choice.unsupported}"
    for result in checked.results:
        if result.outcome == "xpass":
            yield f"xpass: {result.scenario.id} {result.because}"
    for each in checked.stale:
        yield f"stale: row {each.row} of the expectations, {each.pattern}, names nothing that fails"
    findings = checked.findings
    for finding in findings[:SHOWN]:
        yield from format_finding(finding, checked)
    if len(findings) > SHOWN:
        yield f"… {count(len(findings) - SHOWN, 'broken clause')} more"


def format_finding(finding: Finding, checked: Checked) -> Iterator[str]:
    """Show one broken clause."""
    scenario = finding.result.scenario
    limits = {name: value for name, value in asdict(scenario.limits).items() if value is not None}
    yield f"broken: {finding.breach.sentence()}"
    more = f", and in {count(finding.times - 1, 'scenario')} more" if finding.times > 1 else ""
    told = ", ".join(f"{name}={value}" for name, value in limits.items())
    yield f"  in {scenario.id or 'the scenario'}{more}: {told}"
    page = to_page(scenario)
    for name in ("arrivals", "cancels"):
        rows = page.get(name, [])
        assert isinstance(rows, list)
        shown = ", ".join(json.dumps(row, ensure_ascii=False) for row in rows[:SHOWN])
        if rows:
            yield f"  {name}: {shown}{' …' if len(rows) > SHOWN else ''}"
    yield f"  replay: {get_replay(scenario, checked)}; refsched explain {finding.breach.clause}"
