"""The matrix of clauses: what a check says about each clause that a trace can break, as Markdown."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from refsched.conformance.clauses import Clause, get_clause, read_clauses
from refsched.conformance.runner import Result, has_run
from refsched.dialect import Dialect, get_dialect, list_dialects

BINDING = ("MUST", "MUST NOT")
PREEMPTING = ("vllm-v1", "sarathi", "prefill-first", "vllm-v0", "vllm-v0-chunked")
HOLDS_FOR: Mapping[str, Callable[[Dialect], bool]] = {  # as the lines "Holds for" of the chapters say it
    "dialects with impossible=reject": lambda dialect: dialect.impossible == "reject",
    "dialects that refuse while planning": lambda dialect: dialect.planning_rejects != "nothing",
    "all dialects but document-a": lambda dialect: dialect.rule != "document-a",
    "dialects with preemption": lambda dialect: dialect.rule in PREEMPTING,
    "dialects with an admission gate": lambda dialect: dialect.rule != "document-a",
    "dialects with a strict queue": lambda dialect: dialect.rule != "document-a",
    "dialects with a prefix cache": lambda dialect: dialect.prefix_cache,
}


def holds_for(clause: Clause, dialect: Dialect | None) -> bool:
    """Tell whether a clause binds an engine that claims `dialect`."""
    told = clause.holds_for
    if dialect is None:
        return told == "every engine" or "without a dialect" in told
    names = [name for name in told.split(", ") if name in list_dialects()]
    if names:
        return dialect.rule in {get_dialect(name).rule for name in names}
    return next((holds(dialect) for words, holds in HOLDS_FOR.items() if told.startswith(words)), True)


def count_clauses(results: Iterable[Result]) -> Mapping[str, Counter[str]]:
    """Count for each clause the scenarios in which it passed, was broken, or stayed open.

    A policy-free clause passes wherever it was looked at. A clause of a dialect passes in the scenarios that are about
    it, where the whole run is allowed under the dialect.
    """
    found: dict[str, Counter[str]] = {}
    for result in results:
        if not has_run(result) or result.driven is None:
            continue
        verdict = result.driven.verdict
        broken = {each.clause for each in verdict.broken}
        allowed = verdict.relation in ("refines", "exact")
        about = {id for id in result.scenario.clauses if holds_for(get_clause(id), verdict.dialect)}
        passed = ({*verdict.passed} | (about if allowed else set())) - broken - {*verdict.inconclusive}
        for outcome, clauses in (("passed", passed), ("broken", broken), ("open", {*verdict.inconclusive} - broken)):
            for clause in clauses:
                found.setdefault(clause, Counter())[outcome] += 1
    return found


def name_clause(counts: Counter[str]) -> str:
    """Say in a word what a check found about a clause."""
    return next((word for word in ("broken", "passed", "open") if counts[word]), "not reached")


def format_matrix(results: Iterable[Result]) -> str:
    """Write the table of all clauses that a trace can break."""
    found = count_clauses(results)
    rows = ["| clause | title | found | passed in | broken in | open in |", "| --- | --- | --- | --- | --- | --- |"]
    for clause in read_clauses().values():
        if clause.level in BINDING:
            counts = found.get(clause.id, Counter())
            numbers = " | ".join(str(counts[word] or "–") for word in ("passed", "broken", "open"))
            rows.append(f"| {clause.id} | {clause.title} | {name_clause(counts)} | {numbers} |")
    return "\n".join(rows) + "\n"
