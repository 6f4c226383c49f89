"""What `refsched simulate` says of a run, as JSON and as text."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from refsched.cli.common import get_provenance, limits_to_json, quote
from refsched.metrics.measure import Measured
from refsched.model import Limits
from refsched.report import measured as block
from refsched.scheduling.engine import ReferenceEngine
from refsched.simulation.cost import CostModel
from refsched.simulation.cost_range import list_warnings
from refsched.simulation.fleet import Fleet, Member
from refsched.simulation.step import Simulated, Totals
from refsched.units import round_decimal, to_seconds
from refsched.workload.offer import Workload

MOST_SENTENCES = 12
TOTALS: Mapping[str, Callable[[Simulated | Totals], int]] = {
    "iterations": lambda run: run.iterations,
    "events": lambda run: run.events,
    "preemptions": lambda run: run.preemptions,
    "request_steps": lambda run: run.entries,
}


@dataclass(frozen=True, slots=True)
class Report:
    """Hold a run, of one engine or of several, with everything that its numbers depend on."""

    fleet: Fleet
    measured: Measured
    limits: Limits
    cost: CostModel
    workload: Workload
    method: str
    cache_start: str  # cold | warm

    def total(self, name: str) -> int:
        """Add one of the totals up over all engines."""
        return sum(TOTALS[name](run) for run in self.fleet.runs)


def to_json(report: Report) -> dict[str, object]:
    """Give everything about a run as one object."""
    page, cost = block.to_json(report.measured), report.cost
    members, runs = report.fleet.members, report.fleet.runs
    several = (
        [member_to_json(*each) for each in zip(members, runs, report.fleet.offered, strict=True)]
        if len(members) > 1
        else None
    )
    return {
        "counts": page.pop("counts"),
        **{name: report.total(name) for name in TOTALS},
        "makespan_s": to_seconds(max(run.makespan for run in runs)),
        "outcome": outcome_to_json(runs),
        "method": report.method,
        "engine": engine_to_json(members[0].engine),
        "limits": limits_to_json(report.limits),
        "cost": {"name": cost.name, "label": cost.label, "parameters": dict(cost.describe())},
        "warnings": list_warnings(cost, report.limits),
        "workload": workload_to_json(report),
        "provenance": get_provenance(f"simulated under cost model {cost.name}"),
        **page,
        "kv": kv_to_json(members, report),
        **({"engines": several} if several else {}),
        "groups": page.get("groups", {}),
    }


def engine_to_json(engine: ReferenceEngine) -> dict[str, object]:
    """Give the rule and the resulting set of its options."""
    dialect = engine.dialect
    return {"name": dialect.name, "rule": dialect.rule, "dialect": dialect.options()}


def outcome_to_json(runs: Iterable[Simulated | Totals]) -> dict[str, object]:
    """Give how the run ended and, if an engine could not go on, who was blocked by what."""
    endings = [run.ending for run in runs]
    worst = max(endings, key=lambda ending: ("done", "stuck", "livelock").index(ending.kind))
    page: dict[str, object] = {"kind": worst.kind, "iterations": sum(ending.iterations for ending in endings)}
    if worst.kind != "done":
        unfinished = [each.id for ending in endings for each in ending.blocked]
        because = [sentence for ending in endings for sentence in ending.sentences()]
        page |= {"period": worst.period, "unfinished": unfinished, "because": because}
    return page


def kv_to_json(members: Iterable[Member], report: Report) -> dict[str, object]:
    """Give the KV pools and how much of them was used at most, each at its own time; and what a prefix cache found."""
    limits, pools = report.limits, [member.engine.queues.pool for member in members]
    page: dict[str, object] = {
        "peak_blocks": sum(pool.peak() for pool in pools),
        "num_blocks": limits.num_blocks,
        "block_size": limits.block_size,
    }
    found = [reuse for member in members if (reuse := member.engine.reuse()) is not None]
    if found:
        tokens, cached = sum(each.tokens for each in found), sum(each.cached for each in found)
        blocks, cached_blocks = sum(each.blocks for each in found), sum(each.cached_blocks for each in found)
        page["prefix_cache"] = {
            "start": report.cache_start,
            "prompt_tokens": tokens,
            "cached_tokens": cached,
            "token_share": block.divide(cached, tokens),
            "prompt_blocks": blocks,
            "cached_blocks": cached_blocks,
            "block_share": block.divide(cached_blocks, blocks),
            "boundless_share": get_boundless_share(report.workload),
        }
    return page


def get_boundless_share(workload: Workload) -> Fraction | None:
    """Give the share of a workload's block numbers, partial last blocks included, that a boundless cache finds."""
    return block.divide(int(workload.source.get("hash_ids_reused", 0)), int(workload.source.get("hash_ids", 0)))


