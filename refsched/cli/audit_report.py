"""What an audit found, as JSON and as text."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction

from refsched.metrics.goodput import Slo
from refsched.report.json_text import get_exact
from refsched.report.measured import to_json as block_to_json
from refsched.report.table import format_table
from refsched.results.compare import Difference, Side, change
from refsched.results.reference import Reference, View, compare_claims
from refsched.results.run import UNSUPPORTED, Finding, Reported, Run
from refsched.units import TICKS_PER_SECOND, round_decimal, to_seconds

Json = dict[str, object]
DIGITS = 17
BY_POPULATION = ("populations", "confidence", "means", "with_failures")
LEFT_OUT = ("latency", "goodput", "stalls", "groups", "windows")


@dataclass(frozen=True, slots=True)
class Audit:
    """Hold everything that was found about one run."""

    run: Run
    reference: Reference | None
    contradictions: Sequence[Finding]
    traps: Sequence[Finding]
    conditions: Sequence[Slo]
    unjudged: Sequence[str]
    views: Sequence[View]


# JSON


def to_json(audit: Audit) -> Json:
    """Give one audit as a JSON object."""
    run = audit.run
    return {
        "tool": run.tool,
        "run": run.label,
        "files": list(run.files),
        "success": {
            "counted": run.success.counted,
            "shown": run.success.shown if run.success.shown is not None else "cannot be known from this file",
            "because": run.success.because,
        },
        "reported": [reported_to_json(line) for line in run.reported],
        "reference": None if audit.reference is None else reference_to_json(run, audit.reference),
        "contradictions": [finding._asdict() for finding in audit.contradictions],
        "traps": [finding._asdict() for finding in audit.traps],
        "goodput": goodput_to_json(audit),
        "limits": list(run.limits),
    }


def reported_to_json(line: Reported) -> Json:
    """Give one reported number and what came of computing it again."""
    page = {name: getattr(line, name) for name in ("name", "value", "unit", "reproduced", "definition")}
    page["value"] = None if line.value is None else Fraction(line.value)
    return page | {"computed": shorten(line.computed), "reason": line.reason}


def shorten(value: Decimal | None) -> Fraction | None:
    """Round a recomputed number to 17 significant digits, as many as a double has."""
    if value is None:
        return None
    places = DIGITS - 1 - value.adjusted() if value else 0
    return Fraction(round(Fraction(value) * Fraction(10) ** places)) / Fraction(10) ** places


def reference_to_json(run: Run, reference: Reference) -> Json:
    """Give the measured block without what the files do not support, and the claims beside it."""
    block = block_to_json(reference.measured)
    for name in BY_POPULATION:
        part = block.get(name)
        if isinstance(part, Mapping):
            block[name] = {key: each for key, each in part.items() if key in reference.populations}
    kept = {name: each for name, each in block.items() if name not in LEFT_OUT}
    return kept | {"beside": beside_to_json(run, reference), "left_out": list(reference.left_out)}


def beside_to_json(run: Run, reference: Reference) -> list[Json]:
    """Give each reported latency beside the reference, in seconds."""
    return [
        {"quantity": quantity, "definition": name, "reported_s": Fraction(value), "reference_s": again}
        | ({"exact": exact} if (exact := get_exact({"reference_s": again})) else {})
        for quantity, name, value, again in compare_claims(run, reference)
    ]


def goodput_to_json(audit: Audit) -> Json | None:
    """Give goodput under each policy, and what the tool reports; null where no targets are known."""
    if not audit.conditions and not audit.unjudged:
        return None
    return {
        "slo": {slo.name: to_seconds(slo.most) for slo in audit.conditions},
        "cannot_judge": list(audit.unjudged),
        "tool": [reported_to_json(line) for line in find_goodput(audit.run)],
        "policies": [view_to_json(view) for view in audit.views],
    }


def find_goodput(run: Run) -> Iterator[Reported]:
    """List what the tool itself reports of goodput."""
    words = ("goodput", "good_request", "slo_attainment", "attainment_percentage")
    named = (line for line in run.reported if any(word in line.name for word in words))
    return (line for line in named if not line.name.endswith(SPREAD) and ".percentiles." not in line.name)


def view_to_json(view: View) -> Json:
    """Give goodput under one policy."""
    numbers = {"share": view.goodput.share, "per_second": view.goodput.per_second}
    exact = get_exact(numbers)
    page = {"success": view.success, **asdict(view.goodput.policy), "good": view.goodput.good, "of": view.goodput.of}
    return page | numbers | ({"exact": exact} if exact else {})


def difference_to_json(difference: Difference) -> Json:
    """Give one compared quantity."""
    sides = {name: side_to_json(getattr(difference, name)) for name in ("first", "second")}
    return {"name": difference.name, "statistic": difference.statistic, **sides, "verdict": difference.verdict}


def side_to_json(side: Side) -> Json:
    """Give one side in seconds."""
    ticks = {"value_s": side.value, "lower_s": side.lower, "upper_s": side.upper}
    return {"n": side.n} | {name: None if each is None else each / TICKS_PER_SECOND for name, each in ticks.items()}


# TEXT


def format_audit(audit: Audit) -> Iterator[str]:
    """Lay out one audit for a person: what holds, what does not, and what to beware of."""
    run = audit.run
    yield f"{run.label}: {run.tool}"
    yield from format_success(run)
    yield ""
    yield from format_reported(run.reported)
    yield from format_beside(audit)
    yield from format_findings("contradictions", audit.contradictions)
    yield from format_findings("traps", audit.traps)
    yield from format_goodput(audit)
    yield from format_limits(run)


def format_success(run: Run) -> Iterator[str]:
    """Say how many succeeded by the tool's count, and how many truly did."""
    shown = run.success.shown
    truly = "how many truly were cannot be known from this file" if shown is None else f"{shown:,} were whole streams"
    yield f"{run.success.counted:,} successes by the tool's count; {truly}"
    yield f"  ({run.success.because})"


