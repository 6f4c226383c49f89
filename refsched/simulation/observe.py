"""Observers: what may watch a run go by. A run stores nothing that nobody asked for."""

from collections.abc import Callable
from typing import Protocol

from refsched.model import Event, Iteration, Plan, Timeline, TimelineRun
from refsched.units import Ticks


class Observer(Protocol):
    """Be told every submission and cancellation, and every iteration, in order."""

    def on_event(self, event: Event) -> None: ...
    def on_iteration(self, iteration: Iteration) -> None: ...


class RunFinder:
    """Find maximal runs of repeating iterations and hand each to `receive` when it has ended."""

    def __init__(self, receive: Callable[[TimelineRun], None]):
        self.receive = receive
        self.first: Iteration | None = None
        self.last: Iteration | None = None
        self.growth: Ticks = 0
        self.count = 0

    def on_event(self, event: Event) -> None:
        """Take no notice: an arrival that changes no plan ends no run."""

    def on_iteration(self, iteration: Iteration) -> None:
        """Add the iteration to the open run, or close that and open a new one."""
        if self.last is not None and self.is_next(self.last, iteration):
            self.growth = iteration.end - iteration.start - (self.last.end - self.last.start)
            self.count += 1
        else:
            self.close()
            self.first, self.growth, self.count = iteration, 0, 1
        self.last = iteration

    def is_next(self, last: Iteration, next: Iteration) -> bool:
        """Tell whether `next` repeats the open run: back to back, same plan moved on, same step of the duration."""
        growth = next.end - next.start - (last.end - last.start)
        return (
            next.start == last.end
            and next.emitted == last.emitted
            and next.work.decodes == last.work.decodes
            and (self.count == 1 or growth == self.growth)
            and is_repeated(last.plan, next.plan, next.work.decodes)
        )

    def close(self) -> None:
        """Hand over the open run, if there is one."""
        if self.first is not None:
            first = self.first
            run = TimelineRun(first.start, first.end - first.start, self.growth, self.count, first.plan, first.emitted)
            self.receive(run)
        self.first = self.last = None


def is_repeated(last: Plan, next: Plan, decodes: int) -> bool:
    """Tell whether every entry of `next` goes on where the same entry of `last` ended, and nothing else happened.

    Where both emit for the same requests and plan nothing but decodes, the entries need no comparing: a decode
    starts at the last known token, and each request learned exactly one.
    """
    if len(last.entries) != len(next.entries) or not is_plain(last) or not is_plain(next):
        return False
    if decodes == len(next.entries):
        return True
    return all(
        old.id == new.id and old.count == new.count and old.start + old.count == new.start
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

    def total(self) -> int:
        """Close the last run and return the count."""
        self.finder.close()
        return self.count
