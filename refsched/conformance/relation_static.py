"""What request-level batching allows [SCH-STA-1]: nobody joins a batch that has begun.

A member's blocks for all it will ever need are taken when the batch is formed; members are served in order of entry.
"""

from refsched.conformance.desk import Desk, Finding, Sheet
from refsched.dialect import Dialect
from refsched.model import Limits, Plan, Request, State


class Static:
    """Judge plans of request-level batching."""

    def __init__(self, dialect: Dialect, limits: Limits):
        self.desk = Desk(dialect, limits)

    def admit(self, request: Request) -> None:
        """Let a new request wait at the end."""
        self.desk.waiting.append(self.desk.enter(request))

    def explain_refusal(self, request: Request) -> str | None:
        """Take whatever fits the pool."""
        return None

    def judge(self, sheet: Sheet, plan: Plan) -> Finding | None:
        """Explain the batch and what each member got [SCH-STA-1]."""
        if not self.desk.running:
            self.form_batch()
        for member in self.desk.running:
            granted = min(member.known - member.computed, self.desk.cap, sheet.left)
            finding = sheet.judge_share(member, granted, self.desk.cap) if granted > 0 else None
            if finding is not None:
                return finding
            sheet.serve(member, max(granted, 0))
        return (
            sheet.judge_rest("SCH-STA-1", self.desk.waiting, "it is no member of the batch under way")
            or sheet.judge_needless()
        )

    def judge_queues(self, sheet: Sheet, state: State) -> Finding | None:
        """Leave queues open: how an engine keeps them is its own business under this rule."""
        return None

    def form_batch(self) -> None:
        """Let waiting requests be members while there are places and all the blocks each will need."""
        desk = self.desk
        while desk.waiting and len(desk.running) < desk.seats:
            head = desk.waiting[0]
            if desk.blocks_for(head.wanted - 1) > desk.free:
                return
            desk.take(head, head.wanted - 1)
            desk.running.append(desk.waiting.pop(0))
