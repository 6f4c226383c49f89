"""refsched fuzz: draw scenarios from a seed, and show the smallest in which an engine breaks a clause."""

import argparse
import shlex
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from refsched.cli.check import seconds
from refsched.cli.check_engine import make_choice
from refsched.cli.common import (
    EDITION,
    count_argument,
    get_provenance,
    parse_dialect,
    write_json,
)
from refsched.cli.ending import ending_in_order
from refsched.cli.progress import ProgressCount
from refsched.conformance.adapters import SECONDS, open_adapter
from refsched.conformance.fuzz import draw_scenarios
from refsched.conformance.runner import Runner
from refsched.conformance.scenario_file import format_scenario, to_page
from refsched.conformance.search import Found, search
from refsched.conformance.smoke import greet, smoke
from refsched.errors import InputError
from refsched.report.files import write_text

SUMMARY = "draw scenarios from a seed, and show the smallest that makes an engine break a rule"
EXAMPLE = """examples:
  refsched fuzz vllm-v1 --seed 1 --cases 1000
  refsched fuzz 'cmd:node engine.js' --seed 7 --cases 5000 --save found
  refsched check 'cmd:node engine.js' --scenario found/SCH-BUD-1.json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refsched fuzz`."""
    parser.add_argument("engine", metavar="ENGINE", help="a policy, python:module:factory, or cmd:COMMAND")
    parser.add_argument("--seed", type=count_argument("--seed", least=0), default=1, metavar="N", help="seed (1)")
    parser.add_argument("--cases", type=count_argument("--cases"), default=1000, metavar="N", help="cases (1000)")
    parser.add_argument("--dialect", metavar="NAME", help="judge by this dialect; the engine's options override it")
    parser.add_argument("--most", type=count_argument("--most"), default=1, metavar="N", help="clauses to find (1)")
    parser.add_argument("--save", metavar="DIR", help="write each scenario found as DIR/CLAUSE.json")
    parser.add_argument("--json", metavar="FILE", help="write what was found as JSON; - is standard output")
    parser.add_argument("--timeout", type=seconds, default=SECONDS, metavar="S", help="for one answer (10)")


def run(arguments: argparse.Namespace) -> int:
    """Search; return 0 if nothing was found and 1 otherwise."""
    if arguments.save is not None and not Path(arguments.save).is_dir():
        raise InputError("is not a folder that exists", file=arguments.save)
    with ExitStack() as stack:
        stack.enter_context(ending_in_order())
        adapter = open_adapter(arguments.engine, parse_dialect, arguments.timeout)
        stack.callback(adapter.close)
        opening = greet(adapter)
        smoke(adapter, opening)
        runner = Runner(adapter, opening, make_choice(opening, arguments.dialect))
        count = ProgressCount(arguments.cases, "cases")
        drawn = draw_scenarios(arguments.seed, arguments.cases)
        found = list(search(runner, drawn, arguments.most, see=count))
        count.finish()
    report(arguments, found, count.seen, opening.engine)
    return 1 if found else 0


def report(arguments: argparse.Namespace, found: Sequence[Found], cases: int, engine: str) -> None:
    """Write files, JSON and text."""
    if arguments.save is not None:
        for each in found:
            write_text(str(Path(arguments.save, f"{each.breach.clause}.json")), format_scenario(each.result.scenario))
    page = {
        "engine": engine,
        "seed": arguments.seed,
        "cases": cases,
        "found": [found_to_json(each) for each in found],
        "edition": EDITION,
        "provenance": get_provenance("judged while the engine ran drawn scenarios"),
    }
    write_json(arguments.json, page)
    if arguments.json != "-":
        print("\n".join(format_text(arguments, found, cases)))


def found_to_json(found: Found) -> dict[str, object]:
    """Give one broken clause with its smallest scenario."""
    breach, driven = found.breach, found.result.driven
    assert driven is not None
    return {
        "clause": breach.clause,
        "iteration": breach.iteration,
        "because": breach.because,
        "case": found.case,
        "requests": len(found.result.scenario.arrivals),
        "events": driven.events,
        "scenario": to_page(found.result.scenario),
        "trace": driven.verdict.scenarios.get(breach.clause),
    }


def format_text(arguments: argparse.Namespace, found: Sequence[Found], cases: int) -> Iterator[str]:
    """Say what was found."""
    if not found:
        yield f"{cases} cases of seed {arguments.seed}: no clause is broken"
    for each in found:
        yield f"broken: {each.breach.sentence()}"
        yield f"  case {each.case} of seed {arguments.seed}, shrunk to:"
        yield "".join(f"  {line}\n" for line in format_scenario(each.result.scenario).splitlines()).rstrip()
        where = f"{arguments.save}/{each.breach.clause}.json" if arguments.save else "FILE"
        replay = shlex.join(["refsched", "check", arguments.engine, "--scenario", where])
        yield f"  replay: {replay}" + ("" if arguments.save else " (write FILE with --save DIR)")
