"""vLLM V0 with chunked prefill: running requests in list order, then new ones, then the victims go back in line.

Source: plans recorded from the real scheduler of vLLM 0.8.5. Kept as recorded: newcomers take what victims gave up
and so overtake them; a partial prefill asks for a free block that it never takes, which can preempt a request that is
alone, for ever; a prompt over max_len is let in if its first chunk is not.
"""

from collections import deque

from refsched.model import Plan
from refsched.scheduling.live import Live
from refsched.scheduling.policies.vllm_v0 import never_fits
from refsched.scheduling.queues import Draft, Queues
from refsched.scheduling.steps import admit_head, make_room, take_slot


def select_iteration(queues: Queues) -> Plan:
    """Serve running requests and admit waiting ones; only then do the victims go back, first in line."""
    draft = Draft(queues.token_budget)
    serve_running(queues, draft)
    victims = [queues.waiting.popleft() for _ in draft.preempted]
    admit_waiting(queues, draft)
    queues.waiting.extendleft(reversed(victims))
    return draft.plan()


def serve_running(queues: Queues, draft: Draft) -> None:
    """Give decodes one token and partial prefills what is left of the budget, and order them anew.

    The next walk meets decodes first, then the prefills that end in this step, then the others.
    """
    decodes: list[Live] = []
    ending: list[Live] = []
    others: list[Live] = []
    unvisited = deque(queues.running)
    while unvisited and draft.budget > 0:
        live = unvisited.popleft()
        if make_room(queues, draft, live, unvisited, take_room):
            left = live.known - live.computed
            count = min(left, queues.chunk_cap, draft.budget)
            draft.add(live, count)
            (decodes if not live.is_prefilling() else ending if count == left else others).append(live)
    queues.running = [*unvisited, *decodes, *ending, *others]


def take_room(queues: Queues, live: Live) -> bool:
    """Take a decode's slot; see whether a partial prefill finds the free block that it asks for and never takes."""
    if not live.is_prefilling():
        return take_slot(queues, live)
    return live.known % queues.pool.block_size == 0 or queues.pool.free > 0


def admit_waiting(queues: Queues, draft: Draft) -> None:
    """Refuse or admit from the head, each with its first chunk and all its blocks; the first to fail ends it."""
    if draft.budget <= 0:
        return
    while queues.waiting:
        live = queues.waiting[0]
        count = min(live.known, queues.chunk_cap, draft.budget)
        if count > queues.max_len or never_fits(queues, live):
            draft.rejected.append(queues.waiting.popleft().id)
        elif not admit_head(queues, draft, reserved=live.known):
            break
