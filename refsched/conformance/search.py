"""Searching: drawn scenarios through an engine until clauses break, each finding shrunk to its smallest form."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from refsched.conformance.breach import Breach
from refsched.conformance.runner import Result, Runner
from refsched.conformance.scenario_file import Scenario
from refsched.conformance.shrink import MOST_RUNS, shrink
from refsched.errors import EngineError


@dataclass(frozen=True, slots=True)
class Found:
    """Hold a clause that broke: in which case, and the smallest scenario that was reached from it."""

    breach: Breach
    case: int
    result: Result


def search(
    runner: Runner,
    scenarios: Iterable[Scenario],
    most: int,
    wanted: str | None = None,
    see: Callable[[], None] = lambda: None,
) -> Iterator[Found]:
    """Give each clause that breaks once, at most `most` of them; `wanted` looks for one clause only.

    `see` is called for each case. Raise EngineError where the engine breaks.
    """
    found: set[str] = set()
    for case, scenario in enumerate(scenarios):
        see()
        result = runner.run(scenario)
        if result.outcome == "error":
            raise EngineError(f"{scenario.id}: {result.because}")
        for clause in [each.clause for each in result.broken() if wanted in (None, each.clause)]:
            if result.outcome == "fail" and clause not in found:
                found.add(clause)
                yield minimise(runner, scenario, clause, case)
                if len(found) >= most:
                    return


def minimise(runner: Runner, scenario: Scenario, clause: str, case: int = 0, most_runs: int = MOST_RUNS) -> Found:
    """Shrink a scenario that breaks a clause."""
    small = shrink(scenario, lambda each: breaks(runner, each, clause), most_runs)
    result = runner.run(small)
    breach = next(each for each in result.broken() if each.clause == clause)
    return Found(breach, case, result)


def breaks(runner: Runner, scenario: Scenario, clause: str) -> bool:
    """Tell whether an engine breaks a clause in a scenario."""
    result = runner.run(scenario)
    return result.outcome == "fail" and any(each.clause == clause for each in result.broken())
