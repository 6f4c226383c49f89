"""The step simulator: the definition of a run. Every iteration is planned, priced and delivered, one by one.

An iteration's tokens are delivered at its end. Arrivals and cancellations during an iteration are seen at its end
[decision 8]; at one and the same time a result comes before a cancellation, and that before an arrival. A run ends
when nothing is live and nothing is left to come, or when it cannot go on [decision 5].
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from operator import itemgetter
from typing import Protocol

from refsched.errors import InputError
from refsched.model import (
    NOTHING,
    Cancelled,
    Event,
    Iteration,
    Limits,
    Plan,
    Planned,
    Submitted,
)
from refsched.record import (
    IterationEnds,
    IterationRanges,
    Outcome,
    Record,
    Server,
)
from refsched.scheduling.engine import Engine
from refsched.scheduling.progress import Course, Progress
from refsched.simulation.cost import CostModel
from refsched.simulation.ending import Ending, Watch, explain_blocked
from refsched.simulation.intake import Intake
from refsched.simulation.observe import Observer, RunCounter, tell_repeats
from refsched.simulation.progression import count_to_reach
from refsched.simulation.records import make_record
from refsched.units import Ticks
from refsched.workload.offer import Offer

OnEnd = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Totals:
    """Hold how a run ended, and its totals."""

    ending: Ending
    iterations: int
    events: int  # maximal runs of repeating iterations: the length of the Timeline
    entries: int  # planned entries over all iterations: request-steps
    preemptions: int
    makespan: Ticks  # end of the last iteration


@dataclass(frozen=True, slots=True)
class Simulated:
    """Hold what a run gave: its totals, and one Record for every request offered, in order of offer."""

    ending: Ending
    records: tuple[Record, ...]
    iterations: int
    events: int
    entries: int
    preemptions: int
    makespan: Ticks


class Runner(Protocol):
    """Be a run: go on until an ending comes, then conclude."""

    def go_on(self) -> Ending | None: ...
    def conclude(self, ending: Ending) -> Totals: ...
    def take_records(self) -> list[tuple[int, Record]]: ...


def simulate(
    engine: Engine,
    limits: Limits,
    cost: CostModel,
    offers: Iterable[Offer],
    observers: Sequence[Observer] = (),
    stop: str | None = None,
    on_end: OnEnd | None = None,
) -> Simulated:
    """Run `offers` through `engine`, iteration by iteration; raise InputError where two offers share a name.

    `stop` is a dialect's choice of where max_len ends a request (None: as the engine says, else where it is reached).
    `on_end` is called whenever a request ends. Raise EngineError if the engine plans what cannot be carried out.
    """
    return run_to_end(Stepper(engine, limits, cost, offers, observers, stop, on_end))


def run_to_end(runner: Runner) -> Simulated:
    """Run to the end, and bring the records into order of offer."""
    ending = None
    while ending is None:
        ending = runner.go_on()
    totals = runner.conclude(ending)
    records = tuple(record for _, record in sorted(runner.take_records(), key=itemgetter(0)))
    counts = (totals.iterations, totals.events, totals.entries, totals.preemptions, totals.makespan)
    return Simulated(totals.ending, records, *counts)


class Stepper:
    """Drive one engine through one workload."""

    def __init__(
        self,
        engine: Engine,
        limits: Limits,
        cost: CostModel,
        offers: Iterable[Offer],
        observers: Sequence[Observer] = (),
        stop: str | None = None,
        on_end: OnEnd | None = None,
    ):
        self.engine, self.limits, self.cost, self.observers = engine, limits, cost, observers
        self.on_end = on_end
        self.intake = Intake(offers)
        self.open: dict[str, tuple[int, Offer]] = {}  # live requests: number and offer
        self.records: list[tuple[int, Record]] = []  # of requests that ended, with their numbers
        self.cancels: list[tuple[Ticks, int, str]] = []
        self.progress = Progress(limits, stop or str(getattr(engine, "stop", "reaches")))
        self.watch = Watch()
        self.now: Ticks = 0
        self.ends = IterationEnds()
        self.last: Iteration | None = None
        self.counter = RunCounter()
        self.entries = self.preemptions = 0

    def go_on(self) -> Ending | None:
        """See what came, then run one iteration or let time pass; return how the run ended, if it did."""
        self.see_events()
        plan = self.engine.plan() if self.progress.live else NOTHING
        if plan.entries or plan.preempted or plan.rejected:
            return self.run_iteration(plan)
        return self.idle()

    # WHAT COMES FROM OUTSIDE

    def next_event(self) -> Ticks | None:
        """Give the time of the next arrival or cancellation, if one is left."""
        arrival = self.intake.peek()
        if not self.cancels:
            return arrival
        return self.cancels[0][0] if arrival is None else min(arrival, self.cancels[0][0])

    def see_events(self) -> None:
        """See every arrival and cancellation up to now, in order of time."""
        while (at := self.next_event()) is not None and at <= self.now:
            self.watch.forget()
            if self.cancels and self.cancels[0][0] == at:
                self.cancel(heappop(self.cancels)[2], at)
            else:
                self.arrive(*self.intake.take())

    def arrive(self, number: int, offer: Offer) -> None:
        """Submit an offer; if it is refused, that is its whole record. Raise InputError where its name is live."""
        id = offer.request.id
        if id in self.open:
            raise InputError(f"two live requests are named {id}", field="id")
        reason = self.engine.submit(offer.request)
        self.tell(Submitted(offer.request, reason))
        if reason is not None:
            self.keep(number, make_record(offer, Outcome.REJECTED, ended=offer.at, reason=reason))
            return
        self.progress.start(offer.request)
        self.open[id] = number, offer
        if offer.cancel_at is not None:
            heappush(self.cancels, (offer.cancel_at, number, id))

    def cancel(self, id: str, at: Ticks) -> None:
        """Cancel a request that is still live; one that has ended does not care."""
        if id in self.progress.live:
            self.engine.cancel(id)
            self.tell(Cancelled(id))
            self.retire(id, Outcome.CANCELLED, at)

    def idle(self) -> Ending | None:
        """Let time pass to the next event; with none left the run is over."""
        at = self.next_event()
        if at is not None:
            self.now = max(self.now, at)
            return None
        if not self.progress.live:
            return self.end("done")
        self.tell(Planned(NOTHING))
        return self.end("stuck")

    # ONE ITERATION

    def run_iteration(self, plan: Plan) -> Ending | None:
        """Price the plan, deliver its tokens at its end, retire the finished; notice a livelock."""
        number, start = len(self.ends), self.now
        work, emitted, finished = self.progress.settle(plan)
        self.now = self.ends.add(start, self.cost.duration(work))
        self.engine.complete(emitted, finished)
        self.entries += len(plan.entries)
        self.preemptions += len(plan.preempted)
        self.last = Iteration(number, start, self.now, plan, work, emitted, finished)
        self.counter.on_iteration(self.last)
        for observer in self.observers:
            observer.on_iteration(self.last)
        for id in finished:
            self.retire(id, Outcome.COMPLETED, self.now)
        for id in plan.rejected:
            self.retire(id, Outcome.REJECTED, self.now, "refused while planning")
        return self.find_livelock(plan, emitted)

    def count_until_event(self, duration: Ticks, growth: Ticks, most: int) -> int:
        """Count the iterations, at most `most`, up to the first boundary at which something from outside is seen.

        The first lasts `duration`, each further one `growth` longer.
        """
        at = self.next_event()
        if at is None or most <= 0:
            return most
        return 0 if at <= self.now else min(most, count_to_reach(at - self.now, duration, growth))

    def finish_leap(self, first: Iteration, count: int, growth: Ticks) -> None:
        """Retire those who ended with the last of `count` repeating iterations, and tell the observers of all."""
        live = self.progress.live
        finished = tuple(id for id in first.emitted if live[id].known >= live[id].longest)
        first = first._replace(finished=finished)
        self.engine.complete((), finished)
        tell_repeats((self.counter, *self.observers), first, count, growth)
        for id in finished:
            self.retire(id, Outcome.COMPLETED, self.now)

    def find_livelock(self, plan: Plan, emitted: Sequence[str]) -> Ending | None:
        """End the run if its state repeats after a preemption and nothing is left to come that could change it."""
        if emitted:
            self.watch.forget()
        elif plan.preempted and self.next_event() is None:
            period = self.watch.find_period(self.engine.state(), len(self.ends))
            return None if period is None else self.end("livelock", period)
        return None

    # BOOKS

    def take_records(self) -> list[tuple[int, Record]]:
        """Take the records of those who ended since the last time, with the numbers of their offers."""
        if not self.records:
            return []
        records, self.records = self.records, []
        return records

    def tell(self, event: Event) -> None:
        """Tell the observers what came from outside."""
        for observer in self.observers:
            observer.on_event(event)

    def retire(self, id: str, outcome: Outcome, ended: Ticks | None, reason: str | None = None) -> None:
        """Write the record of a request that has ended."""
        number, offer = self.open.pop(id)
        self.keep(number, self.make_record(offer, outcome, self.progress.end(id), ended, reason))

    def keep(self, number: int, record: Record) -> None:
        """Keep the record of a request that has ended."""
        self.records.append((number, record))
        if self.on_end is not None:
            self.on_end()

    def make_record(
        self, offer: Offer, outcome: Outcome, course: Course, ended: Ticks | None, reason: str | None
    ) -> Record:
        """Write what the client and the server saw of a request that was accepted."""
        deliveries = IterationRanges(self.ends, course.all_ranges())
        scheduled = None if course.scheduled is None else self.ends.get_start(course.scheduled)
        first = self.ends[deliveries.ranges[0][0]] if deliveries.ranges else None
        server = Server(queued=offer.at, scheduled=scheduled, first_token=first)
        return make_record(offer, outcome, ended, reason, deliveries, server)

    def end(self, kind: str, period: int | None = None) -> Ending:
        """Say how the run ended, and who is blocked by what if it could not go on."""
        state = self.engine.state()
        live = [(self.open[id][1].request, course.known) for id, course in self.progress.live.items()]
        return Ending(
            kind, len(self.ends), period, state.free, explain_blocked(state, self.limits, live, self.progress.stop)
        )

    def conclude(self, ending: Ending) -> Totals:
        """Account for every request that is still live, and give the totals; a run ends with nothing to come."""
        reasons = {each.id: each.sentence() for each in ending.blocked}
        for id in list(self.progress.live):
            self.retire(id, Outcome.UNFINISHED, None, reasons.get(id))
        events = self.counter.total()
        return Totals(ending, len(self.ends), events, self.entries, self.preemptions, self.ends.last)
