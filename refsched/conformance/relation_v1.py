"""What vLLM V1 allows [SCH-ORD-1, SCH-SKIP-1, SCH-CAP-1, SCH-PRE-2..4, SCH-VIC-1, SCH-ADM-1..3].

Written from the rules in the READMEs beside the recorded plans, not from the policy. Running requests are explained in
admission order, each with what it lacks, up to cap, budget and max_len; a shortage of blocks must be met by the right
victims, one after another; only a plan without preemptions may admit, and only from the head of the waiting queue.
"""

from bisect import insort

from refsched.conformance.breach import count
from refsched.conformance.caching import MANY, CachingPool
from refsched.conformance.desk import Desk, Finding, Sheet, show_queue
from refsched.conformance.members import Found, Member
from refsched.dialect import Dialect
from refsched.model import Limits, Plan, Request, State
from refsched.units import UNLIMITED, Tokens


class VllmV1:
    """Judge plans of vLLM V1."""

    def __init__(self, dialect: Dialect, limits: Limits):
        self.dialect = dialect
        pool = CachingPool(limits.num_blocks or MANY, limits.block_size) if dialect.prefix_cache else None
        self.desk = Desk(dialect, limits, pool)
        self.desk.ceiling = self.desk.max_len

    def admit(self, request: Request) -> None:
        """Let a new request wait: at the end, or by rank under `priority`."""
        self.queue(self.desk.enter(request), at_end=True)

    def queue(self, member: Member, at_end: bool) -> None:
        """Let a request wait by rank under `priority`, else at the end or, preempted, in front [SCH-PRE-4]."""
        if self.dialect.policy == "priority":
            insort(self.desk.waiting, member, key=Member.rank)
        else:
            self.desk.waiting.insert(len(self.desk.waiting) if at_end else 0, member)

    def explain_refusal(self, request: Request) -> str | None:
        """Take whatever fits the pool."""
        return None

    def judge(self, sheet: Sheet, plan: Plan) -> Finding | None:
        """Explain the running requests first, then the admissions."""
        cap = self.get_cap()
        self.desk.arrange(self.desk.running)
        return self.judge_running(sheet, cap) or self.judge_waiting(sheet, cap)

    def get_cap(self) -> Tokens:
        """Give this iteration's chunk cap; a dialect may lift it for a request that is alone in the engine."""
        alone = len(self.desk.running) + len(self.desk.waiting) <= 1
        return UNLIMITED if alone and self.dialect.chunk_cap_lifted_when_alone else self.desk.cap

    def judge_queues(self, sheet: Sheet, state: State) -> Finding | None:
        """Hold the place where the preempted are told to wait against the dialect's [SCH-PRE-4]."""
        if not sheet.gone or state.waiting is None:
            return None
        waiting = tuple(member.id for member in self.desk.waiting)
        if state.waiting == waiting:
            return None
        return sheet.find(
            "SCH-PRE-4", f"leaves waiting {show_queue(state.waiting)}; the order is {show_queue(waiting)}"
        )

    # RUNNING

    def judge_running(self, sheet: Sheet, cap: Tokens) -> Finding | None:
        """Explain what each running request got, in admission order [SCH-ORD-1]."""
        held_back = [member for member in self.desk.running if member.is_decoding()][self.desk.decode_limit :]
        for member in [each for each in self.desk.running if each not in held_back]:
            granted = min(member.known - member.computed, cap, sheet.left, self.desk.max_len - 1 - member.computed)
            if sheet.left <= 0 or member.id in sheet.gone or granted <= 0:
                continue
            finding = self.judge_room(sheet, member, granted)
            if finding is None and member.id not in sheet.gone:
                finding = sheet.judge_share(member, granted, cap)
                self.serve(sheet, member, granted)
            if finding is not None:
                return finding
            if member.id in sheet.gone and self.dialect.self_victim == "ends-walk":
                break
        return (
            sheet.judge_rest(
                "SCH-ORD-1", self.desk.running, "the walk over running, in admission order, ends before it"
            )
            or sheet.judge_needless()
        )

    def judge_room(self, sheet: Sheet, member: Member, granted: Tokens) -> Finding | None:
        """Explain how a request gets blocks: from the free ones, or by the preemptions that this takes."""
        desk = self.desk
        while member.id not in sheet.gone and desk.lacks(member, member.computed + granted) > desk.free:
            victim = self.get_victim()
            if not sheet.due:
                return self.explain_missing(sheet, member, granted, victim)
            if sheet.due[0] != victim.id:
                return sheet.find(
                    "SCH-VIC-1", f"preempts {sheet.due[0]} for {member.id}; the one to preempt is {victim.id}"
                )
            sheet.gone[sheet.due.pop(0)] = victim
            sheet.unserve(victim.id)
            desk.preempt(victim)
            self.queue(victim, at_end=False)
        if member.id not in sheet.gone:
            desk.take(member, member.computed + granted)
        return None

    def serve(self, sheet: Sheet, member: Member, granted: Tokens) -> None:
        """Note that an entry is explained; blocks that it fills can be found from now on."""
        sheet.serve(member, granted)
        self.desk.pool.fill(member, member.computed + granted)

    def explain_missing(self, sheet: Sheet, member: Member, granted: Tokens, victim: Member) -> Finding:
        """Say what is wrong where blocks run out and nobody is preempted [KV-ROOM-1, SCH-PRE-3]."""
        lacks = count(self.desk.lacks(member, member.computed + granted), "block")
        short = f"{member.id} lacks {lacks} for {count(granted, 'token')}, {self.desk.free} are free"
        if member.id in sheet.entries:
            return sheet.find("KV-ROOM-1", f"plans {member.id}; {short}")
        return sheet.find("SCH-PRE-3", f"does not preempt {victim.id}; {short}")

    def get_victim(self) -> Member:
        """Name the one to preempt: the last admitted, the latest arrival, or under `priority` the worst [SCH-VIC-1]."""
        if self.dialect.policy == "priority":
            return max(self.desk.running, key=Member.rank)
        return (
            self.desk.running[-1]
            if self.dialect.order == "admission"
            else max(self.desk.running, key=lambda member: member.place)
        )

    # WAITING

    def judge_waiting(self, sheet: Sheet, cap: Tokens) -> Finding | None:
        """Explain who was admitted: from the head, while budget, seats and gate allow [SCH-ADM-1, SCH-ADM-2]."""
        desk = self.desk
        if sheet.gone:
            return sheet.judge_rest("SCH-ADM-1", desk.waiting, "an iteration that preempts admits nobody")
        while desk.waiting and sheet.left > 0 and len(desk.running) < desk.seats:
            head = desk.waiting[0]
            found = desk.pool.find(head)
            hit = len(found.blocks) * desk.limits.block_size
            granted = min(head.known - hit, cap, sheet.left)
            if not self.passes_gate(head, found, hit + granted):
                return sheet.judge_blocked(desk, head)
            finding = (
                sheet.judge_overtaken(desk, head)
                or judge_hit(sheet, head, hit)
                or sheet.judge_share(head, granted, cap, "SCH-ADM-4")
            )
            if finding is not None:
                return finding
            self.enter(sheet, head, found, granted)
        return sheet.judge_rest("SCH-ADM-2", desk.waiting, "no budget or no seat is left for it")

    def enter(self, sheet: Sheet, head: Member, found: Found, granted: Tokens) -> None:
        """Move an admitted request to the end of running, with what it found in the cache."""
        desk = self.desk
        desk.pool.adopt(head, found)
        head.computed = len(found.blocks) * desk.limits.block_size
        desk.take(head, head.computed + granted)
        self.serve(sheet, head, granted)
        desk.running.append(desk.waiting.pop(0))

    def passes_gate(self, head: Member, found: Found, end: Tokens) -> bool:
        """Tell whether a request may enter: its known tokens or its chunk fit, and the watermark stays free.

        A found block costs nothing while somebody holds it, and one free block otherwise.
        """
        gated = head.known if self.dialect.admission_gate == "whole-known-sequence" else end
        price = self.desk.blocks_for(gated) - len(found.blocks) + found.idle
        return price + self.desk.count_kept_free() <= self.desk.free


def judge_hit(sheet: Sheet, head: Member, hit: Tokens) -> Finding | None:
    """Hold a told cache hit against what a lookup finds [KV-HIT-2]."""
    told = sheet.cached.get(head.id, hit)
    if told == hit:
        return None
    return sheet.find("KV-HIT-2", f"takes {told} tokens of {head.id} from the cache; a lookup finds {hit}")
