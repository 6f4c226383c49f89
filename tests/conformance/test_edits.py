"""Single edits of recorded traces: whatever changes the meaning is rejected; what is not rejected is listed here.

5,000 seeded edits (off by one, swap, drop, duplicate, shift, of values and of whole exchanges) of the
recordings whose rule is known.
"""

import json
import random
from collections import Counter
from functools import cache

import pytest

from refsched.errors import InputError
from tests.conformance.edits import Message, edit
from tests.conformance.judging import judge_lines
from tests.shared import SHARED, needs_shared

EDITS, LONGEST_FILE = 5000, 160
FILES = sorted((SHARED / "data" / "plans").glob("*/*.jsonl"))

# Edits that may leave the verdict as it was, and why.
HARMLESS = {
    ("swap", "answer.plan.entries"): "a batch has no order",
    ("swap", "complete.emitted"): "emissions of one iteration have no order",
    ("swap", "complete.finished"): "ends of one iteration have no order, but for the eviction order of a cache",
    ("swap pairs", "complete and submit"): "an arrival during an iteration is seen at its end [MOD-ARR-1]",
    ("swap pairs", "submit and submit"): "the order of arrival of requests that do not compete",
    ("off by one", "reset.limits"): "a limit that never binds in this run may be another",
    ("off by one", "answer.dialect"): "an option that decides nothing in this run may be another",
    ("off by one", "submit.priority"): "a priority that changes no rank",
    ("off by one", "submit.output"): "the output of a request that never ends in this run",
    ("off by one", "submit.prompt"): "the prompt of a request that never gets that far in this run",
    ("off by one", "submit.prefix"): "contents that nobody shares, before and after",
    ("off by one", "submit.output_blocks"): "contents that nobody shares, before and after",
    ("swap", "submit.prefix"): "contents that nobody shares, before and after",
    ("swap", "submit.output_blocks"): "contents that nobody shares, before and after",
    ("drop", "submit.prefix"): "contents that nobody shares, before and after",
    ("drop", "submit.output_blocks"): "contents that nobody shares, before and after",
    ("duplicate", "submit.prefix"): "contents that nobody shares, before and after",
    ("duplicate", "submit.output_blocks"): "contents that nobody shares, before and after",
    ("drop pair", "bye"): "a livelock is evident before the end",
    ("drop pair", "complete"): "the result of an empty plan at the very end",
}


def get_class(kind: str, where: str) -> tuple[str, str]:
    """Fold a place into the classes above: one for all limits, one for all options."""
    for folded in ("reset.limits", "answer.dialect"):
        where = folded if where.startswith(folded) else where
    return kind, where


def judge_messages(messages: list[Message]) -> tuple[str, str]:
    """Give relation and liveness, or say that the trace is malformed."""
    try:
        verdict = judge_lines(json.dumps(message) for message in messages)
    except InputError:
        return "malformed", ""
    return verdict.relation, verdict.liveness.kind


@cache
def read_exact_traces() -> list[list[str]]:
    """Read the shorter recordings that are exact under the dialect they name."""
    texts = [lines for path in FILES if len(lines := path.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE]
    return [lines for lines in texts if judge_lines(lines).relation == "exact"]


@needs_shared("data", "plans")
@pytest.mark.parametrize("seed", range(10))
def test_that_edits_which_change_the_meaning_are_rejected(seed: int) -> None:
    rng = random.Random(seed)
    texts = read_exact_traces()
    found: Counter[str] = Counter()
    verdicts: dict[int, tuple[str, str]] = {}
    for _ in range(EDITS // 10):
        place = rng.randrange(len(texts))
        messages = [json.loads(line) for line in texts[place]]
        before = verdicts[place] = verdicts.get(place) or judge_messages(messages)
        assert before[0] == "exact"
        edited, kind, where = edit(messages, rng)
        after = judge_messages(edited)
        found[after[0]] += 1
        assert after != before or get_class(kind, where) in HARMLESS, (messages[0]["name"], kind, where)
    assert found["malformed"] and found["none"] and found["safe"] and found["refines"]
