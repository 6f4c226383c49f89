"""refsched vectors: list, show and export the scenarios of the corpus."""

import argparse
import json
from pathlib import Path

from refsched.cli.common import write_json
from refsched.conformance.corpus import list_vectors
from refsched.conformance.scenario_file import SCENARIO_FORMAT, format_scenario
from refsched.conformance.vectors import (
    get_scenario,
    make_manifest,
    read_manifest,
    read_vector_text,
    select_scenarios,
)
from refsched.errors import InputError
from refsched.report.files import write_text

SUMMARY = "list, show and export the scenarios that engines are checked with"
EXAMPLE = """examples:
  refsched vectors list
  refsched vectors list 'found/*' --json -
  refsched vectors show plans/vllm-0.33/preempt_basic
  refsched vectors export vectors-1"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refsched vectors`."""
    parser.add_argument("action", choices=ACTIONS, help="list ids, show one as a scenario, or export all as files")
    parser.add_argument("which", nargs="?", metavar="ID|GLOB|DIR", help="what to list or show, or where to export to")
    parser.add_argument("--json", metavar="FILE", help="write the list as JSON; - is standard output")


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked for."""
    return ACTIONS[arguments.action](arguments)


def list_ids(arguments: argparse.Namespace) -> int:
    """List the ids that match, with what they are about; return 5 where there is none."""
    scenarios = select_scenarios(arguments.which or "*")
    page = [
        {
            "id": each.id,
            "clauses": each.clauses,
            "requests": len(each.arrivals),
            "about": each.about,
            "origin": each.origin,
        }
        for each in scenarios
    ]
    write_json(arguments.json, {"edition": read_manifest()["edition"], "vectors": page})
    if arguments.json != "-":
        for each in scenarios:
            print(f"{each.id}  {each.about}".rstrip())
    return 0 if scenarios else 5


def show(arguments: argparse.Namespace) -> int:
    """Show one vector as a scenario."""
    if arguments.which is None:
        raise InputError("show needs the id of a vector", field="ID")
    text = format_scenario(get_scenario(arguments.which))
    write_json(arguments.json, json.loads(text))
    if arguments.json != "-":
        print(text, end="")
    return 0


def export(arguments: argparse.Namespace) -> int:
    """Write all vectors and their manifest into a folder, made new where it is not there; each as a scenario.

    What is kept as a recorded trace is written as such beside it, so that nothing is lost.
    """
    if arguments.which is None:
        raise InputError("export needs a folder", field="DIR")
    target, texts = Path(arguments.which), dict[str, str]()
    for id in list_vectors():
        text = read_vector_text(id)
        texts[id] = format_scenario(get_scenario(id))
        write(target / f"{id}.json", texts[id])
        if json.loads(text)["format"] != SCENARIO_FORMAT:
            write(target / f"{id}.recorded.json", text)
    edition = read_manifest()["edition"]
    assert isinstance(edition, int)
    write(target / "MANIFEST.json", make_manifest(texts, edition))
    write_json(arguments.json, {"edition": edition, "vectors": sorted(texts)})
    if arguments.json != "-":
        print(f"{len(texts)} vectors of edition {edition} in {target}")
    return 0


def write(path: Path, text: str) -> None:
    """Write a file with the folders above it; raise InputError where that cannot be done."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot be made: {error.strerror}", file=str(path.parent)) from None
    write_text(str(path), text)


ACTIONS = {"list": list_ids, "show": show, "export": export}
