"""A Timeline is run-length, and expands to what was observed one by one."""

from hypothesis import given

from refsched.dialect import get_dialect
from refsched.model import Entry, Event, Iteration, Limits, Timeline
from refsched.scheduling.engine import ReferenceEngine
from refsched.simulation.cost import get_cost_model
from refsched.simulation.observe import RunCounter, TimelineRecorder
from refsched.simulation.step import simulate
from tests.simulation.test_properties import asks, limits_strategy, make_offers


class Keeper:
    """Keep every iteration."""

    def __init__(self) -> None:
        self.iterations: list[Iteration] = []

    def on_event(self, event: Event) -> None:
        """Take no notice."""

    def on_iteration(self, iteration: Iteration) -> None:
        """Keep it."""
        self.iterations.append(iteration)


def expand(timeline: Timeline) -> list[tuple[int, int, tuple[Entry, ...], tuple[str, ...]]]:
    """Write out every iteration of a Timeline: start, end, entries, emitted."""
    expanded = []
    for run in timeline.runs:
        start = run.start
        for repeat in range(run.repeats):
            end = start + run.duration + repeat * run.growth
            entries = tuple(Entry(id, first + repeat * count, count) for id, first, count in run.plan.entries)
            expanded.append((start, end, entries, run.emitted))
            start = end
    return expanded


@given(limits=limits_strategy, asked=asks)
def test_a_timeline_expands_to_the_iterations_it_was_made_from(
    limits: Limits, asked: list[tuple[int, int, int, int | None]]
) -> None:
    for rule in ("document-a", "vllm-v1"):
        recorder, keeper, counter = TimelineRecorder(), Keeper(), RunCounter()
        engine = ReferenceEngine(get_dialect(rule), limits)
        simulate(engine, limits, get_cost_model("a100-8b"), make_offers(asked), [recorder, keeper, counter])
        timeline = recorder.timeline()
        assert expand(timeline) == [
            (each.start, each.end, each.plan.entries, each.emitted) for each in keeper.iterations
        ]
        assert len(timeline.runs) == counter.total()


def test_a_long_decode_is_one_run() -> None:
    limits = Limits(8, 4)
    recorder = TimelineRecorder()
    simulate(
        ReferenceEngine(get_dialect("vllm-v1"), limits),
        limits,
        get_cost_model("a100-8b"),
        make_offers([(0, 3, 1000, None)]),
        [recorder],
    )
    prefill, decode = recorder.timeline().runs
    assert (prefill.repeats, decode.repeats, decode.growth) == (1, 999, 81_920)
