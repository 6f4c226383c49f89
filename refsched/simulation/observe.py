"""Observers: what may watch a run go by. A run stores nothing that nobody asked for."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, runtime_checkable

from refsched.model import Entry, Event, Iteration, Plan, Timeline, TimelineRun, Work
from refsched.units import Ticks


class Observer(Protocol):
    """Be told every submission and cancellation, and every iteration, in order."""

    def on_event(self, event: Event) -> None: ...
    def on_iteration(self, iteration: Iteration) -> None: ...


@runtime_checkable
class RepeatObserver(Protocol):
    """Be told of repeating iterations at once: the first, and how many there are; each lasts `growth` longer."""

    def on_repeats(self, first: Iteration, repeats: int, growth: Ticks) -> None: ...


def tell_repeats(observers: Sequence[Observer], first: Iteration, repeats: int, growth: Ticks) -> None:
    """Tell each observer of `repeats` iterations, one by one where it wants them so."""
    for observer in observers:
        if isinstance(observer, RepeatObserver):
            observer.on_repeats(first, repeats, growth)
        else:
            for iteration in expand(first, repeats, growth):
                observer.on_iteration(iteration)


def expand(first: Iteration, repeats: int, growth: Ticks) -> Iterator[Iteration]:
    """Write out repeating iterations; whoever is finished is finished with the last."""
    start, duration = first.start, first.end - first.start
    for times in range(repeats):
        end = start + duration + times * growth
        finished = first.finished if times == repeats - 1 else ()
        plan, work = (
            (first.plan, first.work) if times == 0 else (move_plan(first.plan, times), move_work(first.work, times))
        )
        yield Iteration(first.number + times, start, end, plan, work, first.emitted, finished)
        start = end


def move_work(work: Work, times: int) -> Work:
    """Give the work of a plan that was repeated `times` times."""
    if not work.chunks:
        return Work((), work.decodes, work.context + times * work.decodes)
    chunks = tuple((start + times * count, count) for start, count in work.chunks)
    return Work(chunks, work.decodes, work.context + times * work.decodes)


def move_plan(plan: Plan, times: int) -> Plan:
    """Give a plan moved on by `times` repetitions."""
    return Plan(tuple(Entry(id, start + times * count, count) for id, start, count in plan.entries))


class RunFinder:
    """Find maximal runs of repeating iterations and hand each to `receive` when it has ended."""

    def __init__(self, receive: Callable[[TimelineRun], None]):
        self.receive = receive
        self.first: Iteration | None = None  # of the open run
        self.last: Iteration | None = None  # the first of the last iterations that were told at once,
        self.repeats = 1  # how many those were,
        self.end: Ticks = 0  # when the last of them ended,
        self.duration: Ticks = 0  # and how long that one lasted
        self.growth: Ticks = 0
        self.count = 0

    def on_event(self, event: Event) -> None:
        """Take no notice: an arrival that changes no plan ends no run."""

    def on_iteration(self, iteration: Iteration) -> None:
        """Add one iteration."""
        self.on_repeats(iteration, 1, 0)

    def on_repeats(self, first: Iteration, repeats: int, growth: Ticks) -> None:
        """Add iterations to the open run, or close that and open a new one."""
        duration = first.end - first.start
        if self.last is not None and self.is_next(self.last, first):
            self.growth = duration - self.duration
        else:
            self.close()
            self.first, self.growth, self.count = first, growth, 0
        self.last, self.repeats, self.count = first, repeats, self.count + repeats
        self.duration = duration + (repeats - 1) * growth
        self.end = first.end + (repeats - 1) * duration + growth * (repeats - 1) * repeats // 2

    def is_next(self, last: Iteration, next: Iteration) -> bool:
        """Tell whether `next` repeats the open run: back to back, same plan moved on, same step of the duration."""
        return (
            next.start == self.end
            and next.emitted == last.emitted
            and next.work.decodes == last.work.decodes
            and (self.count == 1 or next.end - next.start - self.duration == self.growth)
            and is_repeated(last.plan, next.plan, next.work.decodes, self.repeats)
        )

    def close(self) -> None:
        """Hand over the open run, if there is one."""
        if self.first is not None:
            first = self.first
            run = TimelineRun(first.start, first.end - first.start, self.growth, self.count, first.plan, first.emitted)
            self.receive(run)
        self.first = self.last = None


def is_repeated(last: Plan, next: Plan, decodes: int, repeats: int = 1) -> bool:
    """Tell whether every entry of `next` goes on where that of `last`, repeated, ended, and nothing else happened.

    Where both emit for the same requests and plan nothing but decodes, the entries need no comparing: a decode
    starts at the last known token, and each request learned exactly one.
    """
    if len(last.entries) != len(next.entries) or not is_plain(last) or not is_plain(next):
        return False
    if decodes == len(next.entries):
        return True
    return all(
        old.id == new.id and old.count == new.count and old.start + repeats * old.count == new.start
        for old, new in zip(last.entries, next.entries, strict=True)
    )


def is_plain(plan: Plan) -> bool:
    """Tell whether a plan holds entries only."""
    return not (plan.preempted or plan.rejected or plan.cached)


class TimelineRecorder:
    """Keep the whole Timeline; memory follows the number of runs times their width."""

    def __init__(self) -> None:
        self.runs: list[TimelineRun] = []
        self.finder = RunFinder(self.runs.append)

    def on_event(self, event: Event) -> None:
        """Take no notice."""

    def on_iteration(self, iteration: Iteration) -> None:
        """Pass the iteration to the finder of runs."""
        self.finder.on_iteration(iteration)

    def on_repeats(self, first: Iteration, repeats: int, growth: Ticks) -> None:
        """Pass the iterations to the finder of runs."""
        self.finder.on_repeats(first, repeats, growth)

    def timeline(self) -> Timeline:
        """Close the last run and return all of them."""
        self.finder.close()
        return Timeline(tuple(self.runs))


class RunCounter:
    """Count the runs of a Timeline without keeping them."""

    def __init__(self) -> None:
        self.count = 0
        self.finder = RunFinder(self.add)

    def add(self, run: TimelineRun) -> None:
        """Count one run."""
        self.count += 1

    def on_event(self, event: Event) -> None:
        """Take no notice."""

    def on_iteration(self, iteration: Iteration) -> None:
        """Pass the iteration to the finder of runs."""
        self.finder.on_iteration(iteration)

    def on_repeats(self, first: Iteration, repeats: int, growth: Ticks) -> None:
        """Pass the iterations to the finder of runs."""
        self.finder.on_repeats(first, repeats, growth)

    def total(self) -> int:
        """Close the last run and return the count."""
        self.finder.close()
        return self.count
