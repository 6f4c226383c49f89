"""The relation: is this decision allowed under this dialect? Stated apart from the policies, which it does not import.

Each rule has a judge that walks through an observed plan and explains every part of it, or names the clause that
forbids it; then the books follow the observed plan. What all rules share stands here.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from refsched.conformance.desk import Desk, Finding, Sheet
from refsched.conformance.relation_document_a import DocumentA
from refsched.conformance.relation_phased import PHASES, Phased
from refsched.conformance.relation_static import Static
from refsched.conformance.relation_v1 import VllmV1
from refsched.dialect import Dialect
from refsched.model import Limits, Plan, Request, State
from refsched.scheduling.kv import explain_impossible


class Rule(Protocol):
    """Judge one published rule on a desk."""

    desk: Desk

    def admit(self, request: Request) -> None:
        """Let a taken request wait where the rule lets it."""
        ...

    def explain_refusal(self, request: Request) -> str | None:
        """Say why this rule can never run a request that would fit the pool, or return None."""
        ...

    def judge(self, sheet: Sheet, plan: Plan) -> Finding | None:
        """Explain a plan, moving requests and blocks as it was observed, or name what forbids it."""
        ...

    def judge_queues(self, sheet: Sheet, state: State) -> Finding | None:
        """Judge the queues told with a plan, as far as the rule fixes them."""
        ...


RULES: Mapping[str, Callable[[Dialect, Limits], Rule]] = {
    "document-a": DocumentA,
    "static": Static,
    "vllm-v1": VllmV1,
    **dict.fromkeys(PHASES, Phased),
}


class Relation:
    """Judge a run under one dialect, event by event, up to the first finding."""

    def __init__(self, dialect: Dialect, limits: Limits):
        self.dialect, self.limits = dialect, limits
        self.rule = RULES[dialect.rule](dialect, limits)

    def submit(self, request: Request, refused: str | None) -> Finding | None:
        """Judge an intake: what can never finish is refused, where the dialect does so [SCH-INT-1, SCH-INT-2]."""
        impossible = explain_impossible(request, self.limits, self.dialect.stop) or self.rule.explain_refusal(request)
        if refused is None and impossible and self.dialect.impossible == "reject":
            return Finding("SCH-INT-1", f"{request.id} is taken and can never finish: {impossible}")
        if (
            refused is not None
            and (not impossible or self.dialect.impossible != "reject")
            and request.id not in self.rule.desk.live
        ):
            return Finding("SCH-INT-2", f"{request.id} is refused ({refused}), though this dialect takes it")
        if refused is None:
            self.rule.admit(request)
        return None

    def plan(self, plan: Plan, state: State) -> Finding | None:
        """Judge a plan, then the blocks told with it."""
        desk = self.rule.desk
        desk.number += 1
        sheet = Sheet(desk, plan)
        finding = self.rule.judge(sheet, plan)
        if finding is None and sheet.refused:
            finding = sheet.find(
                "SCH-INT-2", f"refuses {sheet.refused[0]} while planning, though this dialect takes it"
            )
        if finding is None:
            desk.apply(plan)
            finding = judge_blocks(desk, sheet, state) or self.rule.judge_queues(sheet, state)
        return finding

    def complete(self, emitted: Sequence[str], finished: Sequence[str]) -> None:
        """Let emitted tokens be known, and the finished go."""
        for id in emitted:
            self.rule.desk.live[id].known += 1
        for id in finished:
            self.rule.desk.leave(id)

    def cancel(self, id: str) -> None:
        """Let a cancelled request go."""
        self.rule.desk.leave(id)


def judge_blocks(desk: Desk, sheet: Sheet, state: State) -> Finding | None:
    """Hold told blocks against those the dialect takes [KV-TAKE-1]."""
    for id, told in (state.held or {}).items():
        if id in desk.live and told != desk.live[id].blocks:
            return sheet.find(
                "KV-TAKE-1", f"leaves {id} with {told} blocks; under this dialect it holds {desk.live[id].blocks}"
            )
    if state.free is not None and desk.limits.num_blocks is not None and state.free != desk.free:
        return sheet.find("KV-TAKE-1", f"leaves {state.free} blocks free; under this dialect {desk.free} are")
    return None


def make_relation(dialect: Dialect, limits: Limits) -> Relation | None:
    """Make the relation of a dialect, or return None where its rule has none."""
    return Relation(dialect, limits) if dialect.rule in RULES else None
