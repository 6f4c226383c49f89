"""refsched simulate --dry-run: what is in a workload, before anything is simulated."""

from fractions import Fraction

from refsched.cli.common import get_provenance, limits_to_json, write_json
from refsched.model import Limits
from refsched.simulation.cost import CostModel
from refsched.simulation.utilisation import compute_utilisation
from refsched.units import round_decimal, to_seconds
from refsched.workload.offer import Workload
from refsched.workload.spacing import write_root
from refsched.workload.summary import (
    LENGTHS,
    LengthFacts,
    WorkloadFacts,
    summarise,
    write_facts,
)

LOW = Fraction(1, 10)  # below it requests hardly ever meet, and policies cannot be told apart


def dry_run(workload: Workload, limits: Limits, cost: CostModel, json_file: str | None) -> int:
    """Print and write the facts of a workload, and how busy it would at least keep the device."""
    lengths = sorted({*LENGTHS, *([limits.max_len] if limits.max_len else [])})
    facts = summarise(workload, lengths)
    requests = [offer.request for offer in workload.offers]
    utilisation = compute_utilisation(requests, facts.span, limits, cost)
    write_json(json_file, to_json(facts, utilisation, limits, cost))
    if json_file != "-":
        rows = [*write_facts(facts), ("utilisation, at least", describe_utilisation(utilisation, cost))]
        width = max(len(name) for name, _ in rows)
        print("\n".join(f"{name.ljust(width)}  {value}" for name, value in rows))
    return 0


def describe_utilisation(utilisation: Fraction | None, cost: CostModel) -> str:
    """Say how busy the device is, and what that means where it is extreme."""
    if utilisation is None:
        return "undefined: everything arrives at once"
    text = f"{round_decimal(utilisation, 3)} under cost model {cost.name}"
    if utilisation > 1:
        return text + ": no steady state, the queue grows as long as requests come"
    return text + (": requests hardly meet, so policies cannot be told apart" if utilisation < LOW else "")


def to_json(facts: WorkloadFacts, utilisation: Fraction | None, limits: Limits, cost: CostModel) -> dict[str, object]:
    """Give the facts as a JSON object; times in seconds."""
    spacing, reuse = facts.spacing, facts.reuse
    mean_gap = None if spacing.mean_gap is None else spacing.mean_gap / 10**12
    cv = None if spacing.cv_squared is None else Fraction(write_root(spacing.cv_squared, 6))
    return {
        "workload": {"name": facts.name, "kind": facts.kind, "notes": list(facts.notes)},
        "rows": facts.rows,
        "span_s": to_seconds(facts.span),
        "rate_per_s": facts.rate,
        "gap_s": {"mean": mean_gap, "cv": cv, "longest": to_seconds(spacing.longest_gap), "ties": spacing.ties},
        "prompt_tokens": lengths_to_json(facts.prompt),
        "output_tokens": lengths_to_json(facts.output) | {"single": facts.single_output},
        "above": {str(each.tokens): {"prompts": each.prompts, "totals": each.totals} for each in facts.above},
        "groups": dict(facts.groups),
        "cancels": facts.cancels,
        "reuse": None
        if reuse is None
        else shares_to_json(reuse.ids_reused, reuse.ids, reuse.blocks_reused, reuse.blocks),
        "utilisation_at_least": utilisation,
        "limits": limits_to_json(limits),
        "cost": {"name": cost.name, "label": cost.label},
        "provenance": get_provenance("read from the workload; the utilisation worked out under the cost model"),
    }


def lengths_to_json(facts: LengthFacts) -> dict[str, object]:
    """Give the facts of one length."""
    return {"min": facts.least, "mean": facts.mean, "p50": facts.p50, "max": facts.most, "total": facts.total}


def shares_to_json(ids_reused: int, ids: int, blocks_reused: int, blocks: int) -> dict[str, object]:
    """Give what a boundless prefix cache would find: of all hash ids, and of full blocks only."""
    return {
        "ids": ids,
        "ids_reused": ids_reused,
        "share": Fraction(ids_reused, ids),
        "full_blocks": blocks,
        "full_blocks_reused": blocks_reused,
        "full_block_share": Fraction(blocks_reused, blocks) if blocks else None,
    }
