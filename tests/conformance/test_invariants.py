"""Corners of the policy-free clauses that the witnesses leave out, each with its neighbour that must pass."""

import pytest

from refsched.conformance.witness import judge_page

Events = list[list]


def find_broken(events: Events, limits: dict | None = None, dialect: dict | None = None) -> dict[str, str]:
    """Judge a short trace that is cut off; give the sentence of each broken clause."""
    page = {"limits": {"token_budget": 8, "max_seqs": 4} | (limits or {}), "events": events, "open": True}
    verdict = judge_page(page | ({"dialect": dialect} if dialect else {}))
    return {breach.clause: breach.because for breach in verdict.broken}


def submit(*ids: str, prompt: int = 2, output: int = 3) -> Events:
    return [["submit", id, prompt, output] for id in ids]


def plan(*entries: list, preempted: tuple[str, ...] = (), free: int | None = None, **more: object) -> list:
    return ["plan", list(entries), list(preempted), free, *([more] if more else [])]


def complete(*emitted: str, finished: tuple[str, ...] = (), free: int | None = None) -> list:
    return ["complete", list(emitted), list(finished), free]


# BUDGET


UNCOUNTED = {"name": "sarathi-serve-vllm"}
STARTED = [
    *submit("a", "b", "c", prompt=1),
    plan(["a", 0, 1], ["b", 0, 1]),
    complete("a", "b"),
    plan(["c", 0, 1]),
    complete("c"),
]
DECODES = plan(["a", 1, 1], ["b", 1, 1], ["c", 1, 1])


def test_that_decodes_may_exceed_a_budget_that_does_not_count_them_and_nothing_else_may() -> None:
    limits = {"token_budget": 2}
    assert "SCH-BUD-1" in find_broken([*STARTED, DECODES], limits)
    assert "SCH-BUD-1" not in find_broken([*STARTED, DECODES], limits, UNCOUNTED)
    assert "SCH-BUD-1" in find_broken(
        [*submit("a", "b", "c", prompt=1), plan(["a", 0, 1], ["b", 0, 1], ["c", 0, 1])], limits, UNCOUNTED
    )
    assert "SCH-BUD-1" in find_broken([*STARTED, plan(["a", 1, 3])], limits, UNCOUNTED)
    assert "SCH-BUD-1" in find_broken([*STARTED, plan(["a", 1, 1], ["b", 1, 1], ["x", 1, 1])], limits, UNCOUNTED)


def test_that_limits_of_none_bind_nothing() -> None:
    assert (
        find_broken(
            [*submit("a", prompt=99), plan(["a", 0, 99], running=["a"], waiting=[])],
            {"token_budget": None, "max_seqs": None},
        )
        == {}
    )


# WHICH TOKENS


def test_that_a_victim_may_come_back_at_a_cache_hit_and_nowhere_else() -> None:
    start = [["submit", "a", 6, 3, {"prefix": [1, 2, 3]}], plan(["a", 0, 4], cached={"a": 0}), complete()]
    back = [plan(preempted=("a",), cached={}), complete()]
    assert find_broken([*start, *back, plan(["a", 4, 2], cached={"a": 4})], {"block_size": 2}) == {}
    assert "SCH-RNG-1" in find_broken([*start, *back, plan(["a", 4, 2], cached={"a": 2})], {"block_size": 2})
    assert "SCH-RNG-2" in find_broken([*start, *back, plan(["a", 0, 2], cached={"a": 2})], {"block_size": 2})
    assert "KV-HIT-1" in find_broken([*start, plan(["a", 4, 2], cached={"a": 4})], {"block_size": 2})
    assert "KV-HIT-1" in find_broken([*start, plan(["a", 4, 2], cached={"b": 0})], {"block_size": 2})
    assert "KV-HIT-1" in find_broken([*start, *back, plan(["a", 0, 2], cached={"a": -1})], {"block_size": 2})


@pytest.mark.parametrize("start", [0, 2])
def test_that_a_victim_planned_again_breaks_one_clause_only(start: int) -> None:
    events = [*submit("a"), plan(["a", 0, 2]), complete("a"), plan(["a", start, 3 - start], preempted=("a",))]
    assert set(find_broken(events)) == {"SCH-PRE-1"}


