"""Steps that several rules are built from: room for a decode, chunks of running prefills, admission of the head."""

from collections import deque
from collections.abc import Callable, Iterable

from refsched.model import Request
from refsched.scheduling.kv import get_longest
from refsched.scheduling.live import Live
from refsched.scheduling.queues import Draft, Queues
from refsched.units import Blocks, Tokens

Take = Callable[[Queues, Live], bool]

# DECODES


def make_room(queues: Queues, draft: Draft, live: Live, unvisited: deque[Live], take: Take) -> bool:
    """Take what `live` needs, preempting the last not yet visited, or in the end itself; return False for that."""
    while not take(queues, live):
        victim = unvisited.pop() if unvisited else live
        draft.preempted.append(victim)
        queues.preempt(victim)
        if victim is live:
            return False
    return True


def take_slot(queues: Queues, live: Live) -> bool:
    """Take the KV slot of a decode, or change nothing and return False.

    Under `one-free-block` a whole free block must be there even if the request's own last block has room.
    """
    pool = queues.pool
    if queues.dialect.decode_reserve == "one-free-block" and pool.free < 1:
        return False
    return pool.grow(live.id, live.computed + 1)


def serve_decodes(queues: Queues, draft: Draft) -> None:
    """Give each running request one token, in order, making room where blocks run out; for rules that never mix."""
    counted = queues.dialect.decodes_counted
    unvisited = deque(queues.running)
    while unvisited and (draft.budget > 0 or not counted):
        live = unvisited.popleft()
        if make_room(queues, draft, live, unvisited, take_slot):
            draft.add(live, 1)


# PREFILLS


def serve_prefills(queues: Queues, draft: Draft, prefills: Iterable[Live]) -> None:
    """Give each partial prefill what chunk cap and budget allow; it holds all its blocks already."""
    for live in prefills:
        count = min(live.goal - live.computed, queues.chunk_cap, draft.budget)
        if count > 0:
            draft.add(live, count)


def admit_head(queues: Queues, draft: Draft, reserved: Tokens) -> bool:
    """Admit the head of the waiting queue with its first chunk if budget, places and pool allow; tell whether."""
    live = queues.waiting[0]
    count = min(live.goal - live.computed, queues.chunk_cap, draft.budget)
    if count <= 0 or len(queues.running) >= queues.max_seqs or not take_whole(queues, live, reserved):
        return False
    draft.add(live, count)
    queues.running.append(queues.waiting.popleft())
    return True


def take_whole(queues: Queues, live: Live, tokens: Tokens) -> bool:
    """Take the blocks for `tokens` tokens of a waiting request if that leaves the watermark free."""
    pool = queues.pool
    if pool.blocks_for(tokens) + count_kept_free(queues) > pool.free:
        return False
    return pool.grow(live.id, tokens)


def count_kept_free(queues: Queues) -> Blocks:
    """Count the blocks that an admission must leave free."""
    return queues.share_kept_free + (queues.dialect.watermark_blocks if queues.running else 0)


def get_reservation(queues: Queues, request: Request) -> Tokens:
    """Count the slots a request needs until its end; the last output token is never written [decision 2]."""
    return get_longest(request, queues.limits, queues.dialect.stop) - 1


def explain_whole_prompt(queues: Queues, request: Request) -> str | None:
    """Say that a prompt can never run in one piece, or return None if it can [decision 3]."""
    if request.prompt <= queues.token_budget:
        return None
    return f"the prompt of {request.prompt} tokens runs in one piece; the token budget is {queues.token_budget}"


def restart_victims(queues: Queues, draft: Draft) -> None:
    """Reset the victims of this plan where the dialect resets late; one planned again starts at 0.

    An empty plan is never executed, so its victims keep counting tokens as computed that they have lost.
    """
    if queues.dialect.victim_reset == "at-once" or not draft.entries:
        return
    for victim in draft.preempted:
        victim.restart()
    again = {victim.id for victim in draft.preempted}
    draft.entries = [entry._replace(start=0) if entry.id in again else entry for entry in draft.entries]
