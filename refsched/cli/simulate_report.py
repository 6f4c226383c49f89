"""What `refsched simulate` says of a run, as JSON and as text."""

from collections.abc import Iterable
from dataclasses import dataclass

from refsched.cli.common import get_provenance, limits_to_json, quote
from refsched.dialect import Dialect
from refsched.metrics.measure import Measured
from refsched.model import Limits
from refsched.report import measured as block
from refsched.scheduling.engine import ReferenceEngine
from refsched.simulation.cost import CostModel
from refsched.simulation.step import Simulated
from refsched.units import round_decimal, to_seconds
from refsched.workload.offer import Workload

MOST_SENTENCES = 12


@dataclass(frozen=True, slots=True)
class Report:
    """Hold a run with everything that its numbers depend on."""

    simulated: Simulated
    measured: Measured
    events: int
    engine: ReferenceEngine
    dialect: Dialect
    limits: Limits
    cost: CostModel
    workload: Workload


# JSON


def to_json(report: Report) -> dict[str, object]:
    """Give everything about a run as one object."""
    page, simulated, dialect, cost = block.to_json(report.measured), report.simulated, report.dialect, report.cost
    return {
        "counts": page.pop("counts"),
        "iterations": simulated.iterations,
        "events": report.events,
        "preemptions": simulated.preemptions,
        "request_steps": simulated.entries,
        "makespan_s": to_seconds(simulated.makespan),
        "outcome": outcome_to_json(simulated),
        "engine": {"name": dialect.name, "rule": dialect.rule, "dialect": dialect.options()},
        "limits": limits_to_json(report.limits),
        "cost": {"name": cost.name, "label": cost.label, "parameters": dict(cost.describe())},
        "workload": workload_to_json(report.workload),
        "provenance": get_provenance(f"simulated under cost model {cost.name}"),
        **page,
        "kv": kv_to_json(report),
        "groups": page.get("groups", {}),
    }


def outcome_to_json(simulated: Simulated) -> dict[str, object]:
    """Give how the run ended and, if it could not go on, who was blocked by what."""
    ending = simulated.ending
    page: dict[str, object] = {"kind": ending.kind, "iterations": ending.iterations}
    if ending.kind != "done":
        page |= {
            "period": ending.period,
            "unfinished": [each.id for each in ending.blocked],
            "because": ending.sentences(),
        }
    return page


def kv_to_json(report: Report) -> dict[str, object]:
    """Give the KV pool and how much of it was used at most."""
    limits = report.limits
    peak = report.engine.queues.pool.peak()
    return {"peak_blocks": peak, "num_blocks": limits.num_blocks, "block_size": limits.block_size}


def workload_to_json(workload: Workload) -> dict[str, object]:
    """Give where the offers come from and what was odd about them."""
    return {
        "name": workload.name,
        "kind": workload.kind,
        "offers": len(workload.offers),
        **workload.source,
        "notes": list(workload.notes),
    }


# TEXT


def format_text(report: Report) -> str:
    """Lay out a run so that a person reads it at a glance."""
    measured, workload = report.measured, report.workload
    unit = "iterations" if report.cost.name == "unit" else "s"
    return "\n".join(
        [
            f"{workload.name}: {len(workload.offers):,} requests offered ({workload.kind})",
            *(f"  note: {note}" for note in workload.notes),
            *format_run(report, unit),
            *(f"  {sentence}" for sentence in report.simulated.ending.sentences()[:MOST_SENTENCES]),
            "",
            block.format_latency(measured.latency, unit),
            *(
                f"\ngroup {name}\n{block.format_latency(group.latency, unit)}"
                for name, group in measured.groups.items()
            ),
            "",
            *format_definitions(measured),
            *format_provenance(report),
        ]
    )


def format_run(report: Report, unit: str) -> Iterable[str]:
    """Say how the run ended, what was delivered, how long the queue got, how full the pool."""
    simulated, measured, limits = report.simulated, report.measured, report.limits
    counts = ", ".join(f"{count:,} {name}" for name, count in measured.counts.items() if count and name != "offered")
    rates, backlog = measured.throughput, measured.backlog
    pool = "without limit" if limits.num_blocks is None else f"of {limits.num_blocks:,}"
    seconds = round_decimal(to_seconds(simulated.makespan), 3)
    return [
        f"outcome    {simulated.ending.kind}: {counts or 'nothing'}",
        f"run        {simulated.iterations:,} iterations, {seconds} {unit}, {simulated.preemptions:,} preemptions",
        f"throughput {block.format_rate(rates.output_tokens)} output tokens, "
        f"{block.format_rate(rates.total_tokens)} input + output, {block.format_rate(rates.requests)} requests",
        f"backlog    at most {backlog.peak:,} in the system ({backlog.peak_without_first_token:,} without a first "
        f"token), {backlog.at_last_send:,} when the last was sent",
        f"KV         at most {report.engine.queues.pool.peak():,} blocks {pool}, {limits.block_size} tokens each",
    ]


def format_definitions(measured: Measured) -> Iterable[str]:
    """Say what each row means, and which definition of quantiles applies."""
    meanings = [f"{block.NAMES[name]}: {meaning}" for name, meaning in block.MEANINGS.items()]
    return [
        *meanings,
        f"quantiles: {measured.method}, over completed requests; rates over the time from first send to last end",
    ]


def format_provenance(report: Report) -> Iterable[str]:
    """Say under which rule, limits and cost model all of this was simulated."""
    dialect, cost = report.dialect, report.cost
    options = ", ".join(f"{name}={quote(value)}" for name, value in dialect.options().items())
    bounds = ", ".join(
        f"{name} {value:,}" for name, value in limits_to_json(report.limits).items() if isinstance(value, int)
    )
    return [
        f"engine: {dialect.name} ({options})",
        f"limits: {bounds}",
        f"simulated under cost model {cost.name}: {cost.label}",
    ]
