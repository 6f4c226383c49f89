"""The runner: one outcome per scenario, known failures that go stale, and one exit code for all."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from refsched.conformance.adapters import open_policy
from refsched.conformance.choice import choose_dialect
from refsched.conformance.expectations import Expectation, parse_expectations
from refsched.conformance.faults import FAULTS
from refsched.conformance.inprocess import InProcess
from refsched.conformance.runner import Result, Runner, find_smallest, get_exit_code, get_relation
from refsched.conformance.scenario_file import Scenario, read_scenario
from refsched.conformance.selftest import plant
from refsched.conformance.smoke import greet, smoke
from refsched.conformance.vectors import get_scenario, select_scenarios
from refsched.dialect import get_dialect
from refsched.errors import EngineError, InputError
from refsched.model import Limits, Plan
from refsched.scheduling.engine import ReferenceEngine

GOOD = get_scenario("budget/second-prompt-cut")
CANCELLING = get_scenario("cancel/running")
OVER = next(fault for fault in FAULTS if fault.name == "budget-off-by-one")


def change(**methods: Callable[..., Any]) -> InProcess:
    """Make the reference engine with some methods replaced; each gets the engine first."""

    class Changed:
        def __init__(self, limits: Limits):
            self.engine = ReferenceEngine(get_dialect("vllm-v1"), limits)

        def __getattr__(self, name: str) -> Any:
            if name in methods:
                return lambda *arguments: methods[name](self.engine, *arguments)
            return getattr(self.engine, name)

    return InProcess(Changed, {"name": "vllm-v1"}, 5.0)


def run(adapter: InProcess, scenario: Scenario, *expectations: Expectation) -> Result:
    opening = greet(adapter)
    return next(Runner(adapter, opening, choose_dialect(opening.dialect), None, expectations).run_all([scenario]))


def fail(*arguments: object) -> None:
    raise KeyError("r0")


def unsupported(*arguments: object) -> None:
    raise NotImplementedError


# OUTCOMES


def test_that_a_right_engine_passes() -> None:
    result = run(change(), GOOD)
    assert (result.outcome, result.because, result.broken()) == ("pass", "", ())


def test_that_a_broken_clause_fails_with_its_sentence() -> None:
    result = next(plant(OVER).run_all([GOOD]))
    assert (result.outcome, result.because) == (
        "fail",
        "iteration 0 plans 9 tokens (r0:5, r1:4); the budget is 8 [SCH-BUD-1]",
    )


def test_that_what_an_engine_does_not_support_is_no_failure() -> None:
    assert run(change(cancel=unsupported), CANCELLING).outcome == "unsupported"
    assert run(change(cancel=unsupported), GOOD).outcome == "pass"


@pytest.mark.parametrize("requires", [{"policy": "priority"}, {"prefix_cache": True}])
def test_that_what_is_not_claimed_is_unsupported(requires: dict) -> None:
    result = run(change(), replace(GOOD, requires=requires))
    assert result.outcome == "unsupported" and "does not claim" in result.because


def test_that_an_option_that_nobody_knows_is_unsupported() -> None:
    adapter = InProcess(
        lambda limits: ReferenceEngine(get_dialect("vllm-v1"), limits), {"name": "vllm-v1", "mood": 1}, None
    )
    result = run(adapter, GOOD)
    assert result.outcome == "unsupported" and "mood" in result.because


@pytest.mark.parametrize(
    ("method", "says"),
    [("plan", "plan raises KeyError"), ("submit", "submit raises KeyError"), ("complete", "complete raises KeyError")],
)
def test_that_an_engine_that_raises_is_an_error(method: str, says: str) -> None:
    result = run(change(**{method: fail}), GOOD)
    assert result.outcome == "error" and says in result.because


@pytest.mark.parametrize(
    "plan",
    [
        None,
        "r0",
        Plan((("r0", 0),)),
        Plan((("r0", 0, 1.0),)),
        Plan((("r0", 0, True),)),
        Plan(((7, 0, 1),)),
        Plan((("r0", 0, 10**40),)),
    ],  # type: ignore[arg-type]
)
def test_that_a_plan_that_is_none_is_an_error(plan: object) -> None:
    assert run(change(plan=lambda engine: plan), GOOD).outcome == "error"


def test_that_an_engine_that_hangs_is_an_error() -> None:
    def hang(engine: object) -> None:
        while True:
            pass

    adapter = change(plan=hang)
    adapter.seconds = 0.2
    result = run(adapter, GOOD)
    assert result.outcome == "error" and "longer than 0.2 s" in result.because


def test_that_an_error_ends_the_run() -> None:
    adapter = change(plan=fail)
    opening = greet(adapter)
    assert len(list(Runner(adapter, opening, choose_dialect(opening.dialect)).run_all([GOOD, CANCELLING]))) == 1


def test_that_an_engine_that_tells_nothing_leaves_its_clauses_open() -> None:
    adapter = change(state=unsupported)
    held = replace(GOOD, clauses=("KV-HOLD-1",))
    assert run(adapter, held).outcome == "inconclusive"
    assert run(adapter, GOOD).outcome == "pass"


def test_that_a_rule_that_gets_stuck_may_get_stuck_but_others_may_not() -> None:
    scenario = get_scenario("rules/full-pool-of-two")
    stuck = open_policy(get_dialect("document-a"), "document-a")
    result = run(stuck, scenario)
    assert result.outcome == "xfail" and "so does the rule document-a itself" in result.because
    unclaimed = InProcess(lambda limits: ReferenceEngine(get_dialect("document-a"), limits), {}, None)
    assert "LIV-END-1" in run(unclaimed, scenario).because and run(unclaimed, scenario).outcome == "fail"


def test_that_a_run_that_never_ends_is_given_up() -> None:
    def plan_one_and_forget(engine: ReferenceEngine) -> Plan:
        made = engine.plan()
        for id, start, _ in made.entries:
            engine.live[id].computed = start
        return Plan(tuple(entry for entry in made.entries[:0]), (), ())

    adapter = change(plan=plan_one_and_forget, state=unsupported)
    adapter.dialect = {}
    result = run(adapter, GOOD)
    assert result.outcome == "fail" and "LIV-END-1" in result.because


@pytest.mark.parametrize("claim", ["vllm-v1", {"name": "vllm-v1", "watermark_blocks": 1}, get_dialect("vllm-0.29")])
def test_that_a_claim_is_read_from_the_factory_or_from_what_it_makes(claim: Any) -> None:
    def make(limits: Limits) -> ReferenceEngine:
        engine = ReferenceEngine(get_dialect("vllm-v1"), limits)
        engine.dialect = claim
        return engine

    expected = {"name": claim} if isinstance(claim, str) else claim if isinstance(claim, dict) else claim.options()
    assert expected.items() <= greet(InProcess(make, None, None)).dialect.items()
    make.dialect = "static"  # type: ignore[attr-defined]
    assert greet(InProcess(make, None, None)).dialect == {"name": "static"}


# EXPECTATIONS


def test_that_a_known_failure_is_expected_and_a_pass_is_stale() -> None:
    row = Expectation("budget/*", "known", "https://example.org/1", 3)
    runner = plant(OVER)
    runner.expectations = (row,)
    results = list(runner.run_all([GOOD]))
    assert (results[0].outcome, get_exit_code(results, runner.list_stale())) == ("xfail", 0)
    assert "known (https://example.org/1)" in results[0].because
    passing = run(change(), GOOD, row)
    assert (passing.outcome, get_exit_code([passing], [row])) == ("xpass", 4)


def test_that_an_expectation_that_names_nothing_is_stale() -> None:
    adapter = change()
    opening = greet(adapter)
    runner = Runner(adapter, opening, choose_dialect(opening.dialect), None, (Expectation("nope/*", "a", "b://c", 1),))
    results = list(runner.run_all([GOOD]))
    assert get_exit_code(results, runner.list_stale()) == 4


def test_that_expectations_are_read_line_by_line() -> None:
    text = "# known\n\nbudget/*  counts decodes twice https://example.org/7\n"
    assert parse_expectations(text) == (Expectation("budget/*", "counts decodes twice", "https://example.org/7", 3),)


@pytest.mark.parametrize("line", ["budget/*", "budget/* https://example.org", "budget/* because of that", "a b c d"])
def test_that_a_line_without_reason_and_url_is_refused(line: str) -> None:
    with pytest.raises(InputError, match="known.txt: row 2: is not: id-glob reason url"):
        parse_expectations(f"# one\n{line}\n", "known.txt")


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        (["pass", "unsupported"], 0),
        (["pass", "fail", "xpass"], 1),
        (["pass", "fail", "error"], 3),
        (["pass", "xpass"], 4),
        (["unsupported", "inconclusive"], 5),
        (["xfail"], 0),
        ([], 5),
    ],
)
def test_that_outcomes_have_one_exit_code(outcomes: list[str], code: int) -> None:
    assert get_exit_code([Result(GOOD, outcome) for outcome in outcomes], []) == code


# THE WHOLE


def test_that_the_smallest_scenario_is_shown_for_each_clause() -> None:
    results = list(plant(OVER).run_all(select_scenarios("*")))
    finding = next(each for each in find_smallest(results) if each.breach.clause == "SCH-BUD-1")
    failing = [each for each in results if any(breach.clause == "SCH-BUD-1" for breach in each.broken())]
    assert finding.times == len(failing) > 10
    assert len(finding.result.scenario.arrivals) == min(len(each.scenario.arrivals) for each in failing) == 1
    assert get_relation(results) == "none" and find_smallest(results)[0] == finding


# SMOKE


def reset_keeps(limits: Limits, kept: dict[str, ReferenceEngine] = {}) -> ReferenceEngine:  # noqa: B006 - on purpose
    return kept.setdefault("engine", ReferenceEngine(get_dialect("vllm-v1"), limits))


def test_that_an_engine_that_a_reset_does_not_clear_is_broken() -> None:
    adapter = InProcess(reset_keeps, {}, None)
    with pytest.raises(EngineError, match="smoke, reset amid work"):
        smoke(adapter, greet(adapter))


def test_that_an_engine_that_answers_differently_each_time_is_broken() -> None:
    numbers = iter(range(10**6))

    def plan_anew(engine: ReferenceEngine) -> Plan:
        return replace(engine.plan(), cached=(("r0", next(numbers)),))

    adapter = change(plan=plan_anew)
    with pytest.raises(EngineError, match="smoke, reset amid work: the same run gives another answer"):
        smoke(adapter, greet(adapter))


@pytest.mark.parametrize("dialect", [7, ["vllm-v1"]])
def test_that_a_claim_of_a_wrong_form_is_broken(dialect: object) -> None:
    factory = lambda limits: ReferenceEngine(get_dialect("vllm-v1"), limits)  # noqa: E731
    factory.dialect = dialect  # type: ignore[attr-defined]
    with pytest.raises(EngineError, match="dialect"):
        greet(InProcess(factory, None, None))


@pytest.mark.parametrize(("clauses", "outcome"), [(("MOD-REQ-1",), "pass"), (("MOD-*",), "pass"), ((), "unsupported")])
def test_that_a_live_name_is_offered_again_only_where_that_is_claimed(clauses: tuple[str, ...], outcome: str) -> None:
    page = {"format": "refsched-scenario/1", "limits": {"token_budget": 4, "max_seqs": 2}}
    twice = read_scenario(page | {"arrivals": [[0, "r0", 2, 3], [1, "r0", 2, 3]]})
    adapter = change()
    adapter.clauses = clauses
    assert run(adapter, twice).outcome == outcome


@pytest.mark.parametrize(("clauses", "inside"), [(("MOD-ARR-1",), True), ((), False)])
def test_that_an_engine_is_told_inside_an_iteration_only_where_it_claims_to_listen(
    clauses: tuple[str, ...], inside: bool
) -> None:
    heard: list[str] = []

    def note(name: str) -> Callable[..., Any]:
        return lambda engine, *arguments: (heard.append(name), getattr(engine, name)(*arguments))[1]

    adapter = change(**{name: note(name) for name in ("submit", "plan", "complete", "cancel")})
    adapter.clauses = clauses
    assert run(adapter, get_scenario("cancel/inside-work")).outcome == "pass"
    assert (heard[heard.index("cancel") - 1] == "plan") == inside
