"""The relation and the policies are two statements of one rule: on runs of the reference engine they must agree."""

from random import Random

import pytest

from refsched.dialect import Dialect, get_dialect, list_dialects, read_option_values
from tests.conformance.judging import judge_events
from tests.conformance.runs import draw_workload, record_run

RUNS = 60  # per dialect
DEFECTIVE = (
    "sarathi-serve-",
    "vidur-orca",
    "vllm-v0",
)  # recorded engines that break policy-free clauses by their own rule


def draw_dialect(rng: Random, name: str) -> Dialect:
    """Draw some of the options that a dialect offers."""
    options: dict[str, object] = {}
    for option in sorted(get_dialect(name).offered):
        values = read_option_values()[option]["values"]
        if rng.random() < 0.3:
            options[option] = rng.choice(values) if isinstance(values, list) else rng.randint(0, 2)
    return get_dialect(name, options)


@pytest.mark.parametrize("name", list_dialects())
def test_that_what_the_policy_decides_the_relation_allows(name: str) -> None:
    for seed in range(RUNS):
        rng = Random(f"{name} {seed}")
        dialect = draw_dialect(rng, name)
        limits, arrivals = draw_workload(rng, dialect.prefix_cache)
        verdict = judge_events(record_run(dialect, limits, arrivals, rng), limits, dialect)
        sentences = [breach.sentence() for breach in verdict.broken]
        allowed = ("exact", "none") if name.startswith(DEFECTIVE) else ("exact",)
        assert verdict.relation in allowed, (seed, dialect, limits, sentences)
        assert all(breach.clause[:3] != "CNF" for breach in verdict.broken), (seed, sentences)
