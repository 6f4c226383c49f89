"""Choosing drawn scenarios for the corpus: few of them, in which every rule comes into every situation at least once.

A situation is a set of words about one plan of a reference policy, such as "a decode, a first chunk, one preempted, no
block free". Scenarios are taken greedily, the one with most new situations first.
"""

from collections.abc import Iterator
from dataclasses import replace

from refsched.conformance.adapters import open_policy
from refsched.conformance.choice import choose_dialect
from refsched.conformance.drive import drive
from refsched.conformance.fuzz import draw_scenario
from refsched.conformance.scenario_file import Scenario
from refsched.conformance.smoke import Recorder, greet
from refsched.conformance.wire import Message
from refsched.dialect import Dialect, get_dialect

MOST = 120
Situation = tuple[str, frozenset[str]]
RULES: tuple[tuple[str, dict[str, object]], ...] = (
    ("document-a", {}),
    ("static", {}),
    ("orca", {}),
    ("no-evict", {}),
    ("prefill-first", {}),
    ("sarathi", {}),
    ("vllm-v1", {}),
    ("vllm-v1", {"policy": "priority"}),
    ("vllm-v1", {"prefix_cache": True}),
    ("vllm-v1", {"admission_gate": "chunk", "watermark_blocks": 1}),
)


def choose_drawn(seed: int, cases: int) -> Iterator[Scenario]:
    """Choose scenarios; each gets its place as an id."""
    dialects = [get_dialect(name, options) for name, options in RULES]
    found = {case: find_situations(draw_scenario(seed, case), dialects) for case in range(cases)}
    seen: set[Situation] = set()
    for number in range(MOST):
        best = max(found, key=lambda case: (len(found[case] - seen), -case))
        if not found[best] - seen:
            return
        seen |= found[best]
        scenario = draw_scenario(seed, best)
        yield replace(
            scenario, id=f"drawn/{number:03}", about="many situations of many rules", origin=f"drawn: {scenario.origin}"
        )


def find_situations(scenario: Scenario, dialects: list[Dialect]) -> set[Situation]:
    """Find the situations into which a scenario brings each rule."""
    return {(f"{place}", words) for place, each in enumerate(dialects) for words in describe_run(scenario, each)}


def describe_run(scenario: Scenario, dialect: Dialect) -> Iterator[frozenset[str]]:
    """Describe every plan of a run."""
    policy = open_policy(dialect, dialect.name)
    opening, recorder = greet(policy), Recorder(policy)
    drive(recorder, scenario, opening, choose_dialect(opening.dialect))
    prompts = {each.request.id: each.request.prompt for each in scenario.arrivals}
    budget = scenario.limits.token_budget or 0
    for answer in recorder.answers:
        if "plan" in answer:
            yield frozenset(describe_plan(answer, prompts, budget))


def describe_plan(answer: Message, prompts: dict[str, int], budget: int) -> Iterator[str]:
    """Describe one plan in words."""
    plan = answer["plan"]
    for id, start, count in plan["entries"]:
        yield "decode" if start >= prompts[id] else "whole" if start == 0 and count >= prompts[id] else "chunk"
        yield "recompute" if start == 0 and count > prompts[id] else "entry"
    yield f"{min(len(plan['preempted']), 3)} preempted"
    yield "refused" if plan["rejected"] else "taken"
    yield "budget used up" if sum(entry[2] for entry in plan["entries"]) == budget else "budget left"
    yield "no block free" if answer.get("kv", {}).get("free") == 0 else "blocks free"
    yield f"{min(len(answer.get('waiting', [])), 2)} waiting"
    yield "hit" if any(answer.get("cached", {}).values()) else "no hit"
