"""vLLM V0 without chunked prefill: whole prompts first, decodes only where no prompt was placed.

Source: plans recorded from the real scheduler of vLLM 0.8.5, and of Sarathi-Serve's copy of it, whose differences
are choices of its dialect. Requests that can never enter are refused while planning, even after outputs.
A decode asks for a free block even if its own last block has room; so a request alone may preempt itself.
"""

from refsched.model import Plan
from refsched.scheduling.live import Live
from refsched.scheduling.order import arrange_running, pass_turns
from refsched.scheduling.queues import Draft, Queues
from refsched.scheduling.steps import restart_victims, serve_decodes, take_whole


def select_iteration(queues: Queues) -> Plan:
    """Plan whole prompts from the head of the waiting queue; if there are none, one token for each running request."""
    draft = Draft(queues.token_budget)
    arrange_running(queues)
    admit_waiting(queues, draft)
    refused = draft.rejected and queues.dialect.rejection_ends_step
    if not draft.entries and not refused:
        serve_decodes(queues, draft)
    restart_victims(queues, draft)
    pass_turns(queues, draft)
    return draft.plan()


def admit_waiting(queues: Queues, draft: Draft) -> None:
    """Refuse or admit from the head while the pool, the budget and the places allow; the first to fail ends it."""
    while queues.waiting:
        live = queues.waiting[0]
        if is_refused(queues, live):
            draft.rejected.append(queues.waiting.popleft().id)
            continue
        if live.known > draft.budget or len(queues.running) >= queues.max_seqs:
            break
        if not take_whole(queues, live, live.known):
            break
        draft.add(live, live.known - live.computed)
        queues.running.append(queues.waiting.popleft())


def is_refused(queues: Queues, live: Live) -> bool:
    """Tell whether the rule drops a waiting request: too long to run in one piece, or never to fit the pool."""
    if queues.dialect.planning_rejects == "nothing":
        return False
    return live.known > min(queues.max_len, queues.token_budget) or never_fits(queues, live)


def never_fits(queues: Queues, live: Live) -> bool:
    """Tell whether a request's known tokens do not even fit the empty pool above the watermark, if the rule asks."""
    pool, rejects = queues.pool, queues.dialect.planning_rejects
    return rejects == "over-length-or-pool" and pool.blocks_for(live.known) + queues.share_kept_free > pool.total