def test_that_a_victim_planned_from_the_middle_breaks_two() -> None:
    events = [*submit("a", prompt=4), plan(["a", 0, 3]), complete(), plan(["a", 1, 3], preempted=("a",))]
    assert {"SCH-PRE-1", "SCH-RNG-1"} <= set(find_broken(events))


# QUEUES


def test_that_queues_are_explained_by_what_is_wrong_with_them() -> None:
    def told(running: list[str], waiting: list[str]) -> str | None:
        return find_broken([*submit("a", "b"), plan(["a", 0, 2], running=running, waiting=waiting)]).get("SCH-QUE-1")

    assert told(["a"], ["b"]) is None
    assert told(["a", "b"], []) is None
    assert told(["a"], ["b", "b"]) == "iteration 0 leaves b in its queues 2 times"
    assert told(["a"], ["b", "x"]) == "iteration 0 leaves x in a queue; it is not live"
    assert told(["a"], []) == "iteration 0 leaves b in no queue"
    assert told([], []) == "iteration 0 leaves a, b in no queue"


def test_that_a_refused_request_leaves_the_queues_with_the_plan_that_refuses_it() -> None:
    assert "SCH-QUE-1" not in find_broken(
        [*submit("a", "b"), plan(["a", 0, 2], rejected=["b"], running=["a"], waiting=[])]
    )
    assert "SCH-QUE-1" in find_broken(
        [*submit("a", "b"), plan(["a", 0, 2], rejected=["b"], running=["a"], waiting=["b"])]
    )


# BLOCKS


POOL = {"block_size": 2, "num_blocks": 4}


def test_that_blocks_of_requests_which_sit_out_are_counted_still() -> None:
    begin = [
        *submit("a", "b"),
        plan(["a", 0, 2], ["b", 0, 2], free=2, held={"a": 1, "b": 1}),
        complete("a", "b", free=2),
    ]
    assert "KV-CONS-1" not in find_broken([*begin, plan(["a", 2, 1], free=1, held={"a": 2})], POOL)
    assert "KV-CONS-1" in find_broken([*begin, plan(["a", 2, 1], free=2, held={"a": 2})], POOL)
    assert "KV-CONS-1" not in find_broken([*begin, plan(["a", 2, 1], preempted=("b",), free=2, held={"a": 2})], POOL)


def test_that_no_more_blocks_come_free_than_the_finished_held() -> None:
    events = [*submit("a", output=1), *submit("b"), plan(["a", 0, 2], ["b", 0, 2], free=2, held={"a": 1, "b": 1})]
    assert find_broken([*events, complete("a", "b", finished=("a",), free=3)], POOL) == {}
    assert "KV-CONS-1" in find_broken([*events, complete("a", "b", finished=("a",), free=4)], POOL)
    assert "KV-FREE-1" in find_broken([*events, complete("a", "b", finished=("a",), free=2)], POOL)
    assert find_broken([*events, ["cancel", "b"], complete("a", finished=("a",), free=4)], POOL) == {}


def test_that_slots_past_max_len_are_needed_only_by_entries_that_begin_there() -> None:
    limits = POOL | {"max_len": 4}
    assert "KV-HOLD-1" not in find_broken([*submit("a", prompt=6), plan(["a", 0, 6], free=2, held={"a": 2})], limits)
    assert "KV-HOLD-1" in find_broken([*submit("a", prompt=6), plan(["a", 0, 6], free=3, held={"a": 1})], limits)
    later = [*submit("a", prompt=6), plan(["a", 0, 4], free=2, held={"a": 2}), complete()]
    assert "KV-HOLD-1" in find_broken([*later, plan(["a", 4, 2], free=2, held={"a": 2})], limits)
    assert "KV-HOLD-1" not in find_broken([*later, plan(["a", 4, 2], free=1, held={"a": 3})], limits)


