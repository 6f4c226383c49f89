"""The books of the relation: queues in order and blocks, kept apart from the policies and their engine.

A relation advances them by the plan it observed. Blocks have no identity here; the prefix cache has its own desk.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from refsched.conformance.breach import count, shorten_list
from refsched.conformance.members import CountingPool, Member, Pool
from refsched.dialect import Dialect
from refsched.model import Limits, Plan, Request
from refsched.scheduling.kv import get_longest
from refsched.units import UNLIMITED, Blocks, Tokens, ceil_div


class Finding(NamedTuple):
    """Say which clause of the dialect a decision breaks, and why."""

    clause: str
    because: str


ORDERS: Mapping[str, Callable[[Member], object]] = {
    "arrival": lambda member: member.place,
    "priority": Member.rank,
    "waiting-time": lambda member: member.turn,
}


class Desk:
    """Keep who runs, who waits and who holds how many blocks."""

    def __init__(self, dialect: Dialect, limits: Limits, pool: Pool | None = None):
        self.dialect, self.limits = dialect, limits
        self.live: dict[str, Member] = {}
        self.running: list[Member] = []
        self.waiting: list[Member] = []
        self.submitted = 0
        self.number = -1  # of the iteration under way
        self.budget: Tokens = limits.token_budget or UNLIMITED
        self.seats: int = limits.max_seqs or UNLIMITED
        self.cap: Tokens = limits.chunk_cap or UNLIMITED
        self.max_len: Tokens = limits.max_len or UNLIMITED
        self.ceiling: Tokens = UNLIMITED  # no blocks are taken past it
        self.decode_limit: int = dialect.decode_limit or UNLIMITED
        self.pool: Pool = pool or CountingPool(limits.num_blocks or UNLIMITED, limits.block_size)

    @property
    def free(self) -> Blocks:
        """Count the free blocks."""
        return self.pool.free

    def blocks_for(self, tokens: Tokens) -> Blocks:
        """Count the blocks that hold the first `tokens` tokens of a request."""
        return ceil_div(min(tokens, self.ceiling), self.limits.block_size)

    def lacks(self, member: Member, tokens: Tokens) -> Blocks:
        """Count the blocks a request must still get to hold its first `tokens` tokens."""
        return max(0, self.blocks_for(tokens) - member.blocks)

    def take(self, member: Member, tokens: Tokens) -> None:
        """Give a request the blocks for its first `tokens` tokens."""
        self.pool.grow(member, min(tokens, self.ceiling))

    def count_kept_free(self) -> Blocks:
        """Count the blocks that an admission must leave free; the watermark counts only while something runs."""
        share = (self.limits.num_blocks or 0) * self.dialect.watermark_percent // 100
        return share + (self.dialect.watermark_blocks if self.running else 0)

    def arrange(self, queue: list[Member]) -> None:
        """Sort a queue as the dialect's order says; equals keep their places [A17]."""
        if self.dialect.order in ORDERS:
            queue.sort(key=ORDERS[self.dialect.order])  # type: ignore[arg-type]

    def enter(self, request: Request) -> Member:
        """Open the books for a request; where it waits is the rule's business."""
        self.submitted += 1
        wanted = get_longest(request, self.limits, self.dialect.stop)
        member = self.live[request.id] = Member(request, self.submitted, wanted, self.number)
        return member

    def leave(self, id: str) -> None:
        """Close the books of a request that ended."""
        member = self.live.pop(id, None)
        if member is not None:
            (self.running if member in self.running else self.waiting).remove(member)
            self.pool.give_back(member)

    def preempt(self, member: Member) -> None:
        """Take all blocks and computed tokens of a running request; where it waits is the rule's business."""
        self.running.remove(member)
        self.pool.give_back(member)
        if self.dialect.victim_reset == "at-once":
            member.restart()

    def apply(self, plan: Plan) -> None:
        """Count what was planned as computed [MOD-PLAN-1]."""
        for id, start, tokens in plan.entries:
            self.live[id].computed, self.live[id].turn = start + tokens, self.number


