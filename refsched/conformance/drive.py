"""Driving an engine through one scenario: questions in turn, emissions and ends by the judge's own books.

The run is over when nothing is live and nothing left to come, when it is stuck or in a circle, or when a clause is
broken: what an engine decides after that may be a consequence.
"""

from collections.abc import Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from typing import NamedTuple

from refsched.conformance.adapters import Adapter
from refsched.conformance.breach import Breach
from refsched.conformance.choice import Choice
from refsched.conformance.messages import Told, read_event
from refsched.conformance.recording import Opening
from refsched.conformance.scenario_file import Arrival, Cancel, Scenario
from refsched.conformance.verdict import Judge, Verdict
from refsched.conformance.wire import Message
from refsched.errors import EngineError, InputError
from refsched.model import Planned, Request

PATIENCE = 16  # iterations per token of the scenario; a right engine needs far fewer
REQUIRED = ("submit", "plan", "complete")


class Driven(NamedTuple):
    """Hold the verdict on one scenario, the number of events driven, and what the engine does not support."""

    verdict: Verdict
    events: int
    unsupported: str | None = None


def drive(adapter: Adapter, scenario: Scenario, opening: Opening, choice: Choice, asked: str | None = None) -> Driven:
    """Run a scenario and judge it; raise EngineError where the engine breaks.

    Only an engine that claims MOD-REQ-1 is offered a live id again, and only one that claims MOD-ARR-1 hears of
    arrivals and cancellations while a plan is outstanding; all others hear of them at the end of that iteration.

    `opening` says who the engine is and what it claims; its limits are replaced by the scenario's.
    """
    opening = Opening(opening.header, opening.engine, opening.dialect, scenario.limits)
    driver = Driver(adapter, scenario, Judge(opening, choice), asked == "exact", opening.header.get("clauses", ()))
    try:
        driver.run()
    except Unsupported as missing:
        return Driven(driver.conclude(asked), driver.events, missing.what)
    return Driven(driver.conclude(asked), driver.events)


class Unsupported(Exception):
    """Say what an engine does not support."""

    def __init__(self, what: str):
        self.what = what
        super().__init__(what)


