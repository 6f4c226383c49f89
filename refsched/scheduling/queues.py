"""What every policy works on: the live requests in their two queues, the pool, the limits as plain integers."""

from bisect import insort
from collections import deque

from refsched.dialect import Dialect
from refsched.model import Entry, Limits, Plan, Request
from refsched.scheduling.kv import Pool
from refsched.units import UNLIMITED, Tokens


class Live:
    """Follow one request inside the engine: tokens it knows (prompt and outputs so far) and tokens computed."""

    __slots__ = ("arrival", "computed", "id", "known", "request")

    def __init__(self, request: Request, arrival: int):
        self.request = request
        self.id = request.id
        self.arrival = arrival  # place in the order of submission
        self.known: Tokens = request.prompt
        self.computed: Tokens = 0


class Queues:
    """Hold waiting and running requests; a policy moves them, takes blocks for them and returns its plan."""

    def __init__(self, dialect: Dialect, limits: Limits):
        self.dialect = dialect
        self.waiting: deque[Live] = deque()
        self.running: list[Live] = []
        self.pool = Pool(limits.block_size, limits.num_blocks)
        self.token_budget: Tokens = limits.token_budget or UNLIMITED
        self.max_seqs: int = limits.max_seqs or UNLIMITED
        self.chunk_cap: Tokens = limits.chunk_cap or UNLIMITED
        self.max_len: Tokens = limits.max_len or UNLIMITED

    def enqueue(self, live: Live) -> None:
        """Let a new request wait behind everyone it does not precede."""
        if self.dialect.policy == "priority":
            insort(self.waiting, live, key=get_rank)
        else:
            self.waiting.append(live)

    def preempt(self, victim: Live) -> None:
        """Take everything computed from `victim` and let it wait again: first in line, or by rank [recompute]."""
        self.running.remove(victim)
        self.pool.release(victim.id)
        victim.computed = 0
        if self.dialect.policy == "priority":
            insort(self.waiting, victim, key=get_rank)
        else:
            self.waiting.appendleft(victim)


def get_rank(live: Live) -> tuple[int, int]:
    """Order requests by priority, then by submission; the smaller is the better."""
    return live.request.priority, live.arrival


class Draft:
    """Collect a plan while the budget lasts."""

    __slots__ = ("budget", "entries", "preempted")

    def __init__(self, budget: Tokens):
        self.budget = budget
        self.entries: list[Entry] = []
        self.preempted: list[str] = []

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
        return Plan(tuple(self.entries), tuple(self.preempted))
