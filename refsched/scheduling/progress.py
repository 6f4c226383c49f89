"""The driver's side of the protocol: which planned requests get an output token, and which of them end.

An entry that reaches the end of the known tokens yields one output token, the first output included [decision 1].
A request ends at its output count, or where its known tokens reach max_len (choice `stop`: some engines let them
exceed it, or never look). The driver keeps its own books: it trusts nothing of the engine but the plan.
"""

from collections.abc import Sequence

from refsched.errors import EngineError
from refsched.model import Entry, Limits, Plan, Request, Work
from refsched.scheduling.kv import get_longest
from refsched.units import UNLIMITED, Tokens


class Course:
    """Follow one request from the driver's side; `emitting_since` opens its current range of emitting iterations."""

    __slots__ = ("emitting_since", "known", "last_emission", "longest", "prompt", "ranges", "scheduled")

    def __init__(self, request: Request, limits: Limits, stop: str):
        self.prompt: Tokens = request.prompt
        self.known: Tokens = request.prompt
        self.longest: Tokens = request.prompt + request.output
        if limits.max_len is not None:
            self.longest = get_longest(request, limits, stop)
        self.scheduled: int | None = None  # first iteration that planned it
        self.emitting_since = self.last_emission = -2
        self.ranges: list[tuple[int, int]] = []

    def all_ranges(self) -> tuple[tuple[int, int], ...]:
        """Give the half-open ranges of iterations at whose ends this request got a token."""
        if self.emitting_since < 0:
            return tuple(self.ranges)
        return (*self.ranges, (self.emitting_since, self.last_emission + 1))


class Progress:
    """Follow all live requests; one call settles one iteration."""

    def __init__(self, limits: Limits, stop: str = "reaches"):
        self.limits = limits
        self.stop = stop
        self.live: dict[str, Course] = {}
        self.iteration = -1

    def start(self, request: Request) -> None:
        """Follow a request that the engine accepted."""
        self.live[request.id] = Course(request, self.limits, self.stop)

    def settle(self, plan: Plan) -> tuple[Work, tuple[str, ...], tuple[str, ...]]:
        """Count the work of a plan, and name who emits a token at its end and who is finished with it.

        A decode is an entry of one token past the prompt that reaches the end of the known tokens; every other
        entry is a prefill chunk, recomputation after a preemption included. Raise EngineError for an entry that names
        no live request or tokens that it does not know.
        """
        self.iteration = iteration = self.iteration + 1
        live, chunks, emitted, finished = self.live, [], [], []
        decodes = context = 0
        for id, start, count in plan.entries:
            if id not in live:
                raise EngineError(f"iteration {iteration}: the plan names {id!r}, which is not live")
            course, end = live[id], start + count
            if count == 1 and end == course.known > course.prompt:
                decodes += 1
                context += start
            else:
                if count < 1 or start < 0 or end > course.known:
                    raise EngineError(explain_entry(Entry(id, start, count), course.known))
                chunks.append((start, count))
                course.scheduled = iteration if course.scheduled is None else course.scheduled
                if end < course.known:
                    continue
            course.known = end + 1
            if course.last_emission != iteration - 1:
                open_range(course, iteration)
            course.last_emission = iteration
            emitted.append(id)
            if end + 1 >= course.longest:
                finished.append(id)
        return Work(tuple(chunks), decodes, context), tuple(emitted), tuple(finished)

    def count_repeats(self, plan: Plan) -> int:
        """Count how often a plan just settled can repeat until somebody ends or a chunk would end a prompt."""
        most = UNLIMITED
        for id, start, count in plan.entries:
            course = self.live[id]
            if course.last_emission != self.iteration:
                most = min(most, (course.known - start - count - 1) // count)
            elif course.emitting_since < self.iteration:
                most = min(most, course.longest - course.known)
            else:
                return 0  # it reached its last known token as a chunk, and a rule with phases sees a decode from now on
        return most

    def advance(self, emitted: Sequence[str], repeats: int) -> None:
        """Count `repeats` more iterations in which the same requests emit."""
        self.iteration += repeats
        for id in emitted:
            course = self.live[id]
            course.known += repeats
            course.last_emission = self.iteration

    def end(self, id: str) -> Course:
        """Stop following a request, and return its course."""
        return self.live.pop(id)


def open_range(course: Course, iteration: int) -> None:
    """Begin a new range of emitting iterations, closing the one before it."""
    if course.emitting_since >= 0:
        course.ranges.append((course.emitting_since, course.last_emission + 1))
    course.emitting_since = iteration


def explain_entry(entry: Entry, known: Tokens) -> str:
    """Say why an entry cannot be carried out at all."""
    return f"the plan gives {entry.id} {entry.count} tokens from position {entry.start}; it knows {known}"
