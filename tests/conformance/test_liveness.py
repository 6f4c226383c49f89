"""Live, stuck, livelock, unknown: how a trace ends."""

import pytest

from refsched.conformance.witness import Page, judge_page

LIMITS = {"token_budget": 2, "max_seqs": 2, "num_blocks": 4}
SUBMIT = ["submit", "r0", 4, 1]


def half(told: bool) -> list[list]:
    """Compute half of the prompt."""
    return [["plan", [["r0", 0, 2]], [], None, *queues(told, ["r0"], [])], ["complete", [], [], None]]


def back(told: bool) -> list[list]:
    """Preempt it, and plan nothing."""
    return [["plan", [], ["r0"], None, *queues(told, [], ["r0"])], ["complete", [], [], None]]


def queues(told: bool, running: list[str], waiting: list[str]) -> list[dict]:
    return [{"running": running, "waiting": waiting}] if told else []


def page(*events: list, **more: object) -> Page:
    return {"limits": LIMITS, "events": list(events), **more}


@pytest.mark.parametrize(
    ("told", "rounds", "kind"),
    [(True, 1, "unknown"), (True, 2, "livelock"), (False, 2, "unknown"), (False, 3, "livelock")],
)
def test_that_a_circle_is_seen_when_it_closes(told: bool, rounds: int, kind: str) -> None:
    verdict = judge_page(page(SUBMIT, *(half(told) + back(told)) * rounds))
    assert verdict.liveness.kind == kind
    assert ("LIV-LOOP-1" in [breach.clause for breach in verdict.broken]) == (kind == "livelock")
    assert verdict.conforms() == (kind == "unknown")
    assert verdict.liveness.period == (2 if kind == "livelock" else None)


def test_that_an_output_or_an_arrival_in_between_breaks_the_circle() -> None:
    rounds = [*half(True), *back(True)]
    assert judge_page(page(SUBMIT, *rounds, ["submit", "r1", 1, 1], *rounds)).liveness.kind == "unknown"
    done = [
        ["plan", [["r0", 0, 2]], [], None],
        ["complete", [], [], None],
        ["plan", [["r0", 2, 2]], [], None],
        ["complete", ["r0"], ["r0"], None],
    ]
    assert judge_page(page(SUBMIT, *rounds, *rounds, *done)).liveness.kind == "live"


def test_that_chunks_without_outputs_are_no_circle() -> None:
    chunks = [
        event for start in range(3) for event in (["plan", [["r0", start, 1]], [], None], ["complete", [], [], None])
    ]
    assert judge_page(page(SUBMIT, *chunks)).liveness.kind == "unknown"


EMPTY = [["plan", [], [], None], ["complete", [], [], None]]


def test_that_stuck_needs_an_empty_plan_at_the_end_of_a_closed_trace() -> None:
    assert judge_page(page(SUBMIT, *EMPTY)).liveness.kind == "stuck"
    assert judge_page(page(SUBMIT, *EMPTY, open=True)).liveness.kind == "unknown"
    assert judge_page(page(SUBMIT, EMPTY[0])).liveness.kind == "unknown"
    assert judge_page(page(SUBMIT, *EMPTY, ["submit", "r1", 1, 1])).liveness.kind == "unknown"
    assert judge_page(page(*EMPTY)).liveness.kind == "live"


def test_that_the_impossible_are_blamed_unless_the_dialect_admits_them() -> None:
    big = ["submit", "r0", 9, 1]
    blamed = judge_page(page(big, *EMPTY))
    assert [breach.clause for breach in blamed.broken] == ["LIV-IMP-1"] and "9 KV slots need 9 blocks" in blamed.broken[
        0
    ].because
    waived = judge_page(page(big, *EMPTY, dialect={"name": "vllm-v1", "impossible": "admit"}))
    assert (waived.relation, waived.liveness.kind, waived.liveness.waived, waived.broken) == (
        "exact",
        "stuck",
        True,
        (),
    )
    assert waived.conforms()
    feasible = judge_page(page(SUBMIT, *EMPTY, dialect={"name": "document-a", "impossible": "admit"}))
    assert not feasible.liveness.waived


def test_that_remarks_do_not_change_the_verdict() -> None:
    idle = judge_page(page(SUBMIT, ["plan", [], [], 4], ["complete", [], [], 4], *half(False), open=True))
    assert [remark.clause for remark in idle.remarks] == ["LIV-IDLE-1"] and idle.relation == "safe"
    oldest = judge_page(page(SUBMIT, *half(True), *back(True), open=True))
    assert [remark.clause for remark in oldest.remarks] == ["LIV-OLD-1"] and oldest.relation == "safe"
    young = page(SUBMIT, ["submit", "r1", 1, 2], *half(False), ["plan", [["r0", 2, 2]], ["r1"], None], open=True)
    assert judge_page(young).remarks == ()
