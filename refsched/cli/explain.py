"""refsched explain: show a clause with its reason, its examples and its witnesses."""

import argparse
import textwrap
from dataclasses import asdict

from refsched.cli.common import EDITION, write_json
from refsched.conformance.clauses import Clause, get_clause
from refsched.conformance.witness import Page, get_witnesses, judge_page, list_witnesses

SUMMARY = "show a clause: what it says, why, and a trace that breaks it"
EXAMPLE = """examples:
  refsched explain SCH-BUD-1
  refsched explain KV-DRAIN-1 --json -"""
WIDTH = 110


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refsched explain`."""
    parser.add_argument("clause", metavar="CLAUSE", help="the id of a clause, for example SCH-BUD-1")
    parser.add_argument("--json", metavar="FILE", help="write the clause as JSON; - is standard output")


def run(arguments: argparse.Namespace) -> int:
    """Print a clause."""
    clause = get_clause(arguments.clause.upper())
    witnesses: Page = get_witnesses(clause.id) if clause.id in list_witnesses() else {}
    write_json(arguments.json, {**asdict(clause), "witnesses": witnesses, "edition": EDITION})
    if arguments.json != "-":
        print(format_text(clause, witnesses))
    return 0


def format_text(clause: Clause, witnesses: Page) -> str:
    """Write a clause for reading."""
    parts = [f"{clause.id} — {clause.title}", textwrap.fill(clause.text, WIDTH)]
    parts += [textwrap.fill(part, WIDTH) for part in clause.rationale.split("\n\n") if part]
    parts.append(f"holds for: {clause.holds_for}\ncovers: {', '.join(clause.covers)}\nstands in: spec/{clause.chapter}")
    parts += [f"example:\n{example}" for example in clause.examples]
    parts += [describe(page, clause.id) for page in witnesses.get("reject", [])]
    return "\n\n".join(parts)


def describe(page: Page, clause: str) -> str:
    """Write a rejected witness with the sentence that rejects it."""
    sentence = next(each.sentence() for each in judge_page(page).broken if each.clause == clause)
    return "rejected, for " + sentence + "\n" + "\n".join(f"  {event}" for event in page["events"])
