"""refsched selftest: does the suite find what it must find, and pass what it must pass?"""

import argparse

from refsched.cli.common import EDITION, count_argument, get_provenance, write_json
from refsched.conformance.breach import count
from refsched.conformance.selftest import (
    Kill,
    find_kills,
    find_wrong_verdicts,
    list_right_engines,
)
from refsched.conformance.vectors import select_scenarios

SUMMARY = "plant faults in schedulers, and show that the suite finds each through its own clause"
EXAMPLE = """examples:
  refsched selftest
  refsched selftest --cases 5000 --json selftest.json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refsched selftest`."""
    parser.add_argument(
        "--cases",
        type=count_argument("--cases", least=0),
        default=0,
        metavar="N",
        help="find each fault by drawing and shrinking too, in at most N cases (0)",
    )
    parser.add_argument("--seed", type=count_argument("--seed", least=0), default=1, metavar="N", help="of the drawing")
    parser.add_argument("--json", metavar="FILE", help="write what was found as JSON; - is standard output")


def run(arguments: argparse.Namespace) -> int:
    """Run the suite on faults and on right engines; return 0 if it is right about all of them."""
    scenarios = select_scenarios()
    kills = list(find_kills(scenarios, arguments.seed, arguments.cases))
    wrong = [f"{name}: {result.scenario.id}: {result.because}" for name, result in find_wrong_verdicts(scenarios)]
    missed = [kill for kill in kills if kill.result is None or (arguments.cases and kill.found is None)]
    page = {
        "faults": [kill_to_json(each) for each in kills],
        "right": [name for name, _ in list_right_engines()],
        "wrong_verdicts": wrong,
        "vectors": len(scenarios),
        "conforms": not missed and not wrong,
        "edition": EDITION,
        "provenance": get_provenance("judged while planted faults ran"),
    }
    write_json(arguments.json, page)
    if arguments.json != "-":
        print(format_text(kills, wrong))
    return 1 if missed or wrong else 0


def kill_to_json(kill: Kill) -> dict[str, object]:
    """Give one fault and what found it."""
    fault, result, found = kill.fault, kill.result, kill.found
    page: dict[str, object] = {"name": fault.name, "clause": fault.clause, "about": fault.about}
    page["killed_by"] = None if result is None else result.scenario.id
    page["requests"] = None if result is None else len(result.scenario.arrivals)
    page["events"] = None if result is None or result.driven is None else result.driven.events
    page["because"] = None if result is None else result.because
    if found is not None and found.result.driven is not None:
        scenario = found.result.scenario
        page["drawn"] = {
            "case": found.case,
            "requests": len(scenario.arrivals),
            "events": found.result.driven.events,
        }
    return page


def format_text(kills: list[Kill], wrong: list[str]) -> str:
    """Say which fault was found by what."""
    found = [each for each in kills if each.result is not None]
    lines = [f"{len(found)} of {len(kills)} planted faults found through their own clause"]
    for kill in kills:
        result = kill.result
        by = (
            "NOT FOUND"
            if result is None
            else f"{result.scenario.id}, {count(len(result.scenario.arrivals), 'request')}"
        )
        drawn = "" if kill.found is None else f"; drawn: case {kill.found.case}"
        lines.append(f"  {kill.fault.name} [{kill.fault.clause}]: {by}{drawn}")
    lines.append("right engines: all pass" if not wrong else "right engines that do not pass:")
    return "\n".join([*lines, *(f"  {each}" for each in wrong)])
