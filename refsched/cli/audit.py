"""refsched audit: what the numbers in a benchmark tool's result file mean, and which contradict each other."""

import argparse
import sys
from collections.abc import Sequence
from decimal import Decimal

from refsched.cli.audit_report import (
    Audit,
    difference_to_json,
    format_audit,
    format_differences,
    to_json,
)
from refsched.cli.audit_server import format_server, read_server
from refsched.cli.common import get_provenance, write_json
from refsched.errors import InputError
from refsched.metrics.goodput import SHORT, Slo, parse_slos
from refsched.metrics.quantile import DEFAULT_METHOD, METHODS
from refsched.report.files import open_for_writing
from refsched.report.records import write_records
from refsched.results.collect import TOOLS, collect_runs
from refsched.results.compare import Difference, compare
from refsched.results.crosschecks import find_contradictions
from refsched.results.reference import (
    compute_views,
    keep_known,
    make_reference,
    part_unknown,
    translate,
)
from refsched.results.run import Run
from refsched.results.traps import find_traps
from refsched.units import TICKS_PER_SECOND

SUMMARY = "audit a benchmark tool's result files: what each number means, and what contradicts itself"
EXAMPLE = f"""FILE is a result file of {", ".join(TOOLS)}, plain or gzipped, recognised by the fields in
it. A folder is one run: its related files are read together. Two runs are also compared.

examples:
  refsched audit result.json
  refsched audit artifacts/ --slo ttft=120ms,tpot=25ms --json -
  refsched audit before.json after.json
  refsched audit result.json --prometheus start.prom end.prom

exit code: 0 nothing contradicts itself; 1 something does; 6 prometheus-client is needed for --prometheus"""
CONTRADICTED, MISSING = 1, 6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refsched audit`."""
    parser.add_argument("paths", nargs="+", metavar="FILE", help="result files, or folders with those of a run")
    parser.add_argument("--as", dest="tool", choices=TOOLS, help="read the files as this tool's")
    parser.add_argument("--slo", metavar="NAME=TIME,…", help="targets for goodput: ttft=120ms,tpot=25ms,e2e=1.5s")
    parser.add_argument(
        "--prometheus", nargs="+", metavar="SCRAPE", help="the server's metrics at the end, or at start and end"
    )
    parser.add_argument("--quantile", default=DEFAULT_METHOD, choices=METHODS, help="the reference's quantiles")
    parser.add_argument("--records", metavar="FILE", help="write the requests as records for refsched measure")
    parser.add_argument("--json", metavar="FILE", help="write everything as JSON; - is standard output")


def run(arguments: argparse.Namespace) -> int:
    """Audit the runs that the files hold, and print what was found."""
    from refsched.extras import MissingPackage

    conditions = () if arguments.slo is None else parse_slos(arguments.slo)
    try:
        server = None if arguments.prometheus is None else read_server(check_scrapes(arguments.prometheus))
    except MissingPackage as missing:
        print(f"refsched: {missing}", file=sys.stderr)
        return MISSING
    runs = collect_runs(arguments.paths, arguments.tool, to_targets(conditions))
    audits = [audit_run(each, conditions, arguments.quantile) for each in runs]
    differences = compare_two(audits)
    notes = [] if arguments.records is None else save_records(arguments.records, runs)
    write_json(arguments.json, make_page(audits, differences, server) | ({"notes": notes} if notes else {}))
    if arguments.json != "-":
        print_text(audits, differences, server)
        print("".join(f"\n{note}\n" for note in notes), end="")
    return CONTRADICTED if any(each.contradictions for each in audits) else 0


def check_scrapes(paths: list[str]) -> list[str]:
    """Refuse more than two scrapes."""
    if len(paths) > 2:
        raise InputError("takes one scrape or two", field="--prometheus")
    return paths


def to_targets(conditions: Sequence[Slo]) -> dict[str, Decimal]:
    """Give the conditions under the tools' short names, in seconds."""
    names = {name: short for short, name in SHORT.items()}
    return {names.get(slo.name, slo.name): Decimal(slo.most) / TICKS_PER_SECOND for slo in conditions}


def audit_run(run: Run, conditions: Sequence[Slo], method: str) -> Audit:
    """Audit one run; an error in measuring its requests names its file."""
    try:
        return audit(run, conditions, method)
    except InputError as error:
        raise error.at(file=run.files[0]) from None


def audit(run: Run, conditions: Sequence[Slo], method: str) -> Audit:
    """Audit one run; without conditions of the user's, the tool's own targets count."""
    kept, unjudged = keep_known(conditions, run) if conditions else translate(run.slo, run)
    kept, unknown = part_unknown(run, kept)
    return Audit(
        run=run,
        reference=make_reference(run, method),
        contradictions=find_contradictions(run),
        traps=find_traps(run),
        conditions=kept,
        unjudged=[*unjudged, *unknown],
        views=compute_views(run, kept) if kept and run.records else [],
    )


def compare_two(audits: Sequence[Audit]) -> list[Difference] | None:
    """Compare where there are exactly two runs with requests in their files."""
    references = [each.reference for each in audits if each.reference is not None]
    return list(compare(*references)) if len(audits) == len(references) == 2 else None


def save_records(path: str, runs: Sequence[Run]) -> list[str]:
    """Write the Records of the one run, and say what they do not support; raise InputError where there is not one."""
    if len(runs) != 1 or not runs[0].records:
        raise InputError(f"takes one run with requests, not {len(runs)}", field="--records")
    with open_for_writing(path) as file:
        write_records(runs[0].records, file)
    names = ", ".join(sorted(runs[0].without))
    return [f"the records do not support {names}: leave these out of what refsched measure says"] if names else []


def make_page(
    audits: Sequence[Audit], differences: Sequence[Difference] | None, server: dict[str, object] | None
) -> dict[str, object]:
    """Give the audit of the one run, or of all under `runs`; what several have is joined at the top."""
    pages = [to_json(each) for each in audits]
    page = dict(pages[0]) if len(pages) == 1 else join(pages)
    if differences is not None:
        page["comparison"] = [difference_to_json(each) for each in differences]
    if server is not None:
        page["server"] = server
    return page | {"provenance": get_provenance("read from the tool's own files and computed again, exactly")}


def join(pages: Sequence[dict[str, object]]) -> dict[str, object]:
    """Join the audits of several runs: lists one after the other, each entry naming its run."""
    tools = list(dict.fromkeys(str(page["tool"]) for page in pages))
    joined: dict[str, object] = {"tool": ", ".join(tools)}
    for key in ("reported", "contradictions", "traps"):
        joined[key] = [entry | {"run": page["run"]} for page in pages for entry in as_list(page[key])]
    per_run = {key: {str(page["run"]): page[key] for page in pages} for key in ("reference", "goodput")}
    return joined | per_run | {"runs": list(pages)}


def as_list(value: object) -> list[dict[str, object]]:
    """Take a part of a page that is a list."""
    return value if isinstance(value, list) else []


def print_text(
    audits: Sequence[Audit], differences: Sequence[Difference] | None, server: dict[str, object] | None
) -> None:
    """Print the audits one after the other, then the comparison and the server's view."""
    lines = [line for number, each in enumerate(audits) for line in ([""] * (number > 0) + list(format_audit(each)))]
    lines += [] if differences is None else list(format_differences(differences))
    if server is not None:
        lines += list(format_server(server, audits[0].reference if len(audits) == 1 else None))
    print("\n".join(lines))