class Sheet:
    """Hold one observed plan while a relation walks through it."""

    def __init__(self, desk: Desk, plan: Plan):
        self.entries = {entry.id: entry.count for entry in plan.entries}
        self.due: list[str] = list(plan.preempted)  # preemptions that no rule has explained yet
        self.refused: list[str] = list(plan.rejected)  # refusals likewise
        self.cached = dict(plan.cached)
        self.gone: dict[str, Member] = {}  # preempted, in order
        self.left: Tokens = desk.budget
        self.is_full = sum(self.entries.values()) >= desk.budget
        self.served: dict[str, Tokens] = {}
        self.number = desk.number

    def serve(self, member: Member, tokens: Tokens) -> None:
        """Note that an entry is explained, and charge it."""
        self.served[member.id] = tokens
        self.left -= tokens

    def unserve(self, id: str) -> None:
        """Take a request out of the plan again; its tokens return to the budget."""
        self.left += self.served.pop(id, 0)

    def find(self, clause: str, because: str) -> Finding:
        """Make a finding of this iteration."""
        return Finding(clause, f"iteration {self.number} {because}")

    def judge_share(self, member: Member, granted: Tokens, cap: Tokens, order: str = "SCH-ORD-1") -> Finding | None:
        """Hold the tokens a request got against what the dialect grants it [SCH-SKIP-1, SCH-CAP-1, SCH-SHARE-1].

        Where it got too few and the whole budget is used, others were served out of turn: then `order` is broken.
        """
        got = self.entries.get(member.id, granted if member.id in self.due else 0)
        if got > cap:
            return self.find("SCH-CAP-1", f"gives {member.id} {count(got, 'token')}; the chunk cap is {cap}")
        if got == granted:
            return None
        if got < granted and self.is_full:
            return self.find(
                order,
                f"gives {member.id} {count(got, 'token')} and uses up the budget; {granted} are due to it first",
            )
        if got == 0:
            return self.find(
                "SCH-SKIP-1",
                f"leaves out {member.id}, which could get {granted} of the {show(self.left)} tokens left",
            )
        return self.find(
            "SCH-SHARE-1",
            f"gives {member.id} {count(got, 'token')}; what it lacks, the cap and the budget left allow {granted}",
        )

    def judge_rest(self, clause: str, members: Sequence[Member], why: str) -> Finding | None:
        """Find an entry of one of `members` that no rule explained."""
        for member in members:
            if member.id in self.entries and member.id not in self.served:
                return self.find(clause, f"gives {member.id} {count(self.entries[member.id], 'token')}; {why}")
        return None

    def judge_overtaken(self, desk: Desk, head: Member) -> Finding | None:
        """Find an admission past a head that could enter and did not [SCH-ADM-4]."""
        if head.id in self.entries:
            return None
        return self.judge_rest("SCH-ADM-4", desk.waiting, f"{head.id} waits before it, and could enter")

    def judge_blocked(self, desk: Desk, head: Member) -> Finding | None:
        """Find an admission of a head that does not pass the gate, or past it [SCH-ADM-3, SCH-ADM-4]."""
        return self.judge_rest(
            "SCH-ADM-3", [head], f"it does not pass the gate, {desk.free} blocks are free"
        ) or self.judge_rest("SCH-ADM-4", desk.waiting, f"{head.id} waits before it")

    def judge_needless(self) -> Finding | None:
        """Find a preemption that no shortage of blocks explains [SCH-PRE-2]."""
        if self.due:
            return self.find("SCH-PRE-2", f"preempts {self.due[0]}; under this dialect nothing calls for it")
        return None


def show(tokens: Tokens) -> str:
    """Show a number of tokens that may be without limit."""
    return "all" if tokens > UNLIMITED // 2 else str(tokens)


def show_queue(ids: Sequence[str]) -> str:
    """Show the ids of a queue in order."""
    return shorten_list(list(ids)) or "nobody"
