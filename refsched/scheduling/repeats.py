"""How often a plan surely repeats, per rule, and the engine's state after it has.

The statement: let a plan hold entries only, nobody having ended with it, everybody who got a token from it having got
one in the iteration before as well, and let nothing arrive or be cancelled. Then the next plan is the same one moved
on (each entry starts where it ended), as long as the blocks that it takes are free.

The proof, for every rule in `RULES`: a rule looks at its queues, the limits and the free blocks. The queues are as
they were: nobody joined, ended, was preempted, or turned from prefilling to decoding. Every running request that was
served lacks as much as before (a decode one token; a middle chunk more than it was given, so cap, budget or turn
bounded it, and they are the same). So whoever is served before the first shortage of blocks is served alike, and there
is no shortage. Free blocks only fell; so a waiting request that did not fit the free blocks does not fit now, and one
that budget or places kept out is kept out by the same budget and places. In document A a chunk bounded by free slots
left none, so the blocks for its repetition are not free, and the statement does not apply. Rules that ask for a whole
free block before each decode find one while one is left at the end of every iteration: that is what `spare` keeps.
Rules that reserve at admission take nothing afterwards.

The proof needs that requests are served in the same order again. Sorted lists are, once they are sorted; vLLM V0's
chunked list, which each walk builds anew, is where everybody was served and all decodes came before all chunks. A
dialect whose order follows waiting time promises nothing. One with a prefix cache promises only what takes, fills and
registers no block, for that alone may change what a lookup finds.
"""

from collections.abc import Mapping, Sequence

from refsched.model import Plan
from refsched.scheduling.live import Live
from refsched.scheduling.order import SORT_KEYS
from refsched.scheduling.queues import Queues
from refsched.units import Blocks, Tokens, ceil_div

# Whether a rule takes blocks for the tokens it plans as it plans them, or has reserved them at admission.
RULES: Mapping[str, bool] = {
    "document-a": True,
    "static": False,
    "orca": False,
    "no-evict": False,
    "prefill-first": True,
    "sarathi": True,
    "vllm-v0": True,
    "vllm-v0-chunked": True,
    "vllm-v1": True,
}
REORDERING = ("vllm-v0-chunked",)


def keeps_order(queues: Queues, live: Mapping[str, Live], plan: Plan) -> bool:
    """Tell whether the next iteration surely serves in the same order."""
    dialect, running = queues.dialect, queues.running
    if dialect.rule in REORDERING:
        chunks_from = [live[entry.id].is_prefilling() for entry in plan.entries]
        return len(plan.entries) == len(running) and chunks_from == sorted(chunks_from)
    if dialect.order == "admission":
        return True
    key = SORT_KEYS.get(dialect.order)
    return key is not None and running == sorted(running, key=key)


def count_repeats(queues: Queues, live: Mapping[str, Live], plan: Plan, most: int) -> int:
    """Count how often, up to `most`, a plan surely repeats that is as the statement above says."""
    dialect = queues.dialect
    if dialect.rule not in RULES or not keeps_order(queues, live, plan):
        return 0
    if dialect.impossible == "admit":  # a prompt that is admitted though it is too long may be cut at max_len
        most = max(0, min(most, *((queues.max_len - 1 - start) // count - 1 for _, start, count in plan.entries)))
    if not RULES[dialect.rule]:
        return most
    size, held = queues.pool.block_size, queues.pool.held
    needs = [(held.get(id, 0) * size - start - count, count) for id, start, count in plan.entries]
    if dialect.prefix_cache:
        return min(most, *((slack - 1) // count if slack > 0 else 0 for slack, count in needs))
    spare = 1 if dialect.decode_reserve == "one-free-block" or dialect.rule in REORDERING else 0
    return count_fitting(needs, size, queues.pool.free - spare, most)


def count_fitting(needs: Sequence[tuple[Tokens, Tokens]], size: Tokens, room: Blocks, most: int) -> int:
    """Count how many repetitions, up to `most`, take at most `room` blocks of `size` tokens.

    `needs` holds for each entry the slack in its own last block and the tokens that it takes each time.
    """
    if sum(ceil_div(most * count, size) for _, count in needs) <= room:
        return most
    low, high = 0, min(most, (max(room, 0) + 1) * size)  # one entry of one token alone takes room + 1 blocks by then
    while low < high:
        middle = (low + high + 1) // 2
        taken = sum(max(0, ceil_div(middle * count - slack, size)) for slack, count in needs)
        low, high = (middle, high) if taken <= room else (low, middle - 1)
    return low


def advance(queues: Queues, live: Mapping[str, Live], first: Plan, emitted: Sequence[str], repeats: int) -> None:
    """Bring the engine to where it is after `first` was planned and completed `repeats` times, each moved on."""
    takes_blocks = RULES[queues.dialect.rule] and not queues.dialect.prefix_cache
    for id, start, count in first.entries:
        live[id].computed = start + repeats * count
        if takes_blocks:
            queues.pool.grow(id, live[id].computed)
    for id in emitted:
        live[id].known += repeats
