"""The leap: the same run as the step simulator's, bit for bit, from event to event.

Between two events the plan repeats, and under an affine cost model [decision 10] its iterations last an arithmetic
progression; any number of them is a sum in closed form. Two ways lead there. A cohort (`cohort.py`) follows all
decodes of vLLM V1's rule as one, so that an iteration costs the same for any number of them. For every other rule,
`repeats.py` states how often a plan surely repeats; the iteration after that is stepped. Where nothing is promised,
by a cost model, a rule or a foreign engine, every iteration is stepped.
"""

from collections.abc import Iterable, Sequence

from refsched.model import NOTHING, Iteration, Limits
from refsched.scheduling.engine import Engine, ReferenceEngine
from refsched.scheduling.repeats import advance, count_repeats
from refsched.simulation.cohort import Cohort, is_cohort_rule
from refsched.simulation.cost import CostModel
from refsched.simulation.ending import Ending
from refsched.simulation.observe import Observer, is_plain, move_plan, move_work
from refsched.simulation.step import OnEnd, Simulated, Stepper, simulate
from refsched.units import Ticks
from refsched.workload.offer import Offer


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
    if not cost.affine or not isinstance(engine, ReferenceEngine):
        return simulate(engine, limits, cost, offers, observers, stop, on_end)
    stepper = Stepper(engine, limits, cost, offers, observers, stop, on_end)
    if is_cohort_rule(engine) and not observers:
        return Cohort(stepper, engine).run()
    return Leaper(stepper, engine).run()


class Leaper:
    """Step, and leap over what repeats the step."""

    def __init__(self, stepper: Stepper, engine: ReferenceEngine):
        self.stepper, self.engine = stepper, engine

    def run(self) -> Simulated:
        """Run to the end."""
        stepper, ending = self.stepper, None
        while ending is None:
            stepper.see_events()
            plan = stepper.engine.plan() if stepper.progress.live else NOTHING
            if plan.entries or plan.preempted or plan.rejected:
                ending = stepper.run_iteration(plan) or self.repeat()
            else:
                ending = stepper.idle()
        return stepper.conclude(ending, stepper.counter.total())

    def repeat(self) -> Ending | None:
        """Leap over the iterations that surely repeat the last one and end before anything else can happen."""
        last = self.stepper.last
        if last is not None and not last.finished and last.plan.entries and is_plain(last.plan):
            duration = self.stepper.cost.duration(move_work(last.work, 1))
            growth = self.stepper.cost.duration(move_work(last.work, 2)) - duration
            count = self.stepper.count_until_event(duration, growth, self.count_repeats(last))
            if count > 0:
                self.leap_over(last, count, duration, growth)
        return None

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
