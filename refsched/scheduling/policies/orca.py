"""Orca: whole prompts, room for the longest sequence reserved at admission, nobody is ever preempted.

Source: Orca (OSDI 2022), iteration-level scheduling; plans recorded from the `orca` schedulers of Sarathi-Serve and
Vidur. Each running request gets one token; then the head of the waiting queue enters while a place and a slot of
max_len tokens are free, and its prompt runs in one piece. Recorded engines have no token budget; where one is
given it holds here, so a prompt above it can never run.
"""

from refsched.model import Plan, Request
from refsched.scheduling.order import arrange_running, pass_turns
from refsched.scheduling.queues import Draft, Queues
from refsched.scheduling.steps import explain_whole_prompt, get_reservation
from refsched.units import Tokens, ceil_div


def select_iteration(queues: Queues) -> Plan:
    """Plan one token for each running request, then whole prompts from the head of the waiting queue."""
    draft = Draft(queues.token_budget)
    arrange_running(queues)
    for live in queues.running:
        if draft.budget <= 0:
            break
        draft.add(live, 1)
    admit_waiting(queues, draft)
    pass_turns(queues, draft)
    return draft.plan()


def admit_waiting(queues: Queues, draft: Draft) -> None:
    """Admit while a place, the budget for the prompt and a slot are free; the first to fail ends it."""
    while queues.waiting:
        live = queues.waiting[0]
        if queues.dialect.planning_rejects != "nothing" and live.known > queues.max_len:
            draft.rejected.append(queues.waiting.popleft().id)
            continue
        if len(queues.running) >= queues.max_seqs or live.known > draft.budget:
            break
        if not queues.pool.grow(live.id, get_slot(queues, live.request)):
            break
        draft.add(live, live.known)
        queues.running.append(queues.waiting.popleft())


def get_slot(queues: Queues, request: Request) -> Tokens:
    """Give the tokens that are reserved: max_len in whole blocks, or all that the request needs if there is none."""
    max_len, size = queues.limits.max_len, queues.pool.block_size
    if max_len is None:
        return get_reservation(queues, request)
    return ceil_div(max_len, size) * size if queues.dialect.slot_rounding == "up" else max_len // size * size


def explain_refusal(queues: Queues, request: Request) -> str | None:
    """Say why this rule could never admit `request`, or return None if it can [decision 3]."""
    slot = get_slot(queues, request)
    needed = queues.pool.blocks_for(slot)
    if needed > queues.pool.total:
        return f"a slot of {slot} tokens needs {needed} blocks; the pool has {queues.pool.total}"
    return explain_whole_prompt(queues, request)
