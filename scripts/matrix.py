"""Print, for every MUST clause, its witnesses and the code that carries it out; fail where one of them is missing.

A clause needs a trace that passes, a trace that is rejected in its name, and a function whose docstring cites it.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from refsched.conformance.clauses import read_clauses  # noqa: E402
from refsched.conformance.witness import Page, get_witnesses, judge_page, list_witnesses  # noqa: E402

ID = re.compile(r"\b[A-Z]+-[A-Z0-9]+-\d+\b")


def find_citations() -> dict[str, list[str]]:
    """Map each clause to the functions whose docstrings cite it."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "refsched").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                for id in set(ID.findall(ast.get_docstring(node) or "")):
                    found[id].append(f"{path.stem}.{node.name}")
    return found


def is_rejected(page: Page, clause: str) -> bool:
    """Tell whether the judge names `clause` for a trace."""
    return any(breach.clause == clause for breach in judge_page(page).broken)


def find_gaps(clause: str, citations: dict[str, list[str]]) -> Iterator[str]:
    """Say what a clause lacks."""
    page = get_witnesses(clause) if clause in list_witnesses() else {"pass": [], "reject": []}
    if not page["pass"] or any(is_rejected(each, clause) for each in page["pass"]):
        yield "no trace that passes"
    if not page["reject"] or not all(is_rejected(each, clause) for each in page["reject"]):
        yield "no trace that is rejected in its name"
    if not citations.get(clause):
        yield "no function cites it"


def main() -> None:
    """Print the matrix and fail on gaps."""
    citations, gaps = find_citations(), 0
    print("| clause | pass | reject | code | gaps |\n| --- | --- | --- | --- | --- |")
    for clause in read_clauses().values():
        if clause.level not in ("MUST", "MUST NOT"):
            continue
        missing = list(find_gaps(clause.id, citations))
        page = get_witnesses(clause.id) if clause.id in list_witnesses() else {"pass": [], "reject": []}
        numbers, code = f"{len(page['pass'])} | {len(page['reject'])}", ", ".join(citations.get(clause.id, []))
        print(f"| {clause.id} | {numbers} | {code} | {'; '.join(missing)} |")
        gaps += len(missing)
    unknown = sorted(citations.keys() - read_clauses().keys())
    if gaps or unknown:
        sys.exit(f"{gaps} gaps; cited but not written: {', '.join(unknown) or 'none'}")


if __name__ == "__main__":
    main()
