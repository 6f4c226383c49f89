"""The chapters on metrics and load: their form, and their examples, which come out as written."""

import re
from fractions import Fraction
from itertools import accumulate
from pathlib import Path

import pytest

from refsched.metrics.confidence import count_needed, find_ranks
from refsched.metrics.population import Population, count_values
from refsched.metrics.quantile import METHODS, compute_quantile
from refsched.metrics.stalls import count_deadlines, play_back
from refsched.spec import list_names, read_text
from tests.metrics.claims import Page, find_differences, load, measure_page

CHAPTERS = ("40-metrics.md", "45-load.md")
WORDS = re.compile(r"\b(MUST NOT|MUST|SHALL NOT|SHALL|SHOULD NOT|SHOULD|MAY)\b")
CLAUSES = [
    (match[1], match[3])
    for chapter in CHAPTERS
    for match in re.finditer(
        r"^### ([A-Z]+-[A-Z0-9]+-\d+) — ([^\n]+)\n(.*?)(?=^##|\Z)", read_text(chapter), re.M | re.S
    )
]
EXAMPLES = [
    (clause, kind, load(text))
    for clause, body in CLAUSES
    for kind, text in re.findall(r"```json (\w+)\n(.*?)```", body, re.S)
]


def pick(kind: str) -> list[tuple[str, Page]]:
    """Give the examples of one kind, with their clause."""
    return [(clause, page) for clause, each, page in EXAMPLES if each == kind]


@pytest.mark.parametrize(("clause", "body"), CLAUSES, ids=[clause for clause, _ in CLAUSES])
def test_that_a_clause_is_one_sentence_with_one_binding_word(clause: str, body: str) -> None:
    sentence, covers = body.strip().split("\n\n")[:2]
    assert len(WORDS.findall(sentence)) == 1 and sentence.endswith(".") and ". " not in sentence, clause
    assert covers.startswith("*Covers:* ")


def test_that_ids_are_unique_and_every_requirement_is_covered() -> None:
    ids = [clause for clause, _ in CLAUSES]
    assert len(set(ids)) == len(ids)
    covered = set(re.findall(r"\b[AB]\d+|decision \d+", " ".join(re.findall(r"\*Covers:\* (.*)", str(CLAUSES)))))
    wanted = {"A2", *(f"A{number}" for number in (*range(7, 14), 19, 20, 21))}
    wanted |= {f"B{number}" for number in (*range(9, 18), 22)} | {"decision 11"}
    assert wanted - covered == set()


def test_that_every_witness_belongs_to_a_clause() -> None:
    witnesses = {name.removesuffix(".json") for name in list_names("witnesses/metrics")}
    assert witnesses <= {clause for clause, _ in CLAUSES}


@pytest.mark.parametrize(("clause", "page"), pick("measure"), ids=[clause for clause, _ in pick("measure")])
def test_that_an_example_comes_out_as_written(clause: str, page: Page, tmp_path: Path) -> None:
    assert find_differences(page["expect"], measure_page(page, tmp_path)) == []


@pytest.mark.parametrize(("clause", "page"), pick("quantile"))
def test_that_a_quantile_comes_out_as_written(clause: str, page: Page) -> None:
    population = Population(count_values(page["values"]))  # type: ignore[arg-type]
    for name, wanted in page["expect"].items():  # type: ignore[attr-defined]
        assert compute_quantile(population, Fraction(page["p"]), name) == Fraction(wanted)  # type: ignore[arg-type]
    for name, wrong in page.get("reject", {}).items():  # type: ignore[attr-defined]
        assert compute_quantile(population, Fraction(page["p"]), name) != wrong  # type: ignore[arg-type]


@pytest.mark.parametrize(("clause", "page"), pick("interval"))
def test_that_an_interval_comes_out_as_written(clause: str, page: Page) -> None:
    p, level = Fraction(page["p"]), Fraction(page["level"])  # type: ignore[arg-type]
    if "needed" in page:
        assert count_needed(p, level, page["sides"]) == page["needed"]  # type: ignore[arg-type]
    else:
        ranks = find_ranks(page["n"], p, level)  # type: ignore[arg-type]
        assert [ranks.lower, ranks.upper] == page["ranks"]


@pytest.mark.parametrize(("clause", "page"), pick("playback"))
def test_that_a_reader_waits_as_written(clause: str, page: Page) -> None:
    chunks = [(to_ticks(at), 1) for at in page["times_s"]]  # type: ignore[attr-defined]
    found = play_back(chunks, Fraction(page["per_second"]))  # type: ignore[arg-type]
    expect: Page = page["expect"]  # type: ignore[assignment]
    assert (found.times, found.waited) == (expect["waits"], to_ticks(expect["waited_s"]))


@pytest.mark.parametrize(("clause", "page"), pick("deadlines"))
def test_that_deadlines_are_missed_as_written(clause: str, page: Page) -> None:
    times = list(accumulate(to_ticks(gap) for gap in page["gaps_s"]))  # type: ignore[attr-defined]
    found = count_deadlines(0, [(at, 1) for at in times], to_ticks(page["first_s"]), to_ticks(page["between_s"]))
    assert {"met": found.met, "missed": found.missed} == page["expect"]


def to_ticks(seconds: object) -> int:
    """Turn seconds into ticks."""
    return int(Fraction(str(seconds)) * 10**12)


def test_that_the_chapter_names_every_definition_of_quantiles() -> None:
    names = set(re.findall(r"`([a-z0-9-]+)`", dict(CLAUSES)["MET-QUA-1"]))
    assert set(METHODS) - {f"hf{number}" for number in range(5, 9)} <= names
