"""A pool in which full blocks are found again by content, with an identity for each block [KV-HIT-2].

Written from the rules in the READMEs beside the recorded plans: a block gets its content when the plan that fills it is
made; lookups take the oldest copy; free blocks are taken from the front of a list to whose front empty blocks and to
whose back filled ones return, the tail of a request first.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Hashable

from refsched.conformance.members import Found, Member
from refsched.units import Blocks, Tokens, ceil_div

MANY: Blocks = 1 << 22  # stands for a pool without limit; blocks are made when they are first needed


class CachingPool:
    """Hold blocks by number; those never used yet are taken after all that lie free in front of them."""

    def __init__(self, total: Blocks, size: Tokens):
        self.size = size
        self.unused = iter(range(total))
        self.left = total  # how many were never used
        self.front: list[int] = []  # freed without content: the last in is the first out
        self.back: OrderedDict[int, None] = OrderedDict()  # freed with content, the least recently freed first
        self.holders: dict[int, int] = defaultdict(int)
        self.content: dict[int, Hashable] = {}
        self.copies: dict[Hashable, OrderedDict[int, None]] = defaultdict(OrderedDict)

    @property
    def free(self) -> Blocks:
        """Count the blocks that nobody holds, filled or not."""
        return self.left + len(self.front) + len(self.back)

    def find(self, member: Member) -> Found:
        """Find the longest run of known blocks from the start that leaves a token to compute."""
        blocks: list[int] = []
        for place in range((member.known - 1) // self.size):
            copies = self.copies.get(get_content(member, place))
            if not copies:
                break
            blocks.append(next(iter(copies)))
        return Found(tuple(blocks), sum(self.holders[block] == 0 for block in blocks))

    def adopt(self, member: Member, found: Found) -> None:
        """Let a request hold what was found; it cannot be taken from the free blocks any more."""
        for block in found.blocks:
            self.back.pop(block, None)
            self.holders[block] += 1
        member.chain = list(found.blocks)
        member.blocks = len(member.chain)

    def grow(self, member: Member, tokens: Tokens) -> None:
        """Let a request hold the blocks for its first `tokens` tokens."""
        while len(member.chain) < ceil_div(tokens, self.size):
            block = self.take_free()
            self.holders[block] = 1
            member.chain.append(block)
        member.blocks = len(member.chain)

    def take_free(self) -> int:
        """Take the first free block; if it had content, that is lost."""
        if self.front:
            return self.front.pop()
        if self.left:
            self.left -= 1
            return next(self.unused)
        block, _ = self.back.popitem(last=False)
        self.copies[self.content.pop(block)].pop(block)
        return block

    def fill(self, member: Member, tokens: Tokens) -> None:
        """Give content to the blocks that the first `tokens` tokens of a request fill."""
        for place in range(min(tokens // self.size, len(member.chain)) - 1, -1, -1):
            block = member.chain[place]
            if block in self.content:
                return
            content = self.content[block] = get_content(member, place)
            self.copies[content][block] = None

    def give_back(self, member: Member) -> None:
        """Return all blocks of a request, its tail first."""
        for block in reversed(member.chain):
            self.holders[block] -= 1
            if self.holders[block] == 0 and block in self.content:
                self.back[block] = None
            elif self.holders[block] == 0:
                self.front.append(block)
        member.chain, member.blocks = [], 0


def get_content(member: Member, place: int) -> Hashable:
    """Name the content of a block of a request: by the number given for it, or like no other."""
    numbers = (*member.request.prefix, *member.request.output_blocks)
    return numbers[place] if place < len(numbers) else (member.id, member.place, place)
