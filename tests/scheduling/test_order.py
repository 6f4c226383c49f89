"""Order of candidates and decode limit [A17, decision 6]."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refsched.dialect import get_dialect
from refsched.errors import InputError
from refsched.model import Limits, Request
from refsched.scheduling.engine import ReferenceEngine

BOTH = pytest.mark.parametrize("name", ["document-a", "vllm-v1"])


def start(name: str, limits: Limits, priorities: tuple[int, ...] = (0, 0, 0), **options: object) -> ReferenceEngine:
    """Make an engine in which a, b, c … (of one prompt token each) have their first output, whatever the budget."""
    engine = ReferenceEngine(get_dialect(name, {"impossible": "admit", **options}), limits)
    for place, priority in enumerate(priorities):
        engine.submit(Request("abcdefgh"[place], 1, 99, priority))
    budget, engine.queues.token_budget = engine.queues.token_budget, 99
    assert len(step(engine)) == len(priorities)
    engine.queues.token_budget = budget
    return engine


def step(engine: ReferenceEngine) -> str:
    """Run one iteration in which everybody planned emits, and name those planned."""
    ids = [entry.id for entry in engine.plan().entries]
    engine.complete(ids, [])
    return "".join(ids)


@BOTH
def test_by_default_the_first_are_served_again_and_again(name: str) -> None:
    engine = start(name, Limits(2, 8))
    assert [step(engine) for _ in range(3)] == ["ab", "ab", "ab"]


@BOTH
def test_waiting_time_serves_whoever_was_planned_least_recently(name: str) -> None:
    engine = start(name, Limits(2, 8), order="waiting-time")
    assert [step(engine) for _ in range(4)] == ["ab", "ca", "bc", "ab"]


@BOTH
def test_priority_serves_the_best_and_then_the_earliest(name: str) -> None:
    engine = start(name, Limits(2, 8), (2, 1, 0, 1), order="priority")
    assert [step(engine) for _ in range(2)] == ["cb", "cb"]


@BOTH
@given(budget=st.integers(1, 6), count=st.integers(1, 6))
def test_waiting_time_counts_iterations_since_a_request_was_planned(name: str, budget: int, count: int) -> None:
    engine = start(name, Limits(budget, 8), (0,) * count, order="waiting-time")
    candidates = list("abcdef"[:count])
    waited = dict.fromkeys(candidates, 0)
    for _ in range(20):
        candidates.sort(key=lambda id: -waited[id])  # stable: equals keep their order
        expected = candidates[:budget]
        assert step(engine) == "".join(expected)
        waited = {id: 0 if id in expected else waited[id] + 1 for id in candidates}


@pytest.mark.parametrize("name", ["sarathi", "sarathi-serve-orca", "sarathi-serve-sarathi"])
def test_other_rules_that_offer_an_order_keep_it_too(name: str) -> None:
    waiting, best = (start(name, Limits(2, 8), (2, 1, 0), order=order) for order in ("waiting-time", "priority"))
    assert [step(waiting) for _ in range(3)] == ["ab", "ca", "bc"]
    assert [step(best) for _ in range(2)] == ["cb", "cb"]


def test_document_a_orders_its_waiting_requests_too() -> None:
    chunks = {}
    for order in ("admission", "priority", "waiting-time"):
        engine = ReferenceEngine(get_dialect("document-a", {"order": order}), Limits(4, 8, chunk_cap=4))
        for id, priority in (("a", 1), ("b", 0)):
            engine.submit(Request(id, 8, 1, priority))
        chunks[order] = [engine.plan().entries[0].id for _ in range(3)]
    assert chunks == {"admission": ["a", "a", "b"], "priority": ["b", "b", "a"], "waiting-time": ["a", "b", "a"]}


def test_by_arrival_a_request_that_returns_does_not_lose_its_place() -> None:
    """Under the priority queue b returns after c was admitted; in admission order c is then served first."""
    served = {}
    for order in ("admission", "arrival"):
        options = {"policy": "priority", "order": order, "impossible": "admit"}
        engine = ReferenceEngine(get_dialect("vllm-v1", options), Limits(9, 8, num_blocks=11))
        for id, priority in (("a", 1), ("b", 2)):
            engine.submit(Request(id, 3, 99, priority))
        step(engine)
        engine.submit(Request("c", 1, 99, 0))
        assert [step(engine) for _ in range(2)] == ["abc", "ac"]  # 9 of 11 blocks, then b has to go for c
        engine.cancel("a")
        step(engine)
        served[order] = step(engine)
    assert served == {"admission": "cb", "arrival": "bc"}


@BOTH
def test_the_latest_arrival_is_the_victim_in_any_order(name: str) -> None:
    engine = start(name, Limits(8, 8, num_blocks=8), order="waiting-time")
    engine.queues.token_budget = 2
    assert step(engine) == "ab"
    engine.queues.token_budget = 8
    plans = [engine.plan()]
    engine.complete([entry.id for entry in plans[0].entries], [])
    plans.append(engine.plan())
    assert [plan.preempted for plan in plans] == ([(), ("c",)] if name == "vllm-v1" else [(), ()])


@BOTH
def test_a_decode_limit_lets_the_first_decode_and_the_others_keep_their_kv(name: str) -> None:
    engine = start(name, Limits(8, 8, num_blocks=64), decode_limit=2)
    assert [step(engine) for _ in range(2)] == ["ab", "ab"]
    assert engine.state().held == {"a": 3, "b": 3, "c": 1}


@BOTH
def test_what_the_limit_leaves_goes_to_new_input(name: str) -> None:
    engine = start(name, Limits(4, 8), decode_limit=1)
    engine.submit(Request("d", 8, 1))
    assert {entry.id: entry.count for entry in engine.plan().entries} == {"a": 1, "d": 3}


@BOTH
def test_the_limit_takes_turns_with_waiting_time(name: str) -> None:
    engine = start(name, Limits(8, 8), decode_limit=2, order="waiting-time")
    assert [step(engine) for _ in range(3)] == ["ab", "ca", "bc"]


def test_a_partial_prefill_is_no_decode() -> None:
    engine = start("vllm-v1", Limits(4, 8), decode_limit=1)
    engine.submit(Request("d", 8, 1))
    engine.complete([engine.plan().entries[0].id], [])
    assert {entry.id: entry.count for entry in engine.plan().entries} == {"a": 1, "d": 3}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("document-a", {"order": "shortest-first"}),
        ("document-a", {"decode_limit": -1}),
        ("vllm-v1", {"decode_limit": "2"}),
        ("static", {"order": "priority"}),
        ("sarathi", {"decode_limit": 2}),
        ("orca", {"prefix_cache": True}),
    ],
)
def test_what_a_dialect_does_not_offer_is_refused(name: str, options: dict[str, object]) -> None:
    with pytest.raises(InputError):
        get_dialect(name, options)
