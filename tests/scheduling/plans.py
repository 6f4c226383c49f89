"""Drive an engine by hand: submit requests, then read the plan of every iteration."""

from refsched.dialect import get_dialect
from refsched.model import Limits, Plan, Request
from refsched.scheduling.engine import ReferenceEngine
from refsched.scheduling.progress import Progress

Asked = tuple[str, int, int]


def make(dialect: str, limits: Limits, **options: object) -> ReferenceEngine:
    """Make an engine of one dialect."""
    return ReferenceEngine(get_dialect(dialect, options), limits)


class Drive:
    """Keep the driver's books beside an engine."""

    def __init__(self, engine: ReferenceEngine):
        self.engine = engine
        self.progress = Progress(engine.limits)

    def submit(self, *asked: Asked) -> None:
        """Submit requests that must be accepted."""
        for id, prompt, output in asked:
            request = Request(id, prompt, output)
            assert self.engine.submit(request) is None
            self.progress.start(request)

    def step(self) -> Plan:
        """Run one iteration and return its plan."""
        plan = self.engine.plan()
        _, emitted, finished = self.progress.settle(plan)
        self.engine.complete(emitted, finished)
        for id in finished:
            self.progress.end(id)
        return plan


def show(plan: Plan) -> dict[str, int]:
    """Give a plan as id -> tokens."""
    return {entry.id: entry.count for entry in plan.entries}
