"""What refsched check says about an engine: a stream of events for programs, JUnit, a matrix of clauses, text."""

import argparse
import json
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import TextIO

from refsched.cli.common import EDITION, get_provenance
from refsched.conformance.breach import count
from refsched.conformance.choice import Choice
from refsched.conformance.clause_table import count_clauses, format_matrix, name_clause
from refsched.conformance.expectations import Expectation
from refsched.conformance.ledger import Totals
from refsched.conformance.recording import Opening
from refsched.conformance.runner import BROKE, OUTCOMES, Finding, Result, get_liveness, get_relation
from refsched.conformance.scenario_file import Scenario, to_page
from refsched.errors import EngineError
from refsched.report.files import write_text
from refsched.report.junit import Case, format_junit

JUNIT = {"pass": "passed", "fail": "failed", "xpass": "failed", "error": "error"}  # all others are skipped
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


def summarise(checked: Checked | EngineError) -> dict[str, object]:
    """Give the summary: what `check` says of a trace, for all scenarios together; or how the engine broke at once."""
    if isinstance(checked, EngineError):
        return {"conforms": False, "exit": BROKE, "error": str(checked), "edition": EDITION}
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


def write_reports(arguments: argparse.Namespace, checked: Checked | EngineError) -> None:
    """Write JUnit, matrix and text; of an engine that broke at once, JUnit only."""
    if arguments.junit is not None:
        write_text(arguments.junit, format_junit(f"refsched check {arguments.engine}", list_cases(checked)))
    if isinstance(checked, EngineError):
        return
    if arguments.matrix is not None:
        write_text(arguments.matrix, format_matrix(checked.results))
    broke = any(each.outcome == "error" for each in checked.results)
    if not broke and "-" not in (arguments.json, arguments.junit, arguments.matrix):
        print("\n".join(format_text(checked)))


def list_cases(checked: Checked | EngineError) -> Iterator[Case]:
    """Give one test case per scenario, or one for the smoke that an engine did not pass."""
    if isinstance(checked, EngineError):
        yield Case("smoke", "smoke", "error", str(checked))
    else:
        yield from map(make_case, checked.results)


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
