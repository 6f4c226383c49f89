"""vLLM V1: no phases; each running request catches up with its known tokens, then waiting ones are admitted.

Source: plans recorded from the real scheduler of vLLM 0.29.0 and 0.33.0. It differs from document A [B7b]: the running
list is served in admission order, so a partial prefill that entered earlier comes before a decode that entered later;
when blocks run out somebody is preempted and recomputed; the head of the waiting queue blocks those behind it.
With a prefix cache a waiting request looks up its known tokens at each attempt; what it finds costs no budget.
"""

from refsched.model import Plan
from refsched.scheduling.kv import Hit
from refsched.scheduling.live import Live, get_arrival, get_rank
from refsched.scheduling.order import arrange_running, pass_turns
from refsched.scheduling.queues import Draft, Queues
from refsched.units import UNLIMITED, Tokens


def select_iteration(queues: Queues) -> Plan:
    """Serve the running requests in order; admit waiting ones only if nobody was preempted."""
    draft = Draft(queues.token_budget)
    cap = get_chunk_cap(queues)
    arrange_running(queues)
    serve_running(queues, draft, cap)
    if not draft.preempted:
        admit_waiting(queues, draft, cap)
    pass_turns(queues, draft)
    return draft.plan()


def get_chunk_cap(queues: Queues) -> Tokens:
    """Give the chunk cap of this iteration; 0.33 does not apply it to a request that is alone."""
    alone = len(queues.running) + len(queues.waiting) <= 1
    return UNLIMITED if alone and queues.dialect.chunk_cap_lifted_when_alone else queues.chunk_cap


def serve_running(queues: Queues, draft: Draft, cap: Tokens) -> None:
    """Give each running request what it lacks, up to cap, budget and max_len; preempt where blocks run out."""
    ceiling = queues.max_len - 1
    for live in get_candidates(queues):
        if draft.budget <= 0:
            break
        count = min(live.known - live.computed, cap, draft.budget, ceiling - live.computed)
        if count <= 0 or live in draft.preempted:
            continue
        if make_room(queues, draft, live, count):
            draft.add(live, count)
        elif queues.dialect.self_victim == "ends-walk":
            break


def get_candidates(queues: Queues) -> tuple[Live, ...]:
    """Give the running requests in order, but of those that decode only the first up to the decode limit [A17]."""
    limit = queues.decode_limit
    if limit >= len(queues.running):
        return tuple(queues.running)
    decoding = [live.id for live in queues.running if live.is_decoding()]
    held_back = set(decoding[limit:])
    return tuple(live for live in queues.running if live.id not in held_back)


def make_room(queues: Queues, draft: Draft, live: Live, count: Tokens) -> bool:
    """Take blocks for the next `count` tokens, preempting one by one; return False if `live` itself had to go.

    A victim that is already planned leaves the plan and its tokens return to the budget; `count` is not raised.
    """
    while not queues.pool.grow(live.id, live.computed + count):
        victim = choose_victim(queues)
        draft.drop(victim.id)
        draft.preempted.append(victim)
        queues.preempt(victim)
        if victim is live:
            return False
    return True


def choose_victim(queues: Queues) -> Live:
    """Choose who loses its blocks: the last admitted, or under `priority` the worst, wherever it stands."""
    if queues.dialect.policy == "priority":
        return max(queues.running, key=get_rank)
    if queues.dialect.order == "admission":
        return queues.running[-1]
    return max(queues.running, key=get_arrival)  # first come first served admits in the order of arrival


def admit_waiting(queues: Queues, draft: Draft, cap: Tokens) -> None:
    """Admit from the head of the waiting queue while budget, places and the gate allow; the first to fail ends it."""
    pool = queues.pool
    while queues.waiting and draft.budget > 0 and len(queues.running) < queues.max_seqs:
        live = queues.waiting[0]
        hit = pool.find(live)
        cached = len(hit.blocks) * pool.block_size
        count = min(live.known - cached, cap, draft.budget)
        if not passes_gate(queues, live, hit, cached + count):
            break
        pool.adopt(live, hit)
        pool.grow(live.id, min(cached + count, queues.max_len))
        live.computed = cached
        draft.add(live, count)
        queues.running.append(queues.waiting.popleft())
        if queues.dialect.prefix_cache:
            draft.cached.append((live.id, cached))


def passes_gate(queues: Queues, live: Live, hit: Hit, end: Tokens) -> bool:
    """Tell whether all known tokens (or only those up to `end`) fit the free blocks now, above the watermark.

    A block that was found costs nothing while somebody holds it, and leaves the free blocks otherwise. The gate
    reserves nothing: two requests may pass it one after the other and run out together later.
    """
    gated = live.known if queues.dialect.admission_gate == "whole-known-sequence" else end
    kept_free = queues.dialect.watermark_blocks if queues.running else 0
    missing = queues.pool.blocks_for(min(gated, queues.max_len)) - len(hit.blocks)
    return missing + hit.idle + kept_free <= queues.pool.free
