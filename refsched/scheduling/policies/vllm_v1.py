"""vLLM V1: no phases; each running request catches up with its known tokens, then waiting ones are admitted.

Source: plans recorded from the real scheduler of vLLM 0.29.0 and 0.33.0. It differs from document A [B7b]: the running list is
served in admission order, so a partial prefill that entered earlier comes before a decode that entered later; when
blocks run out somebody is preempted and recomputed; the head of the waiting queue blocks those behind it.
"""

from refsched.model import Plan
from refsched.scheduling.queues import Draft, Live, Queues, get_rank
from refsched.units import UNLIMITED, Tokens


def select_iteration(queues: Queues) -> Plan:
    """Serve the running requests in admission order; admit waiting ones only if nobody was preempted."""
    draft = Draft(queues.token_budget)
    cap = get_chunk_cap(queues)
    serve_running(queues, draft, cap)
    if not draft.preempted:
        admit_waiting(queues, draft, cap)
    return draft.plan()


def get_chunk_cap(queues: Queues) -> Tokens:
    """Give the chunk cap of this iteration; 0.33 does not apply it to a request that is alone."""
    alone = len(queues.running) + len(queues.waiting) <= 1
    return UNLIMITED if alone and queues.dialect.chunk_cap_lifted_when_alone else queues.chunk_cap


def serve_running(queues: Queues, draft: Draft, cap: Tokens) -> None:
    """Give each running request what it lacks, up to cap, budget and max_len; preempt where blocks run out."""
    ceiling = queues.max_len - 1
    for live in tuple(queues.running):
        if draft.budget <= 0:
            break
        count = min(live.known - live.computed, cap, draft.budget, ceiling - live.computed)
        if count <= 0 or live.id in draft.preempted:
            continue
        if make_room(queues, draft, live, count):
            draft.add(live, count)
        elif queues.dialect.self_victim == "ends-walk":
            break


def make_room(queues: Queues, draft: Draft, live: Live, count: Tokens) -> bool:
    """Take blocks for the next `count` tokens, preempting one by one; return False if `live` itself had to go.

    A victim that is already planned leaves the plan and its tokens return to the budget; `count` is not raised.
    """
    while not queues.pool.grow(live.id, live.computed + count):
        victim = choose_victim(queues)
        draft.drop(victim.id)
        draft.preempted.append(victim.id)
        queues.preempt(victim)
        if victim is live:
            return False
    return True


def choose_victim(queues: Queues) -> Live:
    """Choose who loses its blocks: the last admitted, or under `priority` the worst, wherever it stands."""
    return max(queues.running, key=get_rank) if queues.dialect.policy == "priority" else queues.running[-1]


def admit_waiting(queues: Queues, draft: Draft, cap: Tokens) -> None:
    """Admit from the head of the waiting queue while budget, places and the gate allow; the first to fail ends it."""
    while queues.waiting and draft.budget > 0 and len(queues.running) < queues.max_seqs:
        live = queues.waiting[0]
        count = min(live.known, cap, draft.budget)
        if not passes_gate(queues, live, count):
            break
        queues.pool.grow(live.id, min(count, queues.max_len))
        draft.add(live, count)
        queues.running.append(queues.waiting.popleft())


def passes_gate(queues: Queues, live: Live, count: Tokens) -> bool:
    """Tell whether all known tokens (or only this chunk) fit the free blocks now, above the watermark.

    The gate reserves nothing: two requests may pass it one after the other and run out together later.
    """
    gated = live.known if queues.dialect.admission_gate == "whole-known-sequence" else count
    kept_free = queues.dialect.watermark_blocks if queues.running else 0
    return queues.pool.blocks_for(min(gated, queues.max_len)) + kept_free <= queues.pool.free
