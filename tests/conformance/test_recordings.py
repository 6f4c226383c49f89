"""What real schedulers did: exact where the rule is known, safe where nothing is wrong, each stated defect named."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from refsched.conformance.verdict import Verdict
from tests.conformance.judging import judge_file, read_outcome
from tests.shared import SHARED, needs_shared

PLANS = SHARED / "data" / "plans"
FILES = sorted(PLANS.glob("*/*.jsonl"))
NAMED = {  # what a header states, and the clause that names it
    "wrong_output_count": {"SCH-OUT-3"},
    "preempted_and_planned": {"SCH-PRE-1"},
    "start_not_contiguous": {"SCH-RNG-1"},
    "kv_overflow": {"KV-HOLD-1"},
    "leaked_blocks": {"KV-FREE-1", "KV-DRAIN-1"},
}
LIVENESS = {"done": "live", "stuck": "stuck", "livelock": "livelock", "error": "unknown"}
BUDGET_FREE = "vidur-lightllm/decodes_over_budget"  # its budget does not bind decodes, and its hello does not say so
KNOWN_RULES = ("vllm-", "sarathi-serve-", "vidur-orca")


def get_id(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def find_mistakes(path: Path, verdict: Verdict) -> Iterator[str]:
    """Compare a verdict with what the header states."""
    outcome, broken = read_outcome(path), {breach.clause for breach in verdict.broken}
    stated = [name for name in NAMED if name in outcome]
    for name in stated:
        if not NAMED[name] <= broken:
            yield f"{name} is not named by {sorted(NAMED[name])}: {sorted(broken)}"
    if outcome["kind"] == "error" and "MOD-ANS-1" not in broken:
        yield "its error is not named"
    if verdict.liveness.kind != LIVENESS[str(outcome["kind"])]:
        yield f"it is {outcome['kind']}, and judged {verdict.liveness.kind}"
    if (
        outcome["kind"] in ("stuck", "livelock")
        and not verdict.liveness.waived
        and not broken & {"LIV-END-1", "LIV-IMP-1"}
    ):
        yield "its end is not named"
    defective = bool(stated) or outcome["kind"] == "error" or get_id(path) == BUDGET_FREE
    wanted = "none" if defective else "exact" if path.parent.name.startswith(KNOWN_RULES) else "safe"
    if verdict.relation != wanted:
        yield f"it should be {wanted} and is {verdict.relation}: {[breach.sentence() for breach in verdict.broken]}"


@needs_shared("data", "plans")
def test_that_every_recording_is_judged_as_its_header_says() -> None:
    mistakes = {get_id(path): found for path in FILES if (found := list(find_mistakes(path, judge_file(path))))}
    assert mistakes == {}
    assert len(FILES) >= 763


@needs_shared("data", "plans")
def test_that_a_budget_which_does_not_bind_decodes_is_noticed() -> None:
    verdict = judge_file(PLANS / f"{BUDGET_FREE}.jsonl")
    assert [breach.clause for breach in verdict.broken] == ["SCH-BUD-1", "LIV-END-1"]


@needs_shared("data", "plans")
def test_that_runs_which_stop_though_all_would_fit_break_liveness() -> None:
    for path in FILES:
        outcome = read_outcome(path)
        if outcome["kind"] == "stuck" and path.stem in (
            "alone_fills_pool",
            "pool_under_one_slot",
            "budget_blocks_head",
            "one_small_stuck",
        ):
            verdict = judge_file(path)
            assert not verdict.conforms()
            assert "LIV-END-1" in {breach.clause for breach in verdict.broken} or verdict.liveness.waived


@needs_shared("data", "plans")
@pytest.mark.parametrize("name", ["alone_fills_pool", "self_preempted_alone"])
def test_that_empty_plans_beside_work_are_remarked_on(name: str) -> None:
    for path in PLANS.glob(f"*/{name}.jsonl"):
        remarks = {breach.clause for breach in judge_file(path).remarks}
        assert ("LIV-IDLE-1" in remarks) == ("empty_plans" in read_outcome(path))


@needs_shared("data", "plans")
@pytest.mark.parametrize("name", ["document-a", "static", "sarathi", "prefill-first", "no-evict", "orca"])
def test_that_a_foreign_dialect_gives_a_weaker_verdict_with_a_clause(name: str) -> None:
    verdict = judge_file(PLANS / "vllm-0.33" / "random_05.jsonl", name)
    assert verdict.relation == "safe" and not verdict.conforms()
    assert len(verdict.broken) == 1 and verdict.broken[0].clause.startswith(("SCH-", "KV-"))


def make_table() -> str:
    """Count, for each engine, the verdicts on its recordings and the clauses they break."""
    counts: Counter[tuple[str, str, str, str]] = Counter()
    for path in FILES:
        verdict = judge_file(path)
        clauses = ", ".join(sorted({breach.clause for breach in verdict.broken})) or "–"
        counts[path.parent.name, verdict.relation, verdict.liveness.kind, clauses] += 1
    rows = [f"| {' | '.join(key)} | {number} |" for key, number in sorted(counts.items())]
    return "\n".join(["| engine | verdict | liveness | broken | files |", "| --- | --- | --- | --- | --- |", *rows])


if __name__ == "__main__":
    print(make_table())