def format_reported(lines: Sequence[Reported]) -> Iterator[str]:
    """Count the reported numbers by what came of them, each definition on a line."""
    counts = Counter(line.reproduced for line in lines)
    if not lines:
        yield "no reported numbers: the files hold requests only"
        return
    yield (
        f"{len(lines):,} reported numbers: {counts[True]:,} reproduced, {counts[False]:,} not, "
        f"{counts[UNSUPPORTED]:,} that the file cannot support"
    )
    groups: dict[str, list[Reported]] = {}
    for line in lines:
        groups.setdefault(line.definition, []).append(line)
    yield from map(format_group, list(groups.values())[:MOST])
    if len(groups) > MOST:
        yield f"  … and {len(groups) - MOST} more definitions (--json has all)"
    yield from (f"  NOT REPRODUCED {line.name}: {line.reason}" for line in lines if line.reproduced is False)


MOST = 40  # definitions that are printed; the rest is in the JSON
NAMES = 3
SPREAD = (".variance", ".std_dev", ".min", ".max", ".median", ".mode", ".count", ".total_sum")


def format_group(lines: Sequence[Reported]) -> str:
    """Name the numbers of one definition, and what came of them."""
    marks = {True: "yes", False: "NO", UNSUPPORTED: "?"}
    mark = "/".join(marks[each] for each in (True, False, UNSUPPORTED) if any(x.reproduced == each for x in lines))
    names = ", ".join(line.name for line in lines[:NAMES]) + (f" and {len(lines) - NAMES} more" * (len(lines) > NAMES))
    reason = next((f" [{line.reason}]" for line in lines if line.reproduced == UNSUPPORTED), "")
    return f"  {mark:<4} {names}: {lines[0].definition}{reason}"


def format_beside(audit: Audit) -> Iterator[str]:
    """Lay out each reported latency beside the reference."""
    if audit.reference is None:
        return
    rows = [
        (quantity, name, in_ms(Fraction(value)), in_ms(again))
        for quantity, name, value, again in compare_claims(audit.run, audit.reference)
    ]
    if rows:
        yield ""
        yield format_table(("quantity", "reference definition", "reported ms", "reference ms"), rows)
        yield f"quantiles of the reference: {audit.reference.measured.method}, over streams that ended well"


def in_ms(seconds: Fraction | None) -> str:
    """Round a time for reading, to a microsecond."""
    return "-" if seconds is None else round_decimal(seconds * 1000, 3)


def format_findings(title: str, findings: Sequence[Finding]) -> Iterator[str]:
    """List findings with their reasons."""
    yield ""
    yield f"{title}: {len(findings) or 'none'}"
    yield from (f"  {finding.id}: {finding.because}" for finding in findings)


def format_goodput(audit: Audit) -> Iterator[str]:
    """Lay out goodput under every policy side by side."""
    page = goodput_to_json(audit)
    if page is None:
        yield ""
        yield "goodput: no targets (--slo ttft=…,tpot=…)"
        return
    targets = ", ".join(f"{slo.name} <= {in_ms(to_seconds(slo.most))} ms" for slo in audit.conditions)
    yield ""
    yield f"goodput: {targets or 'no target that this file can judge'}"
    if audit.unjudged:
        yield f"  this file cannot judge {', '.join(audit.unjudged)}"
    if audit.views:
        rows = [format_view(view) for view in audit.views]
        yield format_table(("success", "not applicable", "failures", "denominator", "good", "of", "share"), rows)
    yield from (f"  the tool reports {line.name} = {line.value}" for line in find_goodput(audit.run) if line.value)


def format_view(view: View) -> tuple[str, ...]:
    """Lay out goodput under one policy."""
    policy, goodput = view.goodput.policy, view.goodput
    share = "-" if goodput.share is None else f"{round_decimal(goodput.share * 100, 2)} %"
    words = (view.success, policy.not_applicable, policy.failures, policy.denominator)
    return (*words, str(goodput.good), str(goodput.of), share)


def format_limits(run: Run) -> Iterator[str]:
    """Say what the files cannot support."""
    if run.limits:
        yield ""
        yield "not in these files:"
        yield from (f"  {limit}" for limit in run.limits)


def format_differences(differences: Sequence[Difference]) -> Iterable[str]:
    """Lay out the comparison of two runs."""
    if not differences:
        return ["", "the two runs have no quantity in common"]
    header = ("first against second, ms", "quantile", "first", "interval", "second", "interval", "change", "verdict")
    rows = [
        (
            each.name,
            each.statistic,
            in_ms(each.first.value / TICKS_PER_SECOND),
            format_interval(each.first),
            in_ms(each.second.value / TICKS_PER_SECOND),
            format_interval(each.second),
            "-" if (percent := change(each)) is None else f"{percent:+} %",
            each.verdict,
        )
        for each in differences
    ]
    note = (
        "intervals: 95 % from order statistics; requests that share a batch are not independent, so true ones are wider"
    )
    return ["", format_table(header, rows), note]


def format_interval(side: Side) -> str:
    """Write the interval of one side."""
    ends = ("-inf" if side.lower is None else in_ms(side.lower / TICKS_PER_SECOND), format_upper(side))
    return f"[{ends[0]}, {ends[1]}]"


def format_upper(side: Side) -> str:
    """Write the upper end of an interval."""
    return "inf" if side.upper is None else in_ms(side.upper / TICKS_PER_SECOND)
