"""The KV pool: how many blocks each request holds, and how many are free.

Arithmetic only; blocks have no identity here. Blocks are taken just in time, for exactly the tokens planned; a
request may fill the slack of its own last block, never another's [decision 2].
"""

from typing import NamedTuple

from refsched.model import Limits, Request
from refsched.scheduling.live import Live
from refsched.units import UNLIMITED, Blocks, Tokens, ceil_div


class Hit(NamedTuple):
    """Name the blocks in which a request's first tokens were found, and count those that nobody holds now."""

    blocks: tuple[int, ...]
    idle: Blocks


NO_HIT = Hit((), 0)


class Pool:
    """Hold blocks of `block_size` tokens for requests; `num_blocks` None means without limit."""

    __slots__ = ("block_size", "free", "held", "lowest_free", "total")

    def __init__(self, block_size: Tokens, num_blocks: Blocks | None):
        self.block_size = block_size
        self.total: Blocks = UNLIMITED if num_blocks is None else num_blocks
        self.free: Blocks = self.total
        self.lowest_free: Blocks = self.total
        self.held: dict[str, Blocks] = {}

    def blocks_for(self, tokens: Tokens) -> Blocks:
        """Count the blocks that hold `tokens` tokens of one request."""
        return ceil_div(tokens, self.block_size)

    def find(self, live: Live) -> Hit:
        """Find nothing: this pool does not look at content."""
        return NO_HIT

    def adopt(self, live: Live, hit: Hit) -> None:
        """Let a request in; it holds nothing yet."""

    def grow(self, owner: str, tokens: Tokens) -> bool:
        """Make `owner` hold the blocks for its first `tokens` tokens, or change nothing and return False."""
        missing = -(-tokens // self.block_size) - self.held.get(owner, 0)
        if missing <= 0:
            return True
        if missing > self.free:
            return False
        self.held[owner] = self.held.get(owner, 0) + missing
        self.free -= missing
        self.lowest_free = min(self.lowest_free, self.free)
        return True

    def release(self, owner: str) -> None:
        """Give back everything that `owner` holds; holding nothing is fine."""
        self.free += self.held.pop(owner, 0)

    def slots_for(self, owner: str, computed: Tokens) -> Tokens:
        """Count the token slots `owner` could fill now: slack in its own last block, and every free block."""
        return (self.held.get(owner, 0) + self.free) * self.block_size - computed

    def peak(self) -> Blocks:
        """Count the most blocks that were ever held at once."""
        return self.total - self.lowest_free

    def is_conserved(self) -> bool:
        """Tell whether free and held blocks add up to the pool, none of them negative."""
        counts = (self.free, *self.held.values())
        return sum(counts) == self.total and min(counts) >= 0


STOP_MARGINS = {"reaches": 0, "exceeds": 1}  # tokens past max_len - 1 that a request may come to know


def get_end(limits: Limits, stop: str) -> Tokens | None:
    """Give the count of known tokens at which a request ends early, or None where nothing cuts it (choice `stop`)."""
    return None if limits.max_len is None or stop == "never" else limits.max_len + STOP_MARGINS[stop]


def get_longest(request: Request, limits: Limits, stop: str = "reaches") -> Tokens:
    """Count the tokens a request may know at its end: prompt and output, cut at max_len (never below one output)."""
    wanted, end = request.prompt + request.output, get_end(limits, stop)
    return wanted if end is None else max(min(wanted, end), request.prompt + 1)


def explain_impossible(request: Request, limits: Limits, stop: str = "reaches") -> str | None:
    """Say why `request` can never finish under `limits`, or return None if it can [decision 3].

    The last output token is never written to KV: a request that ends with n known tokens needs n - 1 slots.
    """
    end = get_end(limits, stop)
    if end is not None and request.prompt >= end:
        return f"the prompt has {request.prompt} tokens; max_len is {limits.max_len}, which must also hold an output"
    if limits.num_blocks is None:
        return None
    slots = get_longest(request, limits, stop) - 1
    needed = ceil_div(slots, limits.block_size)
    if needed > limits.num_blocks:
        return f"{slots} KV slots need {needed} blocks of {limits.block_size}; the pool has {limits.num_blocks}"
    return None
