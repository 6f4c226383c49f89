"""Prefill first: an iteration is all prefill or all decode, and decodes wait while any prompt can go on.

Source: the order of vLLM V0 and SGLang, in its clean form. A long prompt is chunked; its next chunk comes before
newcomers. All blocks of the known tokens are taken at admission, the head of the waiting queue blocks those behind
it, and a decode that finds no block preempts the last admitted, which is recomputed.
"""

from refsched.model import Plan
from refsched.scheduling.queues import Draft, Queues
from refsched.scheduling.steps import admit_head, serve_decodes, serve_prefills


def select_iteration(queues: Queues) -> Plan:
    """Plan the next chunks of running prefills and then of waiting requests; if there are none, the decodes."""
    draft = Draft(queues.token_budget)
    serve_prefills(queues, draft, [live for live in queues.running if live.is_prefilling()])
    while queues.waiting and admit_head(queues, draft, reserved=queues.waiting[0].known):
        pass
    if not draft.entries:
        serve_decodes(queues, draft)
    return draft.plan()
