"""What every policy works on: the live requests in their two queues, the pool, the limits as plain integers."""

from bisect import insort
from collections import deque

from refsched.dialect import Dialect
from refsched.model import Entry, Limits, Plan
from refsched.scheduling.kv import Pool
from refsched.scheduling.live import Live, get_rank
from refsched.scheduling.prefix import PrefixPool
from refsched.units import UNLIMITED, Blocks, Tokens


class Queues:
    """Hold waiting and running requests; a policy moves them, takes blocks for them and returns its plan."""

    def __init__(self, dialect: Dialect, limits: Limits):
        self.dialect = dialect
        self.limits = limits
        self.waiting: deque[Live] = deque()
        self.running: list[Live] = []
        make_pool = PrefixPool if dialect.prefix_cache else Pool
        self.pool: Pool | PrefixPool = make_pool(limits.block_size, limits.num_blocks)
        self.token_budget: Tokens = limits.token_budget or UNLIMITED
        self.max_seqs: int = limits.max_seqs or UNLIMITED
        self.chunk_cap: Tokens = limits.chunk_cap or UNLIMITED
        self.max_len: Tokens = limits.max_len or UNLIMITED
        self.decode_limit: int = dialect.decode_limit or UNLIMITED
        self.share_kept_free: Blocks = (limits.num_blocks or 0) * dialect.watermark_percent // 100

    def enqueue(self, live: Live) -> None:
        """Let a new request wait behind everyone it does not precede."""
        if self.dialect.policy == "priority":
            insort(self.waiting, live, key=get_rank)
        else:
            self.waiting.append(live)

    def preempt(self, victim: Live) -> None:
        """Take the blocks of `victim` and let it wait again: first in line, or by rank [recompute]."""
        self.running.remove(victim)
        self.pool.release(victim.id)
        victim.preemptions += 1
        if self.dialect.victim_reset == "at-once":
            victim.restart()
        if self.dialect.policy == "priority":
            insort(self.waiting, victim, key=get_rank)
        else:
            self.waiting.appendleft(victim)


class Draft:
    """Collect a plan while the budget lasts."""

    __slots__ = ("budget", "cached", "entries", "preempted", "rejected")

    def __init__(self, budget: Tokens):
        self.budget = budget
        self.entries: list[Entry] = []
        self.preempted: list[Live] = []
        self.rejected: list[str] = []
        self.cached: list[tuple[str, Tokens]] = []

    def add(self, live: Live, count: Tokens) -> None:
        """Plan the next `count` tokens of a request and charge them to the budget."""
        self.entries.append(Entry(live.id, live.computed, count))
        self.budget -= count

    def drop(self, id: str) -> None:
        """Take a request out of the plan, if it is in it, and give its tokens back to the budget."""
        for place, entry in enumerate(self.entries):
            if entry.id == id:
                self.budget += entry.count
                del self.entries[place]
                return

    def plan(self) -> Plan:
        """Return what was collected."""
        preempted = tuple(live.id for live in self.preempted)
        return Plan(tuple(self.entries), preempted, tuple(self.rejected), tuple(self.cached))
