"""The runner: an engine through many scenarios, one outcome each.

pass · fail · unsupported (the engine says so, or does not claim what the scenario needs) · xfail (fails as expected)
· xpass (passes though a failure is expected: an error) · error (the engine broke) · inconclusive (its answers leave
out what the scenario is about).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from refsched.conformance.adapters import Adapter, open_policy
from refsched.conformance.breach import Breach
from refsched.conformance.choice import Choice
from refsched.conformance.drive import Driven, drive
from refsched.conformance.expectations import Expectation
from refsched.conformance.recording import Opening
from refsched.conformance.scenario_file import Scenario
from refsched.conformance.verdict import RELATIONS, Verdict
from refsched.dialect import Dialect
from refsched.errors import EngineError

OUTCOMES = ("pass", "fail", "unsupported", "xfail", "xpass", "error", "inconclusive")
YES, NO, BROKE, STALE, NOTHING = 0, 1, 3, 4, 5


@dataclass(frozen=True, slots=True)
class Result:
    """Hold what one scenario gave; `because` says why where it did not simply pass."""

    scenario: Scenario
    outcome: str
    because: str = ""
    driven: Driven | None = None

    def broken(self) -> tuple[Breach, ...]:
        """Give the clauses that were broken."""
        return self.driven.verdict.broken if self.driven is not None and self.outcome in ("fail", "xfail") else ()


class Runner:
    """Run scenarios on one engine that has passed the smoke."""

    def __init__(
        self,
        adapter: Adapter,
        opening: Opening,
        choice: Choice,
        asked: str | None = None,
        expectations: Sequence[Expectation] = (),
    ):
        self.adapter, self.opening, self.choice, self.asked = adapter, opening, choice, asked
        self.expectations = expectations
        self.used: set[int] = set()  # rows of expectations that came true

    def run_all(self, scenarios: Iterable[Scenario]) -> Iterator[Result]:
        """Run scenario after scenario; an engine that breaks ends it."""
        for scenario in scenarios:
            result = self.expect(self.run(scenario))
            yield result
            if result.outcome == "error":
                return

    def run(self, scenario: Scenario) -> Result:
        """Run one scenario."""
        missing = self.find_missing(scenario)
        if missing is not None:
            return Result(scenario, "unsupported", missing)
        try:
            driven = drive(self.adapter, scenario, self.opening, self.choice, self.asked)
        except EngineError as error:
            return Result(scenario, "error", str(error))
        if driven.unsupported is not None and not driven.verdict.broken:
            return Result(scenario, "unsupported", driven.unsupported, driven)
        return Result(scenario, *judge_outcome(driven.verdict, scenario, self.choice.dialect, self.opening), driven)

    def find_missing(self, scenario: Scenario) -> str | None:
        """Say what a scenario needs and the engine does not claim, or return None."""
        if self.choice.dialect is None and self.choice.promised == "refines":
            return self.choice.unsupported
        claimed = {} if self.choice.dialect is None else self.choice.dialect.options()
        for option, value in scenario.requires.items():
            if claimed.get(option) != value:
                return f"needs {option}={value}, which the engine does not claim"
        return None

    def expect(self, result: Result) -> Result:
        """Hold a result against what is expected."""
        row = next((each for each in self.expectations if each.names(result.scenario.id)), None)
        if row is None or result.outcome not in ("pass", "fail"):
            return result
        if result.outcome == "pass":
            return replace(result, outcome="xpass", because=f"is expected to fail ({row.reason}), and passes")
        self.used.add(row.row)
        return replace(result, outcome="xfail", because=f"{row.reason} ({row.url}): {result.because}")

    def list_stale(self) -> list[Expectation]:
        """List the expectations that did not come true."""
        return [each for each in self.expectations if each.row not in self.used]


def judge_outcome(verdict: Verdict, scenario: Scenario, dialect: Dialect | None, opening: Opening) -> tuple[str, str]:
    """Name the outcome of a scenario, and why."""
    if verdict.conforms():
        open_ones = [clause for clause in scenario.clauses if clause in verdict.inconclusive]
        if open_ones and len(open_ones) == len(scenario.clauses):
            return "inconclusive", f"the answers leave out what {', '.join(open_ones)} needs"
        return "pass", ""
    because = "; ".join(each.sentence() for each in verdict.broken) or f"{verdict.relation}; {verdict.asked} is asked"
    broken = {each.clause for each in verdict.broken} - ({"CNF-EXA-1"} if verdict.asked != "exact" else set())
    if dialect is not None and broken <= list_own_breaches(scenario, dialect, opening):
        return "xfail", f"so does the rule {dialect.name} itself: {because}"
    return "fail", because


def list_own_breaches(scenario: Scenario, dialect: Dialect, opening: Opening) -> set[str]:
    """List the clauses that the rule itself breaks in a scenario, so that whoever follows it does too.

    Document A's rule gets stuck, and some recorded engines have defects that their dialects keep.
    """
    policy = open_policy(dialect, dialect.name)
    opening = Opening(opening.header, "refsched", {"name": dialect.name, **dialect.options()}, scenario.limits)
    return {each.clause for each in drive(policy, scenario, opening, Choice(dialect)).verdict.broken}


# THE WHOLE


@dataclass(frozen=True, slots=True)
class Finding:
    """Hold the smallest scenario in which a clause was broken, and in how many it was."""

    breach: Breach
    result: Result
    times: int = 1


def find_smallest(results: Iterable[Result]) -> list[Finding]:
    """Find for each broken clause its smallest scenario; the clause that broke most often comes first."""
    found: dict[str, list[Finding]] = {}
    for result in results:
        if result.outcome == "fail":
            for breach in result.broken():
                found.setdefault(breach.clause, []).append(Finding(breach, result))
    smallest = [replace(min(each, key=get_place), times=len(each)) for each in found.values()]
    return sorted(smallest, key=lambda finding: -finding.times)


def get_place(finding: Finding) -> tuple[int, int, int]:
    """Order findings by the size of their scenarios."""
    return get_size(finding.result)


def get_size(result: Result) -> tuple[int, int, int]:
    """Order results by requests, events driven and tokens."""
    events = 0 if result.driven is None else result.driven.events
    return len(result.scenario.arrivals), events, result.scenario.count_tokens()


def get_relation(results: Iterable[Result]) -> str | None:
    """Name the strongest relation that holds in all scenarios that count, or None where there are none."""
    counted = ("pass", "fail", "inconclusive", "xpass")
    ranks = [
        RELATIONS.index(each.driven.verdict.relation) for each in results if each.outcome in counted and each.driven
    ]
    return RELATIONS[min(ranks)] if ranks else None


def get_liveness(results: Iterable[Result]) -> str:
    """Name the worst ending; endings that a rule itself brings about, or that were expected, do not count."""
    verdicts = [each.driven.verdict for each in results if each.driven and each.outcome in ("pass", "fail")]
    kinds = {each.liveness.kind for each in verdicts if not each.liveness.waived and has_ended(each)}
    return next((kind for kind in ("livelock", "stuck", "unknown") if kind in kinds), "live")


def has_ended(verdict: Verdict) -> bool:
    """Tell whether a run went to its end, and was not cut off where another clause broke."""
    return not verdict.broken or any(each.clause.startswith("LIV-") for each in verdict.broken)


def has_run(result: Result) -> bool:
    """Tell whether a scenario says something about the engine."""
    return result.outcome in ("pass", "fail", "xfail", "xpass", "inconclusive")


def get_exit_code(results: Sequence[Result], stale: Sequence[Expectation]) -> int:
    """Give the exit code: broken before wrong, wrong before stale, stale before nothing."""
    outcomes = Counter(each.outcome for each in results)
    if outcomes["error"]:
        return BROKE
    if outcomes["fail"]:
        return NO
    if outcomes["xpass"] or stale:
        return STALE
    return YES if outcomes["pass"] or outcomes["xfail"] else NOTHING