def member_to_json(member: Member, run: Simulated | Totals, offered: int) -> dict[str, object]:
    """Give one engine of several."""
    return {
        "name": member.name,
        "offered": offered,
        "limits": limits_to_json(member.limits),
        **{name: total(run) for name, total in TOTALS.items()},
        "makespan_s": to_seconds(run.makespan),
        "outcome": run.ending.kind,
        "peak_blocks": member.engine.queues.pool.peak(),
    }


def workload_to_json(report: Report) -> dict[str, object]:
    """Give where the offers come from and what was odd about them."""
    workload, offered = report.workload, report.measured.counts["offered"]
    page: dict[str, object] = {"name": workload.name, "kind": workload.kind, "offers": offered}
    return page | {**workload.source, "notes": list(workload.notes)}


# TEXT


def format_text(report: Report) -> str:
    """Lay out a run so that a person reads it at a glance."""
    measured, workload = report.measured, report.workload
    unit = "iterations" if report.cost.name == "unit" else "s"
    sentences = [sentence for run in report.fleet.runs for sentence in run.ending.sentences()]
    return "\n".join(
        [
            f"{workload.name}: {measured.counts['offered']:,} requests offered ({workload.kind})",
            *(f"  note: {note}" for note in workload.notes),
            *format_run(report, unit),
            *(f"  {sentence}" for sentence in sentences[:MOST_SENTENCES]),
            "",
            block.format_latency(measured.latency, unit),
            *(f"\ngroup {name}\n{block.format_latency(each.latency, unit)}" for name, each in measured.groups.items()),
            "",
            *format_definitions(measured),
            *format_provenance(report),
        ]
    )


def format_run(report: Report, unit: str) -> Iterable[str]:
    """Say how the run ended, what was delivered, how long the queue got, how full the pool."""
    measured, runs = report.measured, report.fleet.runs
    counts = ", ".join(f"{count:,} {name}" for name, count in measured.counts.items() if count and name != "offered")
    kinds = ", ".join(dict.fromkeys(run.ending.kind for run in runs))
    rates, backlog = measured.throughput, measured.backlog
    seconds = round_decimal(to_seconds(max(run.makespan for run in runs)), 3)
    return [
        f"outcome    {kinds}: {counts or 'nothing'}",
        f"run        {report.total('iterations'):,} iterations, {seconds} {unit}, "
        f"{report.total('preemptions'):,} preemptions",
        f"throughput {block.format_rate(rates.output_tokens)} output tokens, "
        f"{block.format_rate(rates.total_tokens)} input + output, {block.format_rate(rates.requests)} requests",
        f"backlog    at most {backlog.peak:,} in the system ({backlog.peak_without_first_token:,} without a first "
        f"token), {backlog.at_last_send:,} when the last was sent",
        *format_pools(report),
    ]


def format_pools(report: Report) -> Iterable[str]:
    """Say how full each pool got, and what a prefix cache found."""
    for member in report.fleet.members:
        name = f" of {member.name}" if len(report.fleet.members) > 1 else ""
        pool = "without limit" if member.limits.num_blocks is None else f"of {member.limits.num_blocks:,}"
        peak = member.engine.queues.pool.peak()
        yield f"KV{name} ".ljust(11) + f"at most {peak:,} blocks {pool}, {member.limits.block_size} tokens each"
        reuse = member.engine.reuse()
        if reuse is not None:
            share, blocks = block.format_share(reuse.share()), block.format_share(reuse.block_share())
            yield (
                f"cache{name}".ljust(11)
                + f"{share} of prompt tokens found ({blocks} of blocks), {report.cache_start} at the start"
            )


def format_definitions(measured: Measured) -> Iterable[str]:
    """Say what each row means, and which definition of quantiles applies."""
    meanings = [f"{block.NAMES[name]}: {meaning}" for name, meaning in block.MEANINGS.items()]
    return [
        *meanings,
        f"quantiles: {measured.method}, over completed requests; rates over the time from first send to last end",
    ]


def format_provenance(report: Report) -> Iterable[str]:
    """Say under which rule, limits and cost model all of this was simulated."""
    dialect, cost = report.fleet.members[0].engine.dialect, report.cost
    options = ", ".join(f"{name}={quote(value)}" for name, value in dialect.options().items())
    lines = [f"engine: {dialect.name} ({options})"]
    for member in report.fleet.members:
        bounds = ", ".join(
            f"{name} {value:,}" for name, value in limits_to_json(member.limits).items() if isinstance(value, int)
        )
        lines.append(f"limits: {bounds}" if len(report.fleet.members) == 1 else f"limits of {member.name}: {bounds}")
    warnings = [f"warning: {warning}" for warning in list_warnings(cost, report.limits)]
    return [*lines, f"simulated under cost model {cost.name}: {cost.label}", *warnings]