class Driver:
    """Drive one engine through one scenario."""

    def __init__(
        self, adapter: Adapter, scenario: Scenario, judge: Judge, needs_exact: bool, clauses: Sequence[str] = ()
    ):
        self.takes_names_again, self.listens_inside = (claims(clauses, id) for id in ("MOD-REQ-1", "MOD-ARR-1"))
        self.adapter, self.judge, self.needs_exact = adapter, judge, needs_exact
        self.arrivals = sorted(scenario.arrivals, key=lambda each: (each.at, each.inside))
        self.cancels = sorted(scenario.cancels, key=lambda each: (each.at, each.inside))
        self.limits = scenario.limits
        self.shows_content = judge.dialect is None or judge.dialect.prefix_cache
        self.patience = PATIENCE * (scenario.count_tokens() + len(self.arrivals)) + self.last_event()
        self.events = 0
        self.closed = self.exhausted = False

    def last_event(self) -> int:
        """Give the last iteration in which something comes from outside."""
        return max([each.at for each in self.arrivals] + [each.at for each in self.cancels], default=0)

    def run(self) -> None:
        """Run to the end."""
        self.reset()
        number = 0
        while not self.is_over() and number < self.patience:
            self.offer(number, inside=False)
            if not self.judge.books.live:
                if not self.arrivals:
                    self.closed = True
                    return
                if self.arrivals[0].at > number:
                    number = self.arrivals[0].at
                    continue
            self.iterate(number)
            number += 1
            self.closed = not self.arrivals and not self.cancels and self.cannot_go_on()
            if self.closed:
                return
        self.exhausted = not self.is_over()

    def reset(self) -> None:
        """Begin with the limits of the scenario."""
        answer = self.adapter.ask({"op": "reset", "limits": asdict(self.limits)})
        if not answer["ok"]:
            if "unsupported" in answer:
                raise Unsupported(f"limits: {answer['unsupported']}")
            raise EngineError(f"it refuses a reset: {answer.get('error')}")

    def is_over(self) -> bool:
        """Tell whether a clause that matters is broken."""
        judge = self.judge
        return bool(judge.marks.broken) or "refines" in judge.below or (self.needs_exact and "exact" in judge.below)

    def cannot_go_on(self) -> bool:
        """Tell whether nothing moves, or everything in a circle."""
        watch = self.judge.watch
        return bool(self.judge.books.live) and (watch.is_idle or watch.period is not None)

    # FROM OUTSIDE

    def offer(self, number: int, inside: bool) -> None:
        """Submit and cancel what is due."""
        while not self.is_over() and self.arrivals and is_due(self.arrivals[0], number, inside):
            self.submit(self.arrivals.pop(0).request)
        while not self.is_over() and self.cancels and is_due(self.cancels[0], number, inside):
            self.cancel(self.cancels.pop(0).id)

    def submit(self, request: Request) -> None:
        """Submit a request; what its blocks hold is shown to those only who may look at it."""
        if request.id in self.judge.books.live and not self.takes_names_again:
            raise Unsupported("it does not claim MOD-REQ-1, so no live id is offered again")
        page: dict[str, object] = {"op": "submit", "id": request.id, "prompt": request.prompt, "output": request.output}
        more: dict[str, object] = {"priority": request.priority}
        if self.shows_content:
            more |= {"prefix": list(request.prefix), "output_blocks": list(request.output_blocks)}
        page |= {name: value for name, value in more.items() if value}
        self.take(page)

    def cancel(self, id: str) -> None:
        """Cancel a request that is still live."""
        if id in self.judge.books.live:
            self.take({"op": "cancel", "id": id})

    # ITERATIONS

    def iterate(self, number: int) -> None:
        """Let the engine plan, see what comes meanwhile, and tell it the result."""
        planned = self.take({"op": "plan"})
        if self.is_over() or not isinstance(planned.event, Planned):
            return
        if self.listens_inside:
            self.offer(number, inside=True)
        if self.is_over():
            return
        emitted = tuple(dict.fromkeys(self.judge.books.expect_emitted()))
        finished = self.judge.books.expect_finished(emitted)
        self.take({"op": "complete", "emitted": list(emitted), "finished": list(finished)})

    def take(self, request: Message) -> Told:
        """Ask one question, and let the judge take the answer."""
        self.events += 1
        answer = self.adapter.ask(request)
        try:
            told = read_event(0, request, answer)
        except InputError as error:
            raise EngineError(f"the answer to {request['op']} is none: {error}") from None
        if told.unsupported:
            if request["op"] in REQUIRED:
                raise EngineError(f"{request['op']} is unsupported; {', '.join(REQUIRED)} are required")
            raise Unsupported(f"{request['op']}: {answer['unsupported']}")
        self.judge.take(told)
        return told

    # THE END

    def conclude(self, asked: str | None) -> Verdict:
        """Give the verdict; a run that goes on far longer than its tokens need breaks LIV-END-1."""
        books = self.judge.books
        if self.exhausted:
            because = f"after iteration {books.iteration} these requests are still live: {', '.join(books.live)}"
            self.judge.marks.broken["LIV-END-1"] = Breach("LIV-END-1", books.iteration, because)
        return self.judge.conclude(self.closed, asked)


def claims(clauses: Sequence[str], id: str) -> bool:
    """Tell whether an engine claims a clause, by its id or with wildcards."""
    return any(fnmatchcase(id, each) for each in clauses)


def is_due(event: Arrival | Cancel, number: int, inside: bool) -> bool:
    """Tell whether something comes now; what was due inside an iteration that never was comes before the next."""
    return event.at < number or (event.at == number and (inside or not event.inside))
