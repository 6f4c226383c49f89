"""Where the vectors come from that are neither recorded nor drawn: scenarios written by hand, to teach one thing each.

A row is (id, about, clauses, limits, arrivals, cancels, requires); limits are (token budget, sequence limit) and more
by name.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from refsched.conformance.scenario_file import SCENARIO_FORMAT, Scenario, read_scenario


class Row(NamedTuple):
    """Hold one scenario as it is written below."""

    id: str
    about: str
    clauses: tuple[str, ...]
    limits: Mapping[str, int | None]
    arrivals: list[list[Any]]
    cancels: list[list[Any]] = []
    requires: Mapping[str, str | int | bool] = {}


def limit(token_budget: int | None, max_seqs: int | None, **more: int) -> Mapping[str, int | None]:
    """Write limits."""
    return {"token_budget": token_budget, "max_seqs": max_seqs, **more}


INSIDE = {"inside": True}
PRIORITY = {"policy": "priority"}
CACHE = {"prefix_cache": True}

ROWS: tuple[Row, ...] = (
    # BUDGET AND SEATS
    Row("budget/prompts-fill-it", "two prompts that fill the budget exactly",
        ("SCH-BUD-1",), limit(8, 4),
        [[0, "r0", 3, 2], [0, "r1", 5, 2]]),
    Row("budget/second-prompt-cut", "the second prompt is cut at the budget",
        ("SCH-BUD-1", "SCH-SHARE-1"), limit(8, 4),
        [[0, "r0", 5, 2], [0, "r1", 7, 2]]),
    Row("budget/one-token", "a budget of one token", ("SCH-BUD-1",), limit(1, 2), [[0, "r0", 2, 2], [0, "r1", 1, 2]]),
    Row("budget/prompt-above", "a prompt above the budget runs in chunks, or is refused",
        ("SCH-BUD-1",), limit(4, 4),
        [[0, "r0", 9, 2], [0, "r1", 2, 1]]),
    Row("budget/decodes-fill-it", "as many decodes as the budget has tokens, and one waiting",
        ("SCH-BUD-1", "SCH-ORD-1"), limit(3, 8),
        [[0, "r0", 1, 6], [0, "r1", 1, 6], [0, "r2", 1, 6], [1, "r3", 2, 1]]),
    Row("budget/more-decodes-than-tokens", "four decodes and a budget of three",
        ("SCH-BUD-1",), limit(3, 8),
        [[0, "r0", 1, 5], [1, "r1", 1, 5], [2, "r2", 1, 5], [2, "r3", 1, 5]]),
    Row("budget/none", "no budget and no sequence limit",
        ("SCH-SHARE-1",), limit(None, None),
        [[0, "r0", 40, 2], [0, "r1", 60, 2]]),
    Row("seats/one", "one seat for two requests",
        ("SCH-SEQ-1", "SCH-SEQ-2"), limit(8, 1),
        [[0, "r0", 3, 3], [0, "r1", 2, 2]]),
    Row("seats/partial-prefill-takes-one", "a partial prefill takes a seat",
        ("SCH-SEQ-2",), limit(4, 2),
        [[0, "r0", 10, 2], [0, "r1", 2, 2], [0, "r2", 1, 1]]),
    Row("seats/three-at-once", "three come at once, two seats are free",
        ("SCH-SEQ-1", "SCH-SEQ-2"), limit(16, 2),
        [[0, "r0", 2, 2], [0, "r1", 2, 3], [0, "r2", 2, 1]]),
    Row("seats/freed-by-an-end", "a seat freed by an end is taken in the next iteration",
        ("SCH-SEQ-2", "SCH-SKIP-1"), limit(16, 2),
        [[0, "r0", 2, 1], [0, "r1", 2, 4], [0, "r2", 2, 2]]),
    # CHUNKS
    Row("chunks/capped-beside-a-decode", "a long prompt beside a decode, capped",
        ("SCH-CAP-1",), limit(8, 4, chunk_cap=2),
        [[0, "r0", 2, 6], [1, "r1", 7, 2]]),
    Row("chunks/alone", "a long prompt alone, with a cap",
        ("SCH-CAP-1", "SCH-SHARE-1"), limit(8, 4, chunk_cap=2),
        [[0, "r0", 9, 3]]),
    Row("chunks/last-one-is-short", "the last chunk is short, and the next request gets the rest",
        ("SCH-SHARE-1",), limit(4, 4),
        [[0, "r0", 6, 2], [0, "r1", 4, 2]]),
    Row("chunks/two-partial", "two partial prefills at once",
        ("SCH-SHARE-1", "SCH-RNG-2"), limit(5, 4, chunk_cap=3),
        [[0, "r0", 8, 2], [0, "r1", 8, 2]]),
    Row("chunks/decodes-behind-a-long-prompt", "a decode admitted after a long prompt under way",
        ("SCH-ORD-1",), limit(4, 4, chunk_cap=3),
        [[0, "r0", 12, 2], [0, "r1", 1, 5]]),
    Row("chunks/of-whole-blocks", "chunks that fill blocks exactly",
        ("KV-HOLD-1",), limit(4, 4, block_size=4, num_blocks=8),
        [[0, "r0", 8, 5], [0, "r1", 4, 1]]),
    # OUTPUTS AND ENDS
    Row("outputs/one", "one output: the prompt's last chunk is also the end",
        ("SCH-OUT-2", "SCH-OUT-3"), limit(8, 4),
        [[0, "r0", 3, 1], [0, "r1", 2, 1]]),
    Row("outputs/late-arrival-after-all-ended", "a request comes when all others have ended",
        ("SCH-OUT-3",), limit(8, 4),
        [[0, "r0", 2, 2], [6, "r1", 2, 2]]),
    Row("outputs/longest-length", "outputs end where max_len is reached",
        ("SCH-OUT-3",), limit(8, 4, max_len=6),
        [[0, "r0", 3, 9], [0, "r1", 5, 9]]),
    Row("outputs/prompt-of-longest-length", "a prompt that leaves no room for an output",
        ("SCH-INT-1",), limit(8, 4, max_len=6),
        [[0, "r0", 6, 1], [0, "r1", 5, 1]]),
    Row("outputs/same-name-again", "a name is used again when its request has ended",
        ("MOD-REQ-1",), limit(8, 4),
        [[0, "r0", 2, 2], [4, "r0", 3, 2]]),
    Row("outputs/name-taken", "a name is offered again while its request is live",
        ("MOD-REQ-1",), limit(8, 4),
        [[0, "r0", 2, 4], [1, "r0", 3, 2]]),
    # INTAKE
    Row("intake/exact-fit", "prompt and outputs fit the pool exactly, for the last output is never written",
        ("SCH-INT-2", "KV-NEED-1"), limit(8, 4, num_blocks=6),
        [[0, "r0", 4, 3]]),
    Row("intake/one-too-many", "one slot more than the pool has",
        ("SCH-INT-1",), limit(8, 4, num_blocks=6),
        [[0, "r0", 4, 4], [0, "r1", 2, 2]]),
    Row("intake/exact-fit-in-blocks", "a fit that is exact in blocks only",
        ("SCH-INT-2",), limit(8, 4, block_size=4, num_blocks=2),
        [[0, "r0", 5, 4]]),
    Row("intake/impossible-before-possible", "a request above the pool, and a small one behind it",
        ("SCH-INT-1", "LIV-IMP-1"), limit(4, 4, num_blocks=8),
        [[0, "r0", 10, 1], [3, "r1", 1, 2]]),
    Row("intake/prompt-fills-the-pool", "a prompt that fills the pool with no room for a decode",
        ("SCH-INT-1",), limit(8, 8, num_blocks=4),
        [[0, "r0", 4, 2]]),
    # ADMISSION
    Row("admission/head-blocks", "a large head that does not fit, and a small one behind it",
        ("SCH-ADM-4",), limit(8, 4, num_blocks=8),
        [[0, "r0", 4, 5], [0, "r1", 6, 1], [0, "r2", 1, 1]]),
    Row("admission/gate-shut-then-open", "the gate opens when blocks come free",
        ("SCH-ADM-3",), limit(8, 4, num_blocks=6),
        [[0, "r0", 4, 2], [0, "r1", 4, 2]]),
    Row("admission/two-pass-one-after-the-other", "two pass the gate one after the other, and run out together",
        ("SCH-ADM-3", "SCH-PRE-3"), limit(4, 4, chunk_cap=2, num_blocks=6),
        [[0, "r0", 4, 2], [0, "r1", 4, 2]]),
    Row("admission/crumbs", "a long prompt comes where only crumbs are free",
        ("SCH-ADM-3",), limit(4, 4, num_blocks=9),
        [[0, "r0", 3, 6], [1, "r1", 6, 1]]),
    Row("admission/arrivals-inside-work", "arrivals while an iteration is under way are seen at its end",
        ("MOD-ARR-1", "SCH-ADM-4"), limit(4, 4),
        [[0, "r0", 4, 3], [0, "r1", 2, 2, INSIDE], [1, "r2", 1, 1, INSIDE]]),
    Row("admission/chunk-then-gate", "a partial prefill, then a head whose whole prompt does not fit",
        ("SCH-ADM-3",), limit(3, 4, num_blocks=10),
        [[0, "r0", 7, 2], [1, "r1", 5, 1]]),
    # PREEMPTION
    Row("preemption/decode-needs-a-block", "a decode needs a block and none is free",
        ("SCH-PRE-3", "SCH-VIC-1"), limit(8, 8, num_blocks=4),
        [[0, "r0", 1, 4], [0, "r1", 1, 4]]),
    Row("preemption/itself", "the last admitted needs a block and none is free",
        ("SCH-VIC-1",), limit(8, 4, num_blocks=6),
        [[0, "r0", 2, 3], [0, "r1", 3, 3]]),
    Row("preemption/slack-of-the-younger", "the older needs a block while the younger has room in its own",
        ("SCH-PRE-3",), limit(4, 4, block_size=2, num_blocks=4),
        [[0, "r0", 1, 6], [1, "r1", 1, 5]]),
    Row("preemption/of-a-partial-prefill", "a decode and a partial prefill fill the pool together",
        ("SCH-PRE-3", "SCH-RNG-1"), limit(4, 4, num_blocks=8),
        [[0, "r0", 2, 4], [1, "r1", 6, 2]]),
    Row("preemption/two-for-one", "two short requests are preempted for a long one",
        ("SCH-VIC-1", "SCH-PRE-4"), limit(12, 4, num_blocks=9),
        [[0, "r0", 5, 4], [0, "r1", 2, 4], [0, "r2", 1, 4]]),
    Row("preemption/newcomer-behind-victim", "a request that waits behind a victim",
        ("SCH-PRE-4", "SCH-ADM-1"), limit(8, 4, num_blocks=6),
        [[0, "r0", 3, 4], [0, "r1", 2, 3], [1, "r2", 1, 1]]),
    Row("preemption/outputs-are-kept", "a request preempted with outputs recomputes them",
        ("SCH-RNG-1", "SCH-OUT-3"), limit(8, 4, num_blocks=7),
        [[0, "r0", 2, 6], [0, "r1", 2, 5]]),
    Row("preemption/recomputed-in-chunks", "a recomputation that takes several chunks",
        ("SCH-RNG-2", "SCH-OUT-1"), limit(3, 4, num_blocks=8),
        [[0, "r0", 2, 7], [1, "r1", 3, 5]]),
    # CANCELLATION
    Row("cancel/running", "a running request is cancelled, another takes its blocks",
        ("KV-DRAIN-1", "SCH-ENT-3"), limit(8, 4, num_blocks=5),
        [[0, "r0", 3, 3], [1, "r1", 4, 2]], [[1, "r0"]]),
    Row("cancel/waiting", "a waiting request is cancelled",
        ("SCH-ENT-3", "SCH-QUE-1"), limit(8, 1),
        [[0, "r0", 3, 3], [0, "r1", 2, 2], [0, "r2", 2, 1]], [[1, "r1"]]),
    Row("cancel/inside-work", "a request is cancelled while its tokens are computed",
        ("SCH-OUT-1", "KV-DRAIN-1"), limit(8, 4, num_blocks=8),
        [[0, "r0", 3, 4], [0, "r1", 2, 3]], [[1, "r0", INSIDE]]),
    Row("cancel/partial-prefill", "a partial prefill is cancelled",
        ("KV-DRAIN-1",), limit(4, 4, num_blocks=10),
        [[0, "r0", 8, 2], [0, "r1", 3, 2]], [[1, "r0"]]),
    Row("cancel/preempted", "a preempted request is cancelled while it waits",
        ("KV-DRAIN-1", "SCH-ENT-3"), limit(8, 8, num_blocks=4),
        [[0, "r0", 1, 4], [0, "r1", 1, 4]], [[3, "r1"]]),
    Row("cancel/all-then-new", "everything is cancelled, then a request that needs the whole pool comes",
        ("KV-DRAIN-1",), limit(8, 4, num_blocks=6),
        [[0, "r0", 3, 3], [0, "r1", 2, 3], [3, "r2", 5, 2]], [[2, "r0"], [2, "r1"]]),
    # BLOCKS
    Row("blocks/slack-is-used-first", "a decode uses the room in its own last block",
        ("KV-TAKE-1", "SCH-PRE-2"), limit(8, 4, block_size=4, num_blocks=2),
        [[0, "r0", 2, 3], [0, "r1", 2, 3]]),
    Row("blocks/prompt-of-whole-blocks", "a prompt that fills its blocks exactly needs one more for its first decode",
        ("KV-HOLD-1", "KV-TAKE-1"), limit(8, 4, block_size=4, num_blocks=3),
        [[0, "r0", 8, 2]]),
    Row("blocks/last-one-taken", "the last free block is taken",
        ("KV-CONS-1", "KV-ROOM-1"), limit(8, 4, num_blocks=5),
        [[0, "r0", 3, 3], [0, "r1", 1, 1]]),
    Row("blocks/drained-and-reused", "the pool is drained, and used again in full",
        ("KV-DRAIN-1", "KV-FREE-1"), limit(8, 4, num_blocks=4),
        [[0, "r0", 3, 2], [3, "r1", 3, 2], [6, "r2", 4, 1]]),
    # PRIORITY
    Row("priority/better-one-waits-first", "the better of two waiting requests enters first",
        ("SCH-ADM-4",), limit(8, 1),
        [[0, "r0", 2, 3], [1, "r1", 2, 1, {"priority": 2}], [1, "r2", 2, 1, {"priority": 1}]], [], PRIORITY),
    Row("priority/worst-is-preempted", "the worst is preempted, though it was admitted first",
        ("SCH-VIC-1", "SCH-PRE-1"), limit(8, 4, num_blocks=5),
        [[0, "r0", 2, 3, {"priority": 9}], [0, "r1", 2, 3]], [], PRIORITY),
    Row("priority/nobody-behind-a-victim-is-skipped", "the one behind a victim in the list is still served",
        ("SCH-SKIP-1",), limit(8, 4, num_blocks=6),
        [[0, "r0", 2, 3, {"priority": 9}], [0, "r1", 2, 3], [0, "r2", 1, 3, {"priority": 1}]], [], PRIORITY),
    Row("priority/arrival-preempts-nobody", "a better request comes, and nobody is preempted for it",
        ("SCH-PRE-2",), limit(8, 2, num_blocks=8),
        [[0, "r0", 2, 4, {"priority": 5}], [0, "r1", 2, 4, {"priority": 5}], [1, "r2", 2, 1]], [], PRIORITY),
    # PREFIX CACHE
    Row("cache/full-hit", "a prompt whose every block is known still computes a token",
        ("KV-HIT-1",), limit(8, 2, block_size=2, num_blocks=6),
        [[0, "r0", 4, 2, {"prefix": [7, 8]}], [3, "r1", 4, 2, {"prefix": [7, 8]}]], [], CACHE),
    Row("cache/shared-while-running", "a hit on blocks that somebody holds",
        ("KV-HIT-2", "SCH-RNG-1"), limit(8, 4, block_size=2, num_blocks=8),
        [[0, "r0", 6, 4, {"prefix": [1, 2, 3]}], [1, "r1", 5, 2, {"prefix": [1, 2]}]], [], CACHE),
    Row("cache/oldest-content-goes-first", "content is lost when its blocks are taken again",
        ("KV-HIT-2",), limit(8, 1, block_size=2, num_blocks=4),
        [[0, "r0", 4, 1, {"prefix": [1, 2]}], [2, "r1", 7, 1, {"prefix": [5, 6, 7]}],
         [4, "r2", 5, 1, {"prefix": [1, 2]}]], [], CACHE),
    Row("cache/first-block-differs", "equal blocks behind a different one are no hit",
        ("KV-HIT-2",), limit(8, 4, block_size=2, num_blocks=8),
        [[0, "r0", 6, 2, {"prefix": [1, 2, 3]}], [2, "r1", 6, 2, {"prefix": [9, 12, 13]}]], [], CACHE),
    Row("cache/own-blocks-after-preemption", "a preempted request finds its own blocks again",
        ("KV-HIT-2", "SCH-RNG-1"), limit(8, 4, block_size=2, num_blocks=4),
        [[0, "r0", 4, 5, {"prefix": [1, 2]}], [0, "r1", 3, 4, {"prefix": [3]}]], [], CACHE),
    # OTHER RULES
    Row("rules/batch-under-way", "a request comes while a batch is under way",
        ("SCH-STA-1",), limit(8, 4),
        [[0, "r0", 2, 4], [0, "r1", 2, 2], [1, "r2", 2, 1]]),
    Row("rules/prompt-while-decoding", "a prompt comes while others decode",
        ("SCH-MIX-1", "SCH-DOC-1"), limit(8, 4),
        [[0, "r0", 2, 4], [1, "r1", 5, 2]]),
    Row("rules/active-before-waiting", "decodes take the budget before waiting prompts",
        ("SCH-DOC-1", "SCH-DOC-2"), limit(2, 4),
        [[0, "r0", 1, 5], [0, "r1", 1, 5], [1, "r2", 2, 1]]),
    Row("rules/full-pool-of-two", "two requests fill the pool together, each fits alone",
        ("LIV-END-1",), limit(8, 8, num_blocks=4),
        [[0, "r0", 1, 4], [0, "r1", 1, 4]]),
    Row("rules/over-length", "a prompt longer than the longest length",
        ("SCH-INT-3", "SCH-INT-1"), limit(16, 4, max_len=6),
        [[0, "r0", 9, 1], [0, "r1", 2, 2]]),
    Row("rules/steady-arrivals", "a prompt in every iteration while somebody decodes",
        ("SCH-SKIP-1", "SCH-DOC-1"), limit(4, 8),
        [[0, "r0", 2, 6], [1, "r1", 3, 1], [2, "r2", 3, 1], [3, "r3", 3, 1]]),
)  # fmt: skip


def read_rows() -> Iterator[Scenario]:
    """Read the hand-written scenarios."""
    for row in ROWS:
        page = {"format": SCENARIO_FORMAT, "origin": "written by hand", "edition": 1, **row._asdict()}
        yield read_scenario(page | {"clauses": list(row.clauses)})