def test_that_negative_counts_are_found() -> None:
    assert (
        "leaves a with -1 blocks"
        in find_broken([*submit("a"), plan(["a", 0, 2], free=4, held={"a": -1})], POOL)["KV-CONS-1"]
    )
    assert (
        "leaves -1 blocks free"
        in find_broken([*submit("a"), plan(["a", 0, 2], free=-1, held={"a": 1})], POOL)["KV-CONS-1"]
    )


def test_that_blocks_may_grow_and_shrink_only_by_a_preemption() -> None:
    begin = [*submit("a", prompt=3), plan(["a", 0, 3], free=2, held={"a": 2}), complete("a", free=2)]
    assert find_broken([*begin, plan(["a", 3, 1], free=2, held={"a": 2})], POOL) == {}
    assert "KV-KEEP-1" in find_broken([*begin, plan(["a", 3, 1], free=3, held={"a": 1})], POOL)
    assert "KV-KEEP-1" not in find_broken([*begin, plan(preempted=("a",), free=4, held={"a": 0})], POOL)


# OUTPUTS


def test_that_an_end_at_max_len_is_right_and_one_before_it_is_not() -> None:
    events = [*submit("a", prompt=2, output=9), plan(["a", 0, 2]), complete("a"), plan(["a", 2, 1])]
    assert find_broken([*events, complete("a", finished=("a",))], {"max_len": 4}) == {}
    assert find_broken([*events, complete("a")], {"max_len": 4}) == {}
    assert "SCH-OUT-3" in find_broken([*events, complete("a", finished=("a",))], {"max_len": 5})


def test_that_ends_are_named_by_what_is_wrong_with_them() -> None:
    events = [*submit("a", output=1), *submit("b"), plan(["a", 0, 2], ["b", 0, 1])]
    assert find_broken([*events, complete("a", finished=("a",))]) == {}
    assert "ends x, which is not live" in find_broken([*events, complete("a", finished=("a", "x"))])["SCH-OUT-3"]
    assert "ends a, and ends it again" in find_broken([*events, complete("a", finished=("a", "a"))])["SCH-OUT-3"]
    assert "ends b at 0 outputs" in find_broken([*events, complete("a", finished=("a", "b"))])["SCH-OUT-3"]
    assert "goes on with a at 1 output; it asked for 1" in find_broken([*events, complete("a")])["SCH-OUT-3"]
    early = find_broken([*events, complete("a", "b", finished=("a",))])
    assert "of which 1 of 2 known tokens are computed" in early["SCH-OUT-1"]
    assert "which is not live" in find_broken([*events, complete("a", "x", finished=("a",))])["SCH-OUT-1"]
    waits = [*events, complete("a", finished=("a",)), *submit("c"), plan(["b", 1, 1]), complete("b", "c")]
    assert "emits a token of c, which it did not plan" in find_broken(waits)["SCH-OUT-1"]
    assert "emits 2 tokens of it" in find_broken([*events, complete("a", "a", finished=("a",))])["SCH-OUT-2"]


def test_that_only_started_requests_are_missed_when_they_are_refused() -> None:
    assert "SCH-OUT-3" not in find_broken([*submit("a"), plan(rejected=["a"])])
    assert "SCH-OUT-3" in find_broken([*submit("a"), plan(["a", 0, 2]), complete("a"), plan(rejected=["a"])])
    assert "SCH-ENT-3" in find_broken([*submit("a"), plan(rejected=["x"])])
    assert "SCH-PRE-1" in find_broken([*submit("a"), plan(["a", 0, 2], rejected=["a"])])
    assert "SCH-ENT-2" in find_broken([*submit("a"), plan(["a", 0, 2]), complete("a"), plan(preempted=("a", "a"))])


@pytest.mark.parametrize(
    ("claim", "agrees"),
    [({"emitted": ["a"]}, True), ({"emitted": []}, False), ({"finished": ["a"]}, True), ({"finished": []}, False)],
)
def test_that_each_claim_is_held_against_the_driver(claim: dict, agrees: bool) -> None:
    result = [*complete("a", finished=("a",)), claim]
    assert ("SCH-OUT-4" not in find_broken([*submit("a", output=1), plan(["a", 0, 2]), result])) == agrees
