"""The members of a cohort, kept as counts: nothing here walks them in an iteration.

A member's known tokens follow from the tick and known tokens at which it joined, and so does the tick in whose
iteration it takes a new block: the first token of a block is computed when its computed tokens fill whole blocks.
"""

from collections.abc import Iterator
from heapq import heappop, heappush

from refsched.scheduling.live import Live
from refsched.units import Blocks, Tokens


class Members:
    """Count requests that all get one token in every tick."""

    def __init__(self, block_size: Tokens):
        self.block_size = block_size
        self.tick = 0  # iterations that every member took part in
        self.context: Tokens = 0  # tokens computed, over all members
        self.joined: dict[Live, tuple[int, Tokens]] = {}  # tick and known tokens at which each member joined
        self.ends: list[tuple[int, int, Live]] = []  # a heap: the tick at whose end a member ends, its arrival
        self.growers: list[int] = [0] * block_size  # members that take a block in ticks of this residue

    def __len__(self) -> int:
        return len(self.joined)

    def clear(self) -> None:
        """Forget all members; the tick goes on."""
        self.context, self.joined, self.ends, self.growers = 0, {}, [], [0] * self.block_size

    def join(self, live: Live, longest: Tokens) -> None:
        """Add a request that lacks one of its known tokens, and ends when it knows `longest`."""
        self.context += live.computed
        self.joined[live] = self.tick, live.known
        heappush(self.ends, (self.tick + longest - live.known, live.arrival, live))
        self.growers[(self.tick - live.computed) % self.block_size] += 1

    def get_known(self, live: Live) -> Tokens:
        """Count the tokens a member knows by now; it has computed all but one of them."""
        since, known = self.joined[live]
        return known + self.tick - since

    def move_on(self, ticks: int) -> None:
        """Let every member get a token in each of `ticks` iterations."""
        self.context += ticks * len(self.joined)
        self.tick += ticks

    def count_ticks_to_end(self) -> int:
        """Count the ticks until the next member ends; there must be one."""
        return self.ends[0][0] - self.tick

    def pop_ended(self) -> Iterator[Live]:
        """Give the members that end with this tick; each must be brought up to date and is then taken out."""
        while self.ends and self.ends[0][0] == self.tick:
            live = heappop(self.ends)[2]
            yield live
            self.context -= live.computed
            self.growers[(self.tick - live.computed) % self.block_size] -= 1
            del self.joined[live]

    def count_growth(self, ticks: int = 1) -> Blocks:
        """Count the blocks that the members take in the next `ticks` ticks: whole cycles, and residue by residue."""
        size, growers = self.block_size, self.growers
        first = self.tick % size
        if ticks == 1:
            return growers[first]
        cycles, rest = divmod(ticks, size)
        return (
            cycles * len(self.joined) + sum(growers[first : first + rest]) + sum(growers[: max(0, first + rest - size)])
        )

    def count_fitting(self, room: Blocks, most: int) -> int:
        """Count the ticks, up to `most`, that together take no more than `room` blocks."""
        if self.count_growth(most) <= room:
            return most
        cycles = room // len(self.joined)
        ticks, room = cycles * self.block_size, room - cycles * len(self.joined)
        while (needed := self.growers[(self.tick + ticks) % self.block_size]) <= room:
            ticks, room = ticks + 1, room - needed
        return ticks
