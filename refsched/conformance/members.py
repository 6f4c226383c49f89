"""Live requests on the desk of a relation, and the pool that counts their blocks."""

from typing import NamedTuple, Protocol

from refsched.model import Request
from refsched.units import Blocks, Tokens, ceil_div


class Member:
    """Follow one live request; `goal` is what it knew when it last began to wait, up to which it prefills."""

    __slots__ = ("blocks", "chain", "computed", "goal", "id", "known", "place", "request", "turn", "wanted")

    def __init__(self, request: Request, place: int, wanted: Tokens, turn: int):
        self.request = request
        self.id = request.id
        self.place = place  # in the order of submission
        self.turn = turn  # the last iteration that planned it, or that was over when it came
        self.wanted = wanted  # known tokens at its end
        self.known: Tokens = request.prompt
        self.goal: Tokens = request.prompt
        self.computed: Tokens = 0
        self.blocks: Blocks = 0
        self.chain: list[int] = []  # which blocks, where they have an identity

    def rank(self) -> tuple[int, int]:
        """Order by priority, then by submission; the smaller is the better."""
        return self.request.priority, self.place

    def is_prefilling(self) -> bool:
        """Tell whether tokens that it knew when it began to wait are still to be computed."""
        return self.computed < self.goal

    def is_decoding(self) -> bool:
        """Tell whether it lacks one token only, past its prompt."""
        return self.known - self.computed == 1 and self.computed >= self.request.prompt

    def restart(self) -> None:
        """Begin again: everything known is to be prefilled."""
        self.computed, self.goal = 0, self.known


class Found(NamedTuple):
    """Hold what a lookup in the prefix cache finds: blocks, and how many of them nobody holds."""

    blocks: tuple[int, ...] = ()
    idle: Blocks = 0


class CountingPool:
    """Count blocks that have no identity."""

    def __init__(self, total: Blocks, size: Tokens):
        self.size = size
        self.free = total

    def find(self, member: Member) -> Found:
        """Find nothing: there is no cache."""
        return Found()

    def adopt(self, member: Member, found: Found) -> None:
        """Let a request hold what was found."""

    def grow(self, member: Member, tokens: Tokens) -> None:
        """Let a request hold the blocks for its first `tokens` tokens."""
        missing = max(0, ceil_div(tokens, self.size) - member.blocks)
        member.blocks += missing
        self.free -= missing

    def fill(self, member: Member, tokens: Tokens) -> None:
        """Note that the first `tokens` tokens of a request are computed."""

    def give_back(self, member: Member) -> None:
        """Return all blocks of a request."""
        self.free += member.blocks
        member.blocks = 0


class Pool(Protocol):
    """Be one of the two pools: with or without a prefix cache."""

    @property
    def free(self) -> Blocks: ...
    def find(self, member: Member) -> Found: ...
    def adopt(self, member: Member, found: Found) -> None: ...
    def grow(self, member: Member, tokens: Tokens) -> None: ...
    def fill(self, member: Member, tokens: Tokens) -> None: ...
    def give_back(self, member: Member) -> None: ...
