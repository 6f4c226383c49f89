"""What request-level batching allows [SCH-STA-1, SCH-STA-2]: nobody joins a batch that has begun.

A member's blocks for all it will ever need are taken when the batch is formed; members are served in order of entry.
"""

from refsched.conformance.desk import Desk, Finding, Sheet
from refsched.dialect import Dialect
from refsched.model import Limits, Plan, Request, State


class Static:
    """Judge plans of request-level batching."""

    def __init__(self, dialect: Dialect, limits: Limits):
        self.desk = Desk(limits)

    def admit(self, request: Request) -> None:
        """Let a new request wait at the end."""
        self.desk.waiting.append(self.desk.enter(request))

    def judge(self, sheet: Sheet, plan: Plan) -> Finding | None:
        """Explain the batch and what each member got."""
        if not self.desk.running:
            self.form_batch()
        for member in self.desk.running:
            granted = min(member.known - member.computed, self.desk.cap, sheet.left)
            finding = sheet.judge_share(member, granted, self.desk.cap) if granted > 0 else None
            if finding is not None:
                return finding
            sheet.serve(member, max(granted, 0))
        return sheet.judge_rest("SCH-STA-1", self.desk.waiting, "it is no member of the batch under way") or sheet.judge_needless()

    def judge_queues(self, sheet: Sheet, state: State) -> Finding | None:
        """Leave queues open: how an engine keeps them is its own business under this rule."""
        return None

    def form_batch(self) -> None:
        """Let waiting requests be members while there are places and all the blocks each will need [SCH-STA-2]."""
        desk = self.desk
        while desk.waiting and len(desk.running) < desk.seats:
            needed = desk.blocks_for(desk.waiting[0].wanted - 1)
            if needed > desk.free:
                return
            desk.take(desk.waiting[0], needed)
            desk.running.append(desk.waiting.pop(0))
