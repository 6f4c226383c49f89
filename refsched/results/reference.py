"""The same quantities under the reference definitions, from the Records of a run."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from refsched.metrics.collect import collect
from refsched.metrics.goodput import Goodput, Policy, Slo, compute_goodput
from refsched.metrics.measure import Measured, Settings, Summary, measure
from refsched.record import Outcome, Record
from refsched.results.run import CUT, Run
from refsched.units import TICKS_PER_SECOND

POLICIES = (
    Policy("pass", "count", "offered"),
    Policy("fail", "count", "offered"),
    Policy("exclude", "count", "offered"),
    Policy("pass", "drop", "completed"),
    Policy("fail", "drop", "completed"),
    Policy("exclude", "drop", "completed"),
)
SHARED = {"ttft": "ttft.any", "tpot": "tpot.decode/(n-1)", "itl": "itl.chunk", "e2e": "e2e.last_token"}
ANOTHER = {
    "e2e.last_token": "e2e.stream_end",
    "ttft.any": "ttft.content",
}  # what stands in where a file does not support the first
ASKED = {"ttft": "ttft.any", "tpot": "tpot.decode/(n-1)", "e2e": "e2e.last_token", "itl": "tpot.decode/(n-1)"}


@dataclass(frozen=True, slots=True)
class Reference:
    """Hold the measured block of a run, and the populations of it that the run's files support."""

    measured: Measured
    populations: Mapping[str, Summary]
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class View:
    """Hold goodput under one policy, and whose idea of success it follows."""

    success: str  # "as the tool counts it" | "as the file shows it"
    goodput: Goodput


def make_reference(run: Run, method: str) -> Reference | None:
    """Measure the Records of a run; None where its files hold none."""
    if not run.records:
        return None
    measured = measure(run.records, settings=Settings(method=method))
    kept = {name: each for name, each in measured.populations.items() if name not in run.without and each.n}
    left = tuple(name for name in measured.populations if name in run.without)
    return Reference(measured, kept, left)


def compare_claims(run: Run, reference: Reference) -> Iterator[tuple[str, str, Decimal, Fraction | None]]:
    """Give each latency that the tool reports beside the reference: statistic, definition, and both in seconds."""
    for name, definition in SHARED.items():
        chosen = choose(definition, run.without)
        population = reference.populations.get(chosen)
        for statistic, label in (("mean", "mean"), ("median", "p50"), ("p99", "p99")):
            value = run.claims.get(f"{statistic}_{name}")
            if value is not None and population is not None:
                again = population.mean if label == "mean" else population.quantiles[label]
                yield f"{statistic} {name}", chosen, value, None if again is None else again / TICKS_PER_SECOND


def choose(name: str, without: frozenset[str]) -> str:
    """Give the definition to use: another one where the file does not support the first."""
    return ANOTHER.get(name, name) if name in without else name


# GOODPUT


def translate(slos: Mapping[str, Decimal], run: Run) -> tuple[list[Slo], list[str]]:
    """Turn a tool's own targets into conditions; return them and the names of those that the file cannot judge."""
    conditions = [Slo(ASKED[name], int(limit * TICKS_PER_SECOND)) for name, limit in slos.items() if name in ASKED]
    return keep_known(conditions, run)


def keep_known(conditions: Sequence[Slo], run: Run) -> tuple[list[Slo], list[str]]:
    """Keep the conditions that the file can judge, and name the others."""
    chosen = [Slo(choose(slo.name, run.without), slo.most) for slo in conditions]
    kept = [slo for slo in chosen if slo.name not in run.without]
    return kept, [slo.name for slo in chosen if slo.name in run.without]


def part_unknown(run: Run, conditions: Sequence[Slo]) -> tuple[list[Slo], list[str]]:
    """Part the conditions that no request of the file can be judged by, such as a TPOT without token counts."""
    if not conditions or not run.records:
        return list(conditions), []
    fared = compute_goodput(collect(run.records), conditions, POLICIES[0], None).conditions
    known = [each.slo for each in fared if each.met or each.missed or not each.unknown]
    return known, [slo.name for slo in conditions if slo not in known]


def compute_views(run: Run, conditions: Sequence[Slo]) -> list[View]:
    """Compute goodput under every policy, by the tool's idea of success and, where it differs, by the file's."""
    views = [("as the file shows it", run.records)]
    if any(record.reason == CUT for record in run.records):
        views.insert(0, ("as the tool counts it", tuple(map(count_as_success, run.records))))
    seconds = find_seconds(run)
    found = []
    for success, records in views:
        columns = collect(records)
        found += [View(success, compute_goodput(columns, conditions, policy, seconds)) for policy in POLICIES]
    return found


def count_as_success(record: Record) -> Record:
    """Take a stream that was cut for a success, as the tool does."""
    return replace(record, outcome=Outcome.COMPLETED, reason=None) if record.reason == CUT else record


def find_seconds(run: Run) -> Fraction | None:
    """Give the duration that the tool reports, over which rates are taken."""
    duration = run.claims.get("duration")
    return Fraction(duration) if duration else None
