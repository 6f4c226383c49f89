"""What vLLM V1 allows [SCH-ORD-1, SCH-SKIP-1, SCH-CAP-1, SCH-PRE-2..4, SCH-VIC-1, SCH-ADM-1..3].

Written from the rules in the READMEs beside the recorded plans, not from the policy. Running requests are explained in admission order, each with
what it lacks, up to cap, budget and max_len; a shortage of blocks must be met by the right victims, one after another;
only a plan without preemptions may admit, and only from the head of the waiting queue.
"""

from bisect import insort

from refsched.conformance.desk import Desk, Finding, Member, Sheet, show_queue
from refsched.dialect import Dialect
from refsched.model import Limits, Plan, Request, State
from refsched.units import UNLIMITED, Tokens


class VllmV1:
    """Judge plans of vLLM V1."""

    def __init__(self, dialect: Dialect, limits: Limits):
        self.dialect = dialect
        self.desk = Desk(limits)

    def admit(self, request: Request) -> None:
        """Let a new request wait: at the end, or by rank under `priority`."""
        self.queue(self.desk.enter(request), at_end=True)

    def queue(self, member: Member, at_end: bool) -> None:
        """Let a request wait by rank under `priority`, else at the end or, preempted, in front [SCH-PRE-4]."""
        if self.dialect.policy == "priority":
            insort(self.desk.waiting, member, key=Member.rank)
        else:
            self.desk.waiting.insert(len(self.desk.waiting) if at_end else 0, member)

    def judge(self, sheet: Sheet, plan: Plan) -> Finding | None:
        """Explain the running requests first, then the admissions."""
        cap = self.get_cap()
        return self.judge_running(sheet, cap) or self.judge_waiting(sheet, cap)

    def get_cap(self) -> Tokens:
        """Give this iteration's chunk cap; a dialect may lift it for a request that is alone in the engine."""
        alone = len(self.desk.running) + len(self.desk.waiting) <= 1
        return UNLIMITED if alone and self.dialect.chunk_cap_lifted_when_alone else self.desk.cap

    def judge_queues(self, sheet: Sheet, state: State) -> Finding | None:
        """Hold the place where the preempted are told to wait against the dialect's [SCH-PRE-4]."""
        waiting = tuple(member.id for member in self.desk.waiting)
        if not sheet.gone or state.waiting is None or state.waiting == waiting:
            return None
        return sheet.find("SCH-PRE-4", f"leaves waiting {show_queue(state.waiting)}; the order is {show_queue(waiting)}")

    # RUNNING

    def judge_running(self, sheet: Sheet, cap: Tokens) -> Finding | None:
        """Explain what each running request got, in admission order."""
        for member in tuple(self.desk.running):
            granted = min(member.known - member.computed, cap, sheet.left, self.desk.max_len - 1 - member.computed)
            if sheet.left <= 0 or member.id in sheet.gone or granted <= 0:
                continue
            finding = self.judge_room(sheet, member, granted)
            if finding is None and member.id not in sheet.gone:
                finding = sheet.judge_share(member, granted, cap)
                sheet.serve(member, granted)
            if finding is not None:
                return finding
            if member.id in sheet.gone and self.dialect.self_victim == "ends-walk":
                break
        return sheet.judge_rest("SCH-ORD-1", self.desk.running, "the walk over running, in admission order, ends before it") or sheet.judge_needless()

    def judge_room(self, sheet: Sheet, member: Member, granted: Tokens) -> Finding | None:
        """Explain how a request gets blocks: from the free ones, or by the preemptions that this takes."""
        desk = self.desk
        while member.id not in sheet.gone and desk.lacks(member, member.computed + granted) > desk.free:
            victim = self.get_victim()
            if not sheet.due:
                return self.explain_missing(sheet, member, granted, victim)
            if sheet.due[0] != victim.id:
                return sheet.find("SCH-VIC-1", f"preempts {sheet.due[0]} for {member.id}; the one to preempt is {victim.id}")
            sheet.gone.add(sheet.due.pop(0))
            sheet.unserve(victim.id)
            desk.preempt(victim)
            self.queue(victim, at_end=False)
        if member.id not in sheet.gone:
            desk.take(member, desk.lacks(member, member.computed + granted))
        return None

    def explain_missing(self, sheet: Sheet, member: Member, granted: Tokens, victim: Member) -> Finding:
        """Say what is wrong where blocks run out and nobody is preempted."""
        short = f"{member.id} lacks {self.desk.lacks(member, member.computed + granted)} blocks for {granted} tokens, {self.desk.free} are free"
        if member.id in sheet.entries:
            return sheet.find("KV-ROOM-1", f"plans {member.id}; {short}")
        return sheet.find("SCH-PRE-3", f"does not preempt {victim.id}; {short}")

    def get_victim(self) -> Member:
        """Name the one to preempt: the last admitted, or the worst under `priority` [SCH-VIC-1]."""
        return max(self.desk.running, key=Member.rank) if self.dialect.policy == "priority" else self.desk.running[-1]

    # WAITING

    def judge_waiting(self, sheet: Sheet, cap: Tokens) -> Finding | None:
        """Explain who was admitted: from the head, while budget, seats and gate allow, and nobody in a preempting iteration."""
        desk = self.desk
        if sheet.gone:
            return sheet.judge_rest("SCH-ADM-1", desk.waiting, "an iteration that preempts admits nobody")
        while desk.waiting and sheet.left > 0 and len(desk.running) < desk.seats:
            head = desk.waiting[0]
            granted = min(head.known, cap, sheet.left)
            if not self.passes_gate(head, granted):
                return self.judge_blocked(sheet, head)
            finding = sheet.judge_share(head, granted, cap, "SCH-ADM-4")
            if finding is not None:
                return finding
            self.enter(sheet, head, granted)
        return sheet.judge_rest("SCH-ADM-2", desk.waiting, "no budget or no seat is left for it")

    def enter(self, sheet: Sheet, head: Member, granted: Tokens) -> None:
        """Move an admitted request to the end of running."""
        sheet.serve(head, granted)
        self.desk.take(head, self.desk.lacks(head, granted))
        self.desk.running.append(self.desk.waiting.pop(0))

    def judge_blocked(self, sheet: Sheet, head: Member) -> Finding | None:
        """Find an admission of, or past, a head that does not pass the gate [SCH-ADM-3, SCH-ADM-4]."""
        return sheet.judge_rest("SCH-ADM-3", [head], f"it does not pass the gate, {self.desk.free} blocks are free") or sheet.judge_rest(
            "SCH-ADM-4", self.desk.waiting, f"{head.id} waits before it"
        )

    def passes_gate(self, head: Member, granted: Tokens) -> bool:
        """Tell whether a request may enter: its known tokens or its chunk fit, and the watermark stays free."""
        gated = head.known if self.dialect.admission_gate == "whole-known-sequence" else granted
        watermark = self.dialect.watermark_blocks if self.desk.running else 0
        return self.desk.blocks_for(gated) + watermark <= self.desk.free
