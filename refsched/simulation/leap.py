"""The leap: the same run as the step simulator's, bit for bit, from event to event.

Between two events the plan repeats, and under an affine cost model [decision 10] its iterations last an arithmetic
progression; any number of them is a sum in closed form. Two ways lead there. A cohort (`cohort.py`) follows all
decodes of vLLM V1's rule as one, so that an iteration costs the same for any number of them. For every other rule,
`repeats.py` states how often a plan surely repeats; the iteration after that is stepped. Where nothing is promised,
by a cost model, a rule or a foreign engine, every iteration is stepped.
"""

from collections.abc import Iterable, Iterator, Sequence

from refsched.model import Iteration, Limits
from refsched.record import Record
from refsched.scheduling.engine import Engine, ReferenceEngine
from refsched.scheduling.repeats import advance, count_repeats
from refsched.simulation.cohort import Cohort
from refsched.simulation.cost import CostModel
from refsched.simulation.ending import Ending
from refsched.simulation.observe import Observer, is_plain, move_plan, move_work
from refsched.simulation.step import (
    OnEnd,
    Runner,
    Simulated,
    Stepper,
    Totals,
    run_to_end,
)
from refsched.units import Ticks
from refsched.workload.offer import Offer

TURNS = 256  # iterations, or runs of them, between two looks at who ended: going to and fro for each would cost more


def leap(
    engine: Engine,
    limits: Limits,
    cost: CostModel,
    offers: Iterable[Offer],
    observers: Sequence[Observer] = (),
    stop: str | None = None,
    on_end: OnEnd | None = None,
) -> Simulated:
    """Run `offers` through `engine` as `simulate` does, leaping where the plan surely repeats; raise what it raises."""
    return run_to_end(make_runner(Stepper(engine, limits, cost, offers, observers, stop, on_end)))


def leap_through(
    engine: Engine, limits: Limits, cost: CostModel, offers: Iterator[Offer], on_end: OnEnd | None = None
) -> "PassingRun":
    """Run offers that are read as the run goes on; iterate what this returns to get each Record soon after its end.

    Nothing is kept but live requests and, for the ends of iterations, their progressions. Raise what `leap` raises.
    """
    return PassingRun(make_runner(Stepper(engine, limits, cost, offers, on_end=on_end)))


class PassingRun:
    """Give the records of a run as they come; `totals` are there when all have been given."""

    def __init__(self, runner: Runner):
        self.runner = runner
        self.totals: Totals | None = None

    def get_totals(self) -> Totals:
        """Give the totals; the records must all have been taken."""
        assert self.totals is not None, "the run is not over"
        return self.totals

    def __iter__(self) -> Iterator[Record]:
        ending = None
        while ending is None:
            turns = (self.runner.go_on() for _ in range(TURNS))
            ending = next((each for each in turns if each is not None), None)
            for _, record in self.runner.take_records():
                yield record
        self.totals = self.runner.conclude(ending)
        for _, record in self.runner.take_records():
            yield record


def make_runner(stepper: Stepper) -> Runner:
    """Choose the quickest way to run what a stepper would run."""
    engine = stepper.engine
    if not stepper.cost.affine or not isinstance(engine, ReferenceEngine):
        return stepper
    if is_cohort_rule(engine) and not stepper.observers:
        return Cohort(stepper, engine)
    return Leaper(stepper, engine)


def is_cohort_rule(engine: ReferenceEngine) -> bool:
    """Tell whether a cohort may stand for this engine's decodes: vLLM V1 in admission order, no cache, no oddities."""
    dialect = engine.dialect
    plain = not dialect.prefix_cache and not dialect.decode_limit and dialect.impossible == "reject"
    return dialect.rule == "vllm-v1" and dialect.order == "admission" and plain


class Leaper:
    """Step, and leap over what repeats the step."""

    def __init__(self, stepper: Stepper, engine: ReferenceEngine):
        self.stepper, self.engine = stepper, engine
        self.conclude, self.take_records = stepper.conclude, stepper.take_records

    def go_on(self) -> Ending | None:
        """Run one iteration, or let time pass; then leap over what repeats it."""
        before = len(self.stepper.ends)
        ending = self.stepper.go_on()
        if ending is None and len(self.stepper.ends) > before:
            self.repeat()
        return ending

    def repeat(self) -> None:
        """Leap over the iterations that surely repeat the last one and end before anything else can happen."""
        last = self.stepper.last
        if last is not None and not last.finished and last.plan.entries and is_plain(last.plan):
            duration = self.stepper.cost.duration(move_work(last.work, 1))
            growth = self.stepper.cost.duration(move_work(last.work, 2)) - duration
            count = self.stepper.count_until_event(duration, growth, self.count_repeats(last))
            if count > 0:
                self.leap_over(last, count, duration, growth)

    def count_repeats(self, last: Iteration) -> int:
        """Count how often the last plan surely repeats: by the books of the driver, and by the rule and its pool."""
        by_courses = self.stepper.progress.count_repeats(last.plan)
        return count_repeats(self.engine.queues, self.engine.live, last.plan, by_courses) if by_courses else 0

    def leap_over(self, last: Iteration, count: int, duration: Ticks, growth: Ticks) -> None:
        """Move the driver's books, the engine and the clock on by `count` iterations, and tell the observers."""
        stepper = self.stepper
        number, start = last.number + 1, stepper.now
        plan, work = move_plan(last.plan, 1), move_work(last.work, 1)
        first = Iteration(number, start, start + duration, plan, work, last.emitted, ())
        advance(self.engine.queues, self.engine.live, plan, last.emitted, count)
        stepper.progress.advance(last.emitted, count)
        stepper.now = stepper.ends.add(start, duration, growth, count)
        stepper.entries += count * len(plan.entries)
        stepper.finish_leap(first, count, growth)
