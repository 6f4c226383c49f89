"""Document A's rule, to the letter: decode first, then prefill with what is left; nobody is ever preempted.

Source: document A, section 05 [A14, decisions 1, 2, 6]. A request that gets nothing is skipped, so a run can get
stuck with its KV pool full of requests that wait for one another; that is part of the rule and is kept.

`running` is document A's list of active requests, in the order in which their prefills completed; a request whose
prompt is partly computed stays in `waiting`, where it keeps its KV and its place among the sequences.
"""

from itertools import islice

from refsched.model import Plan
from refsched.scheduling.live import Live
from refsched.scheduling.order import arrange_running, arrange_waiting, pass_turns, pass_waiting_turns
from refsched.scheduling.queues import Draft, Queues


def select_iteration(queues: Queues) -> Plan:
    """Plan one token for each active request, then a chunk for each waiting one, in order [A14]."""
    draft = Draft(queues.token_budget)
    join_active(queues)
    arrange_running(queues)
    arrange_waiting(queues)
    serve_active(queues, draft)
    serve_waiting(queues, draft)
    pass_turns(queues, draft)
    pass_waiting_turns(queues, draft)
    return draft.plan()


def join_active(queues: Queues) -> None:
    """Move the requests that got their first output in the last iteration to the end of the active ones."""
    started = islice((live for live in queues.waiting if live.computed > 0), count_started(queues))
    for live in [live for live in started if live.known > live.request.prompt]:
        queues.waiting.remove(live)
        queues.running.append(live)


def serve_active(queues: Queues, draft: Draft) -> None:
    """Give each active request one token if one KV slot can be reserved for it; stop when the budget is 0 [A17]."""
    for live in queues.running:
        if draft.budget == 0 or len(draft.entries) == queues.decode_limit:
            break
        if queues.pool.grow(live.id, live.computed + 1):
            draft.add(live, 1)


def count_started(queues: Queues) -> int:
    """Count the waiting requests that hold KV: every active one does too."""
    return len(queues.pool.held) - len(queues.running)


def serve_waiting(queues: Queues, draft: Draft) -> None:
    """Give each waiting request what prompt, cap, budget and KV slots allow; where that is 0, go on to the next."""
    places, started = queues.max_seqs - len(queues.pool.held), count_started(queues)
    for live in queues.waiting:
        closed = places <= 0 or queues.pool.free == 0  # to those that have not started
        if draft.budget == 0 or (closed and started == 0):
            break
        fresh = live.computed == 0
        started -= not fresh
        count = 0 if fresh and closed else get_chunk(queues, live, draft.budget)
        if count > 0:
            places -= fresh
            queues.pool.grow(live.id, live.computed + count)
            draft.add(live, count)


def get_chunk(queues: Queues, live: Live, budget: int) -> int:
    """Count the prompt tokens a waiting request may prefill in this iteration."""
    prefill_left = live.request.prompt - live.computed
    return min(prefill_left, queues.chunk_cap, budget, queues.pool.slots_for(live.id, live.computed))
