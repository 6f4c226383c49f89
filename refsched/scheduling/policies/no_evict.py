"""No eviction: every request reserves, at admission, all the KV it will ever need, so nobody is ever preempted.

Source: TensorRT-LLM's GUARANTEED_NO_EVICT and TGI, in their clean form: prompt + output - 1 slots are reserved
[decision 2]. Decodes come first, then the next chunks of partial prefills, then new requests; the first waiting
request that does not fit blocks those behind it.
"""

from refsched.model import Plan
from refsched.scheduling.queues import Draft, Queues
from refsched.scheduling.steps import admit_head, get_reservation, serve_prefills


def select_iteration(queues: Queues) -> Plan:
    """Plan one token for each decode, then chunks of running prefills, then of waiting requests."""
    draft = Draft(queues.token_budget)
    prefills = []
    for live in queues.running:
        if live.is_prefilling():
            prefills.append(live)
        elif draft.budget > 0:
            draft.add(live, 1)
    serve_prefills(queues, draft, prefills)
    while queues.waiting and admit_head(queues, draft, get_reservation(queues, queues.waiting[0].request)):
        pass
    return draft.plan()
