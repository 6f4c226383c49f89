"""Claims about records: measured through the file and the JSON form, and compared exactly."""

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from refsched.metrics.goodput import Policy, parse_slos
from refsched.metrics.measure import Settings, measure
from refsched.metrics.quantile import DEFAULT_METHOD
from refsched.report.json_text import to_json_text
from refsched.report.measured import to_json
from refsched.results.records import RecordsFile
from refsched.units import parse_time

Page = Mapping[str, object]


def load(text: str) -> Page:
    """Read JSON with exact numbers."""
    page: Page = json.loads(text, parse_float=Decimal)
    return page


def write_out(records: Iterable[Mapping[str, object]]) -> Iterable[Mapping[str, object]]:
    """Write out the records that stand for several; `every` says how much later each is than the one before."""
    for each in records:
        if "repeat" not in each:
            yield each
            continue
        for number in range(int(str(each["repeat"]))):
            yield move(each["record"], number, each.get("every", {}))  # type: ignore[arg-type]


def move(record: Mapping[str, object], number: int, every: Mapping[str, Decimal]) -> Mapping[str, object]:
    """Give the record of a number a name of its own, and move its times."""
    later = {name: Decimal(number) * every.get(name, 0) for name in ("planned_s", "sent_s", "received_s")}
    moved = {**record, "id": f"{record['id']}{number}"}
    for name, by in (*later.items(), ("ended_s", later["received_s"])):
        if name in moved:
            moved[name] = Decimal(str(moved[name])) + by
    moved["deliveries"] = [[at + later["received_s"], *rest] for at, *rest in moved["deliveries"]]  # type: ignore[attr-defined]
    return moved


def measure_page(page: Page, folder: Path) -> Page:
    """Measure the records of a page under its settings, and give the JSON block back."""
    path = folder / "records.jsonl"
    lines = (to_json_text(to_exact(each)).replace("\n", " ") for each in write_out(page["records"]))  # type: ignore[arg-type]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    settings = Settings(
        method=str(page.get("quantile", DEFAULT_METHOD)),
        slos=parse_slos(str(page["slo"])) if "slo" in page else (),
        policy=Policy(
            str(page.get("not_applicable", "pass")),
            str(page.get("failures", "count")),
            str(page.get("denominator", "offered")),
        ),
        stall=parse_time(str(page["stall"])).ticks if "stall" in page else None,
    )
    return load(to_json_text(to_json(measure(RecordsFile(str(path)), settings=settings))))


def to_exact(value: object) -> object:
    """Turn decimals into rationals, which are written in full."""
    if isinstance(value, Mapping):
        return {name: to_exact(each) for name, each in value.items()}
    if isinstance(value, list):
        return [to_exact(each) for each in value]
    return Fraction(value) if isinstance(value, Decimal) else value


def find_differences(claim: object, found: object, place: str = "") -> list[str]:
    """List where a claim and what was found differ; a claim says nothing of what it leaves out."""
    if isinstance(claim, Mapping):
        if not isinstance(found, Mapping):
            return [f"{place}: {found} is not an object"]
        exact = found.get("exact", {})
        return [
            problem
            for name, wanted in claim.items()
            for problem in find_differences(wanted, exact.get(name, found.get(name, "nothing")), f"{place}/{name}")
        ]
    same = to_number(claim) == to_number(found)
    return [] if same else [f"{place}: claimed {claim}, found {found}"]


def to_number(value: object) -> object:
    """Turn numbers, and rationals written as text, into Fractions; leave everything else."""
    if isinstance(value, str) and "/" in value and value.replace("/", "").isdigit():
        return Fraction(value)
    return Fraction(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else value
