"""In which order candidates are served [A17], where a dialect offers the choice `order`.

`admission` leaves a rule's lists as the rule keeps them. `arrival` and `priority` sort them. Under `waiting-time`
whoever was planned least recently comes first, counted in iterations [decision 6]; equals keep their order. That
order is the list itself: at the end of an iteration those it planned step behind those it did not.
"""

from collections import deque
from collections.abc import Callable, Mapping

from refsched.scheduling.live import Live, get_arrival, get_rank
from refsched.scheduling.queues import Draft, Queues

SORT_KEYS: Mapping[str, Callable[[Live], int | tuple[int, int]]] = {"arrival": get_arrival, "priority": get_rank}


def arrange_running(queues: Queues) -> None:
    """Sort the running requests as the dialect's order says, before they are served."""
    key = SORT_KEYS.get(queues.dialect.order)
    if key is not None:
        queues.running.sort(key=key)


def arrange_waiting(queues: Queues) -> None:
    """Sort the waiting requests the same way, for a rule that may serve any of them."""
    key = SORT_KEYS.get(queues.dialect.order)
    if key is not None:
        queues.waiting = deque(sorted(queues.waiting, key=key))


def pass_turns(queues: Queues, draft: Draft) -> None:
    """Under `waiting-time`, let everyone planned step behind everyone not planned, in both lists."""
    if queues.dialect.order != "waiting-time":
        return
    planned = {entry.id for entry in draft.entries}
    queues.running.sort(key=lambda live: live.id in planned)


def pass_waiting_turns(queues: Queues, draft: Draft) -> None:
    """Do the same with the waiting requests, for a rule that may serve any of them."""
    if queues.dialect.order != "waiting-time":
        return
    planned = {entry.id for entry in draft.entries}
    queues.waiting = deque(sorted(queues.waiting, key=lambda live: live.id in planned))
