"""The KV pool with a prefix cache: full blocks have a number, and whoever needs the same content shares them.

Source: plans recorded from the real KV cache manager of vLLM 0.29.0 and 0.33.0 [A18]. A block gets its number when
the plan that fills it is made, and keeps it after it is freed, until it is taken for new content. Free blocks
without a number are taken first, then the least recently freed; a request gives its blocks back tail first, so that
the tail of a chain goes before its head. A fresh pool is cold; one that has served requests is warm.
"""

from collections import OrderedDict
from dataclasses import dataclass
from fractions import Fraction

from refsched.scheduling.kv import NO_HIT, Hit
from refsched.scheduling.live import Live
from refsched.units import UNLIMITED, Blocks, Tokens, ceil_div

Name = int | tuple[int, int]  # the number its content was given, or a request's own (arrival, place)


@dataclass(slots=True)
class Reuse:
    """Count what admissions looked up and found; those that return after a preemption are counted apart."""

    tokens: Tokens = 0  # prompt tokens looked up
    cached: Tokens = 0  # tokens found
    blocks: Blocks = 0  # blocks looked up, the part of one at the end included
    cached_blocks: Blocks = 0
    tokens_again: Tokens = 0
    cached_again: Tokens = 0

    def share(self) -> Fraction | None:
        """Give the share of prompt tokens that was found, or None where nothing was looked up [A18]."""
        return Fraction(self.cached, self.tokens) if self.tokens else None

    def block_share(self) -> Fraction | None:
        """Give the share of blocks that was found, or None where nothing was looked up [A18]."""
        return Fraction(self.cached_blocks, self.blocks) if self.blocks else None


class Chain:
    """List the blocks of one request in order; the first `named` of them have their number."""

    __slots__ = ("blocks", "live", "named")

    def __init__(self, live: Live, blocks: list[int]):
        self.live = live
        self.blocks = blocks
        self.named = len(blocks)


class PrefixPool:
    """Hold blocks of `block_size` tokens for requests, found again by content; `num_blocks` None means no limit.

    A request is let in by `adopt`, grows, and is released. `held` counts a shared block for each of its holders.
    """

    def __init__(self, block_size: Tokens, num_blocks: Blocks | None):
        self.block_size = block_size
        self.total: Blocks = UNLIMITED if num_blocks is None else num_blocks
        self.lowest_free: Blocks = self.total
        self.held: dict[str, Blocks] = {}
        self.reuse = Reuse()
        self.blank: Blocks = self.total  # free blocks without a number: nothing tells them apart
        self.idle: OrderedDict[int, None] = OrderedDict()  # free blocks with a number, least recently freed first
        self.holders: dict[int, int] = {}  # for each block in use, by how many requests
        self.names: dict[int, Name] = {}
        self.copies: dict[Name, OrderedDict[int, None]] = {}  # blocks of equal content, first numbered first
        self.chains: dict[str, Chain] = {}
        self.created = 0

    @property
    def free(self) -> Blocks:
        """Count the blocks that nobody holds, numbered or not."""
        return self.blank + len(self.idle)

    def blocks_for(self, tokens: Tokens) -> Blocks:
        """Count the blocks that hold `tokens` tokens of one request."""
        return ceil_div(tokens, self.block_size)

    def find(self, live: Live) -> Hit:
        """Find the longest run of numbered blocks from the start; at least one known token is left to compute."""
        blocks: list[int] = []
        for place in range((live.known - 1) // self.block_size):
            copies = self.copies.get(get_name(live, place))
            if copies is None:
                break
            blocks.append(next(iter(copies)))
        return Hit(tuple(blocks), sum(block in self.idle for block in blocks)) if blocks else NO_HIT

    def adopt(self, live: Live, hit: Hit) -> None:
        """Let a request hold the blocks it found, before it takes new ones; a free one leaves the free list."""
        for block in hit.blocks:
            self.idle.pop(block, None)
            self.holders[block] = self.holders.get(block, 0) + 1
        self.chains[live.id] = Chain(live, list(hit.blocks))
        self.held[live.id] = len(hit.blocks)
        self.lowest_free = min(self.lowest_free, self.free)
        self.count_reuse(live, len(hit.blocks))

    def count_reuse(self, live: Live, found: Blocks) -> None:
        """Count one admission."""
        if live.preemptions:
            self.reuse.tokens_again += live.known
            self.reuse.cached_again += found * self.block_size
        else:
            self.reuse.tokens += live.known
            self.reuse.cached += found * self.block_size
            self.reuse.blocks += self.blocks_for(live.known)
            self.reuse.cached_blocks += found

    def grow(self, owner: str, tokens: Tokens) -> bool:
        """Make `owner` hold the blocks for its first `tokens` tokens and number the full ones, or return False."""
        chain = self.chains[owner]
        missing = self.blocks_for(tokens) - len(chain.blocks)
        if missing > self.free:
            return False
        if missing > 0:
            chain.blocks.extend(self.take() for _ in range(missing))
            self.held[owner] = len(chain.blocks)
            self.lowest_free = min(self.lowest_free, self.free)
        for place in range(chain.named, tokens // self.block_size):
            self.number(chain.blocks[place], get_name(chain.live, place))
            chain.named = place + 1
        return True

    def take(self) -> int:
        """Take a free block for new content; a numbered one loses its number."""
        if self.blank:
            self.blank -= 1
            self.created += 1
            block = self.created
        else:
            block, _ = self.idle.popitem(last=False)
            self.forget(block)
        self.holders[block] = 1
        return block

    def number(self, block: int, name: Name) -> None:
        """Let a full block be found by its content."""
        self.names[block] = name
        self.copies.setdefault(name, OrderedDict())[block] = None

    def forget(self, block: int) -> None:
        """Let a block be found no more; the next oldest copy serves."""
        name = self.names.pop(block)
        del self.copies[name][block]
        if not self.copies[name]:
            del self.copies[name]

    def release(self, owner: str) -> None:
        """Give back everything that `owner` holds, tail first; holding nothing is fine."""
        chain = self.chains.pop(owner, None)
        self.held.pop(owner, None)
        for block in reversed(chain.blocks if chain else ()):
            self.holders[block] -= 1
            if self.holders[block]:
                continue
            del self.holders[block]
            if block in self.names:
                self.idle[block] = None
            else:
                self.blank += 1

    def slots_for(self, owner: str, computed: Tokens) -> Tokens:
        """Count the token slots `owner` could fill now: slack in its own last block, and every free block."""
        return (self.held.get(owner, 0) + self.free) * self.block_size - computed

    def peak(self) -> Blocks:
        """Count the most blocks that were ever held at once."""
        return self.total - self.lowest_free

    def is_conserved(self) -> bool:
        """Tell whether free and distinct held blocks add up to the pool, each in one place, each holder counted."""
        chains = [chain.blocks for chain in self.chains.values()]
        counted = sum(self.holders.values()) == sum(map(len, chains)) == sum(self.held.values())
        distinct = {block for blocks in chains for block in blocks} == self.holders.keys()
        apart = self.idle.keys().isdisjoint(self.holders) and self.idle.keys() <= self.names.keys()
        return counted and distinct and apart and self.blank >= 0 and self.free + len(self.holders) == self.total


def get_name(live: Live, place: int) -> Name:
    """Name the content of a request's block: the number it was given, or one that nobody else has."""
    prefix, outputs = live.request.prefix, live.request.output_blocks
    if place < len(prefix):
        return prefix[place]
    if place < len(prefix) + len(outputs):
        return outputs[place - len(prefix)]
    return live.arrival, place
