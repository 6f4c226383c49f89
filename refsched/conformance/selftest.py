"""The suite on itself: right engines pass, and every planted fault is found through its own clause."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from refsched.conformance.adapters import open_policy
from refsched.conformance.choice import choose_dialect
from refsched.conformance.faults import BY_PRIORITY, FAULTS, V1, Fault, change
from refsched.conformance.fuzz import draw_scenarios
from refsched.conformance.inprocess import InProcess
from refsched.conformance.runner import Result, Runner
from refsched.conformance.scenario_file import Scenario
from refsched.conformance.search import Found, search
from refsched.conformance.sketch import PRIORITY
from refsched.conformance.smoke import greet
from refsched.dialect import get_dialect, list_dialects


@dataclass(frozen=True, slots=True)
class Kill:
    """Hold how a fault was found, if it was: by which vector, and by which case of the fuzzer."""

    fault: Fault
    result: Result | None
    found: Found | None = None


def make_runner(adapter: InProcess) -> Runner:
    """Shake hands with an engine in this process."""
    opening = greet(adapter)
    return Runner(adapter, opening, choose_dialect(opening.dialect))


def plant(fault: Fault) -> Runner:
    """Make the runner of a planted fault."""
    return make_runner(InProcess(fault.make, {} if fault.claim is None else fault.claim, None))


def find_kill(fault: Fault, scenarios: Sequence[Scenario]) -> Result | None:
    """Find the first of some scenarios in which a fault breaks its own clause."""
    runner = plant(fault)
    for scenario in scenarios:
        result = runner.run(scenario)
        if any(each.clause == fault.clause for each in result.broken()):
            return result
    return None


def find_kills(scenarios: Sequence[Scenario], seed: int = 1, cases: int = 0) -> Iterator[Kill]:
    """Find each planted fault with the smallest vector there is and, where `cases` are allowed, by drawing as well."""
    smallest_first = sorted(scenarios, key=lambda each: (len(each.arrivals), each.count_tokens()))
    for fault in FAULTS:
        drawn = search(plant(fault), draw_scenarios(seed, cases), 1, fault.clause)
        yield Kill(fault, find_kill(fault, smallest_first), next(drawn, None))


def list_right_engines() -> Iterator[tuple[str, Callable[[], InProcess]]]:
    """List engines that are right: every policy, and the sketch that the faults are made from."""
    for name in list_dialects():
        yield name, lambda name=name: open_policy(get_dialect(name), name)  # type: ignore[misc]
    yield "sketch", lambda: InProcess(change(), V1, None)
    yield "sketch, by priority", lambda: InProcess(change(PRIORITY), BY_PRIORITY, None)
    yield "sketch, without a claim", lambda: InProcess(change(), {}, None)


def find_wrong_verdicts(scenarios: Sequence[Scenario]) -> Iterator[tuple[str, Result]]:
    """Run every right engine through some scenarios; give what it does not pass."""
    for name, make in list_right_engines():
        for result in make_runner(make()).run_all(scenarios):
            if result.outcome in ("fail", "error"):
                yield name, result
