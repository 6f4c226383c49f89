"""What document A's rule allows [SCH-DOC-1..3]: decode first, then chunks with what is left, and no preemption at all.

Active requests stand in the order in which their prefills completed. Where a slot or a token is missing, the request is
passed over and the walk goes on.
"""

from refsched.conformance.desk import Desk, Finding, Sheet
from refsched.conformance.members import Member
from refsched.dialect import Dialect
from refsched.model import Limits, Plan, Request, State
from refsched.units import Tokens


class DocumentA:
    """Judge plans of document A."""

    def __init__(self, dialect: Dialect, limits: Limits):
        self.desk = Desk(dialect, limits)

    def admit(self, request: Request) -> None:
        """Let a new request wait at the end."""
        self.desk.waiting.append(self.desk.enter(request))

    def explain_refusal(self, request: Request) -> str | None:
        """Take whatever fits the pool."""
        return None

    def judge(self, sheet: Sheet, plan: Plan) -> Finding | None:
        """Explain decodes, then chunks."""
        self.promote()
        self.desk.arrange(self.desk.running)
        self.desk.arrange(self.desk.waiting)
        return self.judge_active(sheet) or self.judge_waiting(sheet) or sheet.judge_needless()

    def judge_queues(self, sheet: Sheet, state: State) -> Finding | None:
        """Leave queues open: how an engine keeps them is its own business under this rule."""
        return None

    def promote(self) -> None:
        """Let requests that have an output be active, behind those that were before [decision 6]."""
        desk = self.desk
        desk.running += [member for member in desk.waiting if member.known > member.request.prompt]
        desk.waiting = [member for member in desk.waiting if member.known == member.request.prompt]

    def judge_active(self, sheet: Sheet) -> Finding | None:
        """Explain one token for each active request that finds budget and a slot [SCH-DOC-1]."""
        for member in self.desk.running:
            if (
                sheet.left == 0
                or len(sheet.served) == self.desk.decode_limit
                or self.desk.lacks(member, member.computed + 1) > self.desk.free
            ):
                continue
            if member.id not in sheet.entries:
                return sheet.find(
                    "SCH-DOC-1", f"leaves out {member.id}, which is active and has budget and a slot for a token"
                )
            self.desk.take(member, member.computed + 1)
            finding = sheet.judge_share(member, 1, 1, "SCH-DOC-1")
            sheet.serve(member, 1)
            if finding is not None:
                return finding
        return sheet.judge_rest("SCH-DOC-1", self.desk.running, "no budget, no slot or no decode is left for it")

    def judge_waiting(self, sheet: Sheet) -> Finding | None:
        """Explain a chunk for each waiting request that finds budget, slots and, if new, a place [SCH-DOC-2]."""
        desk = self.desk
        seats = desk.seats - len(desk.running) - sum(member.computed > 0 for member in desk.waiting)
        for member in desk.waiting:
            granted = self.get_chunk(sheet, member)
            if granted <= 0 or (member.computed == 0 and seats <= 0):
                continue
            finding = sheet.judge_share(member, granted, desk.cap, "SCH-DOC-2")
            if finding is not None:
                return finding
            seats -= member.computed == 0
            desk.take(member, member.computed + granted)
            sheet.serve(member, granted)
        return sheet.judge_rest("SCH-DOC-2", desk.waiting, "there is no budget, slot or place left for it")

    def get_chunk(self, sheet: Sheet, member: Member) -> Tokens:
        """Count what prompt, cap, budget and slots (its own slack and free blocks) leave for a waiting request."""
        desk = self.desk
        slots = (member.blocks + desk.free) * desk.limits.block_size - member.computed
        return min(member.request.prompt - member.computed, desk.cap, sheet.left, slots)
