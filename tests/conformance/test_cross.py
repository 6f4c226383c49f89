"""Every policy's runs under every dialect: exact on the diagonal, and off it weaker, each with its clause.

The table is committed; `python -m tests.conformance.test_cross` writes it anew.
"""

from collections import Counter
from pathlib import Path
from random import Random

from refsched.conformance.clauses import read_clauses
from refsched.conformance.verdict import RELATIONS
from refsched.dialect import get_dialect, list_dialects
from refsched.model import Event, Limits
from tests.conformance.judging import judge_events
from tests.conformance.runs import draw_workload, record_run

PAGE = Path(__file__).resolve().parents[2] / "spec" / "71-dialects-compared.md"
CLAUSES = read_clauses()
ALIASES = {"vllm-v1"}  # another name of the newest
RUNS = 60
Cell = list[object]
ABOUT = """# Dialects compared

Every rule plans the same 60 small random workloads, and every dialect judges its runs (those that break no policy-free
clause). A rule's own runs are exact. Under another dialect at least one run is not; the cell names the clause that most
of the weakest runs break first, and in brackets the number of runs that are exact nevertheless. What is done with
impossible requests is taken from the rule that ran.

A test makes this table anew and compares; `python -m tests.conformance.test_cross` writes it.

"""


def list_names() -> list[str]:
    """List the dialects, each once."""
    return [name for name in list_dialects() if name not in ALIASES]


def draw_runs(name: str) -> list[tuple[Limits, list[Event]]]:
    """Run one policy on the same workloads as every other; keep the runs that are exact under its own dialect."""
    runs = []
    for seed in range(RUNS):
        limits, arrivals = draw_workload(Random(seed), shares=False)
        events = record_run(get_dialect(name), limits, arrivals)
        if judge_events(events, limits, get_dialect(name)).relation == "exact":
            runs.append((limits, events))
    return runs


def make_cell(policy: str, runs: list[tuple[Limits, list[Event]]], name: str) -> Cell:
    """Give the weakest relation over all runs, how many are exact, and the clause that most of the weakest break.

    The policy's own answer to impossible requests is kept, as a hello would override it.
    """
    dialect = get_dialect(name, {"impossible": get_dialect(policy).impossible})
    verdicts = [judge_events(events, limits, dialect) for limits, events in runs]
    worst = min((verdict.relation for verdict in verdicts), key=RELATIONS.index)
    clauses = Counter(verdict.broken[0].clause for verdict in verdicts if verdict.relation == worst != "exact")
    return [
        worst,
        sum(verdict.relation == "exact" for verdict in verdicts),
        max(sorted(clauses), key=clauses.__getitem__) if clauses else None,
    ]


def make_table() -> dict[str, dict[str, Cell]]:
    """Judge every policy's runs by every dialect."""
    return {
        policy: {name: make_cell(policy, runs, name) for name in list_names()}
        for policy in list_names()
        for runs in [draw_runs(policy)]
    }


def format_table(table: dict[str, dict[str, Cell]]) -> str:
    """Write the table as a page of the spec."""
    names = list_names()
    rows = [
        f"| **{policy}** | " + " | ".join(format_cell(row[name]) for name in names) + " |"
        for policy, row in table.items()
    ]
    head = ["| runs of ↓, judged by → | " + " | ".join(names) + " |", "| --- |" + " --- |" * len(names)]
    return ABOUT + "\n".join([*head, *rows]) + "\n"


def format_cell(cell: Cell) -> str:
    """Write the clause of the weakest runs, and how many runs are exact nevertheless."""
    relation, exact, clause = cell
    return f"exact ({exact})" if clause is None else f"{relation}: {clause} ({exact})"


def test_that_the_table_is_as_committed() -> None:
    table = make_table()
    assert PAGE.read_text(encoding="utf-8") == format_table(table)
    for policy, row in table.items():
        for name, (relation, _, clause) in row.items():
            assert (relation == "exact") == (name == policy), (policy, name)
            assert (clause is None) == (name == policy), (policy, name)
            assert clause is None or CLAUSES[str(clause)].holds_for != "every engine", (policy, name)


if __name__ == "__main__":
    PAGE.write_text(format_table(make_table()), encoding="utf-8")
