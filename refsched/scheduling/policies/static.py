"""Request-level (static) batching: the members of a batch are fixed until the last one ends.

Source: document A, sections 02 and 03 [A3]. Places freed early stay empty. A member reserves all the KV it will
ever need when the batch is formed, so no member can run out. Members are served in order of entry; each gets what
is left of its known tokens, up to the chunk cap and the budget.
"""

from refsched.model import Plan
from refsched.scheduling.queues import Draft, Queues
from refsched.scheduling.steps import get_reservation


def select_iteration(queues: Queues) -> Plan:
    """Form a batch if there is none, then serve its members in order."""
    draft = Draft(queues.token_budget)
    if not queues.running:
        form_batch(queues)
    for live in queues.running:
        count = min(live.known - live.computed, queues.chunk_cap, draft.budget)
        if count > 0:
            draft.add(live, count)
    return draft.plan()


def form_batch(queues: Queues) -> None:
    """Take waiting requests in order while a place is free and the pool can reserve all that each will need."""
    while queues.waiting and len(queues.running) < queues.max_seqs:
        if not queues.pool.grow(queues.waiting[0].id, get_reservation(queues, queues.waiting[0].request)):
            break
        queues.running.append(queues.waiting.popleft())
