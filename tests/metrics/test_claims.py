"""Numeric cases from public reports: the right value holds, and what a tool said instead is rejected."""

from pathlib import Path

import pytest

from refsched.spec import list_names, read_text
from tests.metrics.claims import Page, find_differences, load, measure_page

CASES: list[tuple[str, Page]] = [
    (name.removesuffix(".json"), case)
    for name in sorted(list_names("witnesses/metrics"))
    for case in load(read_text(f"witnesses/metrics/{name}"))["cases"]  # type: ignore[attr-defined]
]


def test_that_every_file_has_a_case_and_every_case_a_claim_that_is_rejected() -> None:
    assert len(CASES) > 50
    assert all(case["records"] and case["holds"] and case["rejected"] for _, case in CASES)


@pytest.mark.parametrize(("clause", "case"), CASES, ids=[f"{clause}: {case['case']}" for clause, case in CASES])
def test_that_the_right_value_holds_and_the_wrong_one_is_rejected(clause: str, case: Page, tmp_path: Path) -> None:
    found = measure_page(case, tmp_path)
    assert find_differences(case["holds"], found) == []
    for wrong in case["rejected"]:  # type: ignore[attr-defined]
        assert find_differences(wrong["claim"], found), wrong["as"]
