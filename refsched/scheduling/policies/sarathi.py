"""Sarathi: decodes first, then the next chunks of partial prefills, then new requests with what budget is left.

Source: Sarathi-Serve (OSDI 2024), stall-free batching; plans recorded from its scheduler. A prompt's blocks are all
taken at admission. A decode that finds no block preempts the latest arrival not yet visited, partial prefills included.
The recorded engine differs in choices that its dialect names: it asks for a whole free block for each decode, and it
resets a victim only when the plan is executed, so that one may be planned again at once, or never again.
"""

from collections import deque

from refsched.model import Plan
from refsched.scheduling.live import Live
from refsched.scheduling.order import arrange_running, pass_turns
from refsched.scheduling.queues import Draft, Queues
from refsched.scheduling.steps import admit_head, make_room, restart_victims, serve_prefills, take_slot


def select_iteration(queues: Queues) -> Plan:
    """Plan decodes, partial prefills and new requests, in this order of types and by arrival in each."""
    draft = Draft(queues.token_budget)
    arrange_running(queues)
    decodes, prefills = serve_decodes(queues, draft)
    serve_prefills(queues, draft, prefills)
    queues.running = decodes + prefills
    admit_waiting(queues, draft)
    restart_victims(queues, draft)
    pass_turns(queues, draft)
    return draft.plan()


def serve_decodes(queues: Queues, draft: Draft) -> tuple[list[Live], list[Live]]:
    """Give each decode one token while budget is left; return the decodes and the partial prefills that remain."""
    decodes: list[Live] = []
    prefills: list[Live] = []
    unvisited = deque(queues.running)
    while unvisited:
        live = unvisited.popleft()
        if live.is_prefilling():
            prefills.append(live)
        elif draft.budget <= 0:
            decodes.append(live)
        elif make_room(queues, draft, live, unvisited, take_slot):
            draft.add(live, 1)
            decodes.append(live)
    return decodes, prefills


def admit_waiting(queues: Queues, draft: Draft) -> None:
    """Admit from the head; in a step that preempted only where a victim's reset is late."""
    if draft.preempted and queues.dialect.victim_reset == "at-once":
        return
    while queues.waiting:
        live = queues.waiting[0]
        if queues.dialect.planning_rejects != "nothing" and live.goal > queues.max_len:
            draft.rejected.append(queues.waiting.popleft().id)
        elif not admit_head(queues, draft, live.known):
            break
