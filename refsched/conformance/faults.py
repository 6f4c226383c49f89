"""Planted faults: schedulers that are right but for one thing, each tied to the clause that it breaks.

Most are a Sketch with one part changed; some claim one rule and follow another; some tell wrong what they did. A suite
that does not find one of them, through its own clause, has a hole.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from refsched.conformance import wrong_parts as wrong
from refsched.conformance.edited import Edited, tell_nothing_of_blocks, tell_nothing_of_queues
from refsched.conformance.sketch import FCFS, PRIORITY, Parts, Sketch
from refsched.dialect import get_dialect
from refsched.model import Limits
from refsched.scheduling.engine import ReferenceEngine

Make = Callable[[Limits], Any]
Claim = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Fault:
    """Hold one planted fault: the clause it breaks, what it claims to be, and how it is made."""

    name: str
    clause: str
    about: str
    claim: Claim | None
    make: Make


V1: Claim = {"name": "vllm-v1"}
BY_PRIORITY: Claim = {"name": "vllm-v1", "policy": "priority"}
CACHING: Claim = {"name": "vllm-v1", "prefix_cache": True}


def change(parts: Parts = FCFS, **changes: Any) -> Make:
    """Make a Sketch with some parts changed."""
    changed = replace(parts, **changes)
    return lambda limits: Sketch(limits, changed)


def follow(name: str, **options: Any) -> Make:
    """Make the reference engine of another rule, or of other options, than is claimed."""
    dialect = get_dialect(name, options)
    return lambda limits: ReferenceEngine(dialect, limits)


def edit(name: str, options: Mapping[str, object], **edits: Any) -> Make:
    """Make a reference engine whose answers are edited."""
    dialect = get_dialect(name, options)
    return lambda limits: Edited(ReferenceEngine(dialect, limits), **edits)


def ignore_seats(name: str) -> Make:
    """Make a reference engine that looks at no sequence limit and tells nothing of its queues."""
    dialect = get_dialect(name)
    return lambda limits: Edited(ReferenceEngine(dialect, replace(limits, max_seqs=None)), tell=tell_nothing_of_queues)


# THE LIST

FAULTS: tuple[Fault, ...] = (
    Fault("admits-after-preemption", "SCH-ADM-1", "admits in an iteration that preempted",
          BY_PRIORITY, change(PRIORITY, may_admit=lambda engine: True)),
    Fault("first-victim", "SCH-VIC-1", "preempts the first running request",
          V1, change(choose_victim=lambda engine: engine.running[0])),
    Fault("requeue-at-the-back", "SCH-PRE-4", "lets a victim wait behind all others",
          V1, change(requeue=wrong.requeue_at_end)),
    Fault("budget-off-by-one", "SCH-BUD-1", "plans one token more than the budget",
          V1, change(budget=lambda engine: engine.budget + 1)),
    Fault("decodes-uncounted", "SCH-BUD-1", "charges decodes nothing", V1, change(enter_plan=wrong.ignore_decodes)),
    Fault("chunk-over-cap", "SCH-CAP-1", "plans one token more than the chunk cap",
          V1, change(cap=lambda engine: engine.cap + 1)),
    Fault("computed-kept", "SCH-RNG-1", "goes on where a preempted request was",
          V1, change(preempt=wrong.keep_computed)),
    Fault("leak-on-finish", "KV-FREE-1", "keeps the blocks of finished requests",
          V1, change(retire=wrong.forget_blocks)),
    Fault("leak-on-cancel", "KV-DRAIN-1", "keeps the blocks of cancelled requests",
          V1, change(drop=wrong.forget_blocks_of_cancelled)),
    Fault("double-plan", "SCH-ENT-2", "plans a decode twice", V1, change(finish=wrong.plan_first_twice)),
    Fault("skip-with-budget-left", "SCH-SKIP-1", "passes over the one behind a victim that stood before it",
          BY_PRIORITY, change(PRIORITY, order=wrong.skip_after_victim)),
    Fault("head-of-line-skip", "SCH-ADM-4", "admits past a head that does not fit", V1, change(head_blocks=False)),
    Fault("starving-order", "SCH-ORD-1", "serves the last admitted first", V1, change(order=wrong.run_newest_first)),
    Fault("reservation-not-undone", "KV-TAKE-1", "keeps a block for a request that was not let in",
          V1, change(passes_gate=wrong.reserve_and_forget)),
    Fault("seats-seen-too-early", "SCH-SEQ-1", "looks at the sequence limit once per iteration",
          V1, change(has_seat=wrong.count_seats_before)),
    Fault("prefills-take-no-seat", "SCH-SEQ-2", "lets partial prefills take no seat",
          V1, change(has_seat=wrong.count_started_only)),
    Fault("zero-token-entry", "SCH-ENT-1", "plans the next in line even where no token is left",
          V1, change(finish=wrong.plan_empty_entries)),
    Fault("victim-stays-planned", "SCH-PRE-1", "preempts a request that it has planned, and plans it",
          BY_PRIORITY, change(PRIORITY, preempt=wrong.keep_in_plan)),
    Fault("plans-the-finished", "SCH-ENT-3", "plans a finished request once more",
          V1, change(retire=wrong.retire_late)),
    Fault("chunks-start-over", "SCH-RNG-2", "starts every chunk at the beginning of its prompt",
          V1, change(finish=wrong.start_chunks_over)),
    Fault("decodes-two", "SCH-RNG-3", "plans two tokens for a decode", V1, change(share=wrong.decode_two)),
    Fault("needless-preemption", "SCH-PRE-2", "preempts although the last block has room",
          V1, change(make_room=wrong.want_a_free_block)),
    Fault("waits-for-room", "SCH-PRE-3", "preempts nobody", V1, change(make_room=wrong.wait_for_room)),
    Fault("half-chunks", "SCH-SHARE-1", "grants half of what is there", V1, change(share=wrong.halve)),
    Fault("cap-when-alone", "SCH-SHARE-1", "caps a request that is alone", V1, change(lifts_cap=False)),
    Fault("gate-sees-a-chunk", "SCH-ADM-3", "lets a request in if its first chunk fits",
          V1, change(passes_gate=wrong.gate_by_chunk)),
    Fault("watermark-ignored", "SCH-ADM-3", "leaves no block free",
          {"name": "vllm-v1", "watermark_blocks": 1}, change()),
    Fault("takes-the-impossible", "SCH-INT-1", "takes what can never finish", V1, change(refuse=wrong.refuse_nothing)),
    Fault("refuses-exact-fits", "SCH-INT-2", "asks for room for the last output",
          V1, change(refuse=wrong.refuse_exact_fits)),
    Fault("takes-a-name-twice", "MOD-REQ-1", "takes a second request of a live id",
          V1, change(refuse=wrong.take_any_name)),
    Fault("blocks-told-late", "KV-HOLD-1", "plans a decode before it holds its block",
          V1, change(tell=wrong.tell_blocks_before)),
    Fault("takes-what-is-not-there", "KV-CONS-1", "takes more blocks than are free",
          V1, change(make_room=wrong.take_without_room)),
    Fault("plans-without-room", "KV-ROOM-1", "the same, and tells nothing of its blocks",
          V1, change(make_room=wrong.take_without_room, tell=tell_nothing_of_blocks)),
    Fault("steals-blocks", "KV-KEEP-1", "takes blocks from a running request silently",
          V1, change(make_room=wrong.steal_room)),
    Fault("spare-block", "KV-TAKE-1", "takes a block more than it needs", V1, change(spare_blocks=1)),
    Fault("queued-twice", "SCH-QUE-1", "leaves the preempted in the running list",
          V1, change(tell=wrong.tell_preempted_twice)),
    Fault("drops-the-preempted", "SCH-OUT-3", "gives preempted requests up", V1, change(finish=wrong.drop_preempted)),
    Fault("priority-ignored", "SCH-VIC-1", "preempts the last admitted, whatever its priority",
          BY_PRIORITY, change(PRIORITY, choose_victim=lambda engine: engine.running[-1])),
    Fault("priority-queue-ignored", "SCH-ADM-4", "admits in the order of arrival, whatever the priority",
          BY_PRIORITY, change(PRIORITY, enqueue=FCFS.enqueue, requeue=FCFS.requeue)),
    Fault("whole-prompts-only", "LIV-END-1", "waits for ever with a prompt above the budget",
          None, change(passes_gate=wrong.admit_whole_prompts)),
    Fault("preempts-itself-for-ever", "LIV-LOOP-1", "lets in what never fits, and preempts it again and again",
          None, change(refuse=wrong.refuse_nothing, passes_gate=wrong.gate_by_chunk)),
    Fault("impossible-blocks", "LIV-IMP-1", "lets what never fits wait for ever",
          None, change(refuse=wrong.refuse_nothing)),
    Fault("start-ignores-hit", "SCH-RNG-2", "starts at 0 after a cache hit",
          CACHING, edit("vllm-v1", {"prefix_cache": True}, plan=Edited.start_hits_at_0)),
    Fault("full-hit", "KV-HIT-1", "takes a whole prompt from the cache",
          CACHING, edit("vllm-v1", {"prefix_cache": True}, plan=Edited.tell_full_hits)),
    Fault("hit-one-block-short", "KV-HIT-2", "misses the last block of a hit",
          CACHING, edit("vllm-v1", {"prefix_cache": True}, plan=Edited.shorten_hits)),
    Fault("joins-a-static-batch", "SCH-STA-1", "lets requests join a batch under way",
          {"name": "static"}, follow("no-evict")),
    Fault("seats-ignored", "SCH-ADM-2", "admits though every seat is taken, and shows no queue",
          {"name": "prefill-first"}, ignore_seats("prefill-first")),
    Fault("mixes", "SCH-MIX-1", "lets decodes share an iteration of prefills",
          {"name": "prefill-first"}, follow("sarathi")),
    Fault("prefill-before-decode", "SCH-DOC-1", "gives prefills the budget before decodes",
          {"name": "document-a"}, edit("document-a", {}, plan=Edited.put_off_decodes)),
    Fault("document-a-by-priority", "SCH-DOC-2", "gives the budget by a priority that it does not claim",
          {"name": "document-a"}, follow("document-a", order="priority")),
    Fault("document-a-head-blocks", "SCH-SKIP-1", "stops at the first waiting request that gets nothing",
          {"name": "document-a"}, edit("document-a", {}, plan=Edited.stop_at_head)),
    Fault("length-never-refused", "SCH-INT-3", "keeps a prompt above the longest length waiting",
          {"name": "sarathi-serve-orca"}, follow("sarathi-serve-orca", planning_rejects="nothing")),
    Fault("walk-ends-too-early", "SCH-SKIP-1", "ends its walk where a request preempts itself",
          BY_PRIORITY, follow("vllm-0.29", policy="priority", chunk_cap_lifted_when_alone=True)),
)  # fmt: skip
