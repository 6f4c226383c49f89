"""One request inside the engine: the tokens it knows, those it has computed, its place in line."""

from refsched.model import Request
from refsched.units import Tokens


class Live:
    """Follow one request: tokens it knows (prompt and outputs so far) and tokens computed."""

    __slots__ = ("arrival", "computed", "goal", "id", "known", "preemptions", "request")

    def __init__(self, request: Request, arrival: int):
        self.request = request
        self.id = request.id
        self.arrival = arrival  # place in the order of submission
        self.known: Tokens = request.prompt
        self.computed: Tokens = 0
        self.goal: Tokens = request.prompt  # it prefills up to here: what it knew when it last began to wait
        self.preemptions = 0

    def is_prefilling(self) -> bool:
        """Tell whether tokens known at its last admission are still to be computed."""
        return self.computed < self.goal

    def is_decoding(self) -> bool:
        """Tell whether its next entry is a decode as the driver counts it: the last known token, past the prompt."""
        return self.known - self.computed == 1 and self.computed >= self.request.prompt

    def restart(self) -> None:
        """Begin again at 0: everything known, outputs included, is to be prefilled again [recompute]."""
        self.computed = 0
        self.goal = self.known


def get_rank(live: Live) -> tuple[int, int]:
    """Order requests by priority, then by submission; the smaller is the better."""
    return live.request.priority, live.arrival


def get_arrival(live: Live) -> int:
    """Order requests by submission."""
    return live.arrival
