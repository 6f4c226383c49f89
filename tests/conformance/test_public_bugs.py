"""The public bugs, written as traces from their descriptions, are rejected by the clause they break.

Not here, for no trace of this form can show them: 10 (starvation of requests that wait for something hidden), 11 (the
recorded engine orders equal priorities by arrival, whoever started first, so this is its rule and no breach of it).
"""

import json

import pytest

from refsched import spec
from refsched.conformance.witness import judge_page

BUGS = {name: json.loads(spec.read_text(f"bugs/{name}")) for name in spec.list_names("bugs")}


@pytest.mark.parametrize("name", BUGS)
def test_that_a_public_bug_is_named_by_its_clause(name: str) -> None:
    verdict = judge_page(BUGS[name])
    assert {BUGS[name]["clause"], *BUGS[name]["also"]} <= {breach.clause for breach in verdict.broken}
    assert not verdict.conforms()


def test_that_all_numbers_are_there_but_those_explained() -> None:
    assert {int(name[:2]) for name in BUGS} == set(range(1, 17)) - {10, 11}
