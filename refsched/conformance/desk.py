"""The books of the relation: queues in order and blocks, kept apart from the policies and their engine.

A relation advances them by the plan it observed. Blocks have no identity here; the prefix cache has its own desk.
"""

from collections.abc import Sequence
from typing import NamedTuple

from refsched.conformance.breach import count, shorten_list
from refsched.model import Limits, Plan, Request
from refsched.units import UNLIMITED, Blocks, Tokens, ceil_div


class Finding(NamedTuple):
    """Say which clause of the dialect a decision breaks, and why."""

    clause: str
    because: str


class Member:
    """Follow one live request; `cached` is what its last admission took from the prefix cache."""

    __slots__ = ("blocks", "cached", "computed", "id", "known", "place", "request", "wanted")

    def __init__(self, request: Request, place: int, wanted: Tokens):
        self.request = request
        self.id = request.id
        self.place = place
        self.wanted = wanted  # known tokens at its end
        self.known: Tokens = request.prompt
        self.computed: Tokens = 0
        self.cached: Tokens = 0
        self.blocks: Blocks = 0

    def rank(self) -> tuple[int, int]:
        """Order by priority, then by submission; the smaller is the better."""
        return self.request.priority, self.place


class Desk:
    """Keep who runs, who waits and who holds how many blocks."""

    def __init__(self, limits: Limits):
        self.limits = limits
        self.live: dict[str, Member] = {}
        self.running: list[Member] = []
        self.waiting: list[Member] = []
        self.submitted = 0
        self.budget: Tokens = limits.token_budget or UNLIMITED
        self.seats: int = limits.max_seqs or UNLIMITED
        self.cap: Tokens = limits.chunk_cap or UNLIMITED
        self.max_len: Tokens = limits.max_len or UNLIMITED
        self.total: Blocks = limits.num_blocks or UNLIMITED
        self.free: Blocks = self.total

    def blocks_for(self, tokens: Tokens) -> Blocks:
        """Count the blocks that hold the first `tokens` tokens of a request; none are held past max_len."""
        return ceil_div(min(tokens, self.max_len), self.limits.block_size)

    def lacks(self, member: Member, tokens: Tokens) -> Blocks:
        """Count the blocks a request must still get to hold its first `tokens` tokens."""
        return max(0, self.blocks_for(tokens) - member.blocks)

    def take(self, member: Member, blocks: Blocks) -> None:
        """Give free blocks to a request."""
        member.blocks += blocks
        self.free -= blocks

    def give_back(self, member: Member) -> None:
        """Return all blocks of a request."""
        self.free += member.blocks
        member.blocks = 0

    def enter(self, request: Request) -> Member:
        """Open the books for a request; where it waits is the relation's business."""
        wanted = max(min(request.prompt + request.output, self.max_len), request.prompt + 1)
        self.submitted += 1
        member = self.live[request.id] = Member(request, self.submitted, wanted)
        return member

    def leave(self, id: str) -> None:
        """Close the books of a request that ended."""
        member = self.live.pop(id, None)
        if member is not None:
            (self.running if member in self.running else self.waiting).remove(member)
            self.give_back(member)

    def preempt(self, member: Member) -> None:
        """Take all blocks and computed tokens of a running request; where it waits is the relation's business."""
        self.running.remove(member)
        self.give_back(member)
        member.computed = 0


class Sheet:
    """Hold one observed plan while a relation walks through it."""

    def __init__(self, desk: Desk, plan: Plan, number: int):
        self.entries = {entry.id: entry.count for entry in plan.entries}
        self.due: list[str] = list(plan.preempted)  # preemptions that no rule has explained yet
        self.gone: set[str] = set()
        self.left: Tokens = desk.budget
        self.is_full = sum(self.entries.values()) >= desk.budget
        self.served: dict[str, Tokens] = {}
        self.number = number

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
            return self.find(order, f"gives {member.id} {count(got, 'token')} and uses up the budget; {granted} are its due before those who come later")
        if got == 0:
            return self.find("SCH-SKIP-1", f"leaves out {member.id}, which could get {count(granted, 'token')}; {show(self.left)} of the budget are left")
        return self.find("SCH-SHARE-1", f"gives {member.id} {count(got, 'token')}; what it lacks, the cap and the budget left allow {granted}")

    def judge_rest(self, clause: str, members: Sequence[Member], why: str) -> Finding | None:
        """Find an entry of one of `members` that no rule explained."""
        for member in members:
            if member.id in self.entries and member.id not in self.served:
                return self.find(clause, f"gives {member.id} {count(self.entries[member.id], 'token')}; {why}")
        return None

    def judge_needless(self) -> Finding | None:
        """Find a preemption that no shortage of blocks explains [SCH-PRE-2]."""
        if self.due:
            return self.find("SCH-PRE-2", f"preempts {self.due[0]}, though no request is short of blocks")
        return None


def show(tokens: Tokens) -> str:
    """Show a number of tokens that may be without limit."""
    return "all" if tokens > UNLIMITED // 2 else str(tokens)


def show_queue(ids: Sequence[str]) -> str:
    """Show the ids of a queue in order."""
    return shorten_list(list(ids)) or "nobody"


def apply_entries(desk: Desk, plan: Plan) -> None:
    """Count what was planned as computed [MOD-PLAN-1]."""
    for id, start, tokens in plan.entries:
        desk.live[id].computed = start + tokens
