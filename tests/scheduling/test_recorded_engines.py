"""Every recorded plan of eight engines is reproduced: entries, preemptions, refusals, queues, blocks, cache hits.

Files whose header shows a defect of their engine are among them: the defect follows from a choice that the dialect
names, except for outputs counted anew after a preemption, where the recording itself says who ended when.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from refsched.conformance.exact import find_difference, make_reference
from refsched.conformance.protocol import read_trace
from refsched.dialect import get_dialect
from refsched.errors import InputError
from refsched.model import Trace
from refsched.scheduling.engine import ReferenceEngine
from refsched.scheduling.prefix import PrefixPool
from tests.shared import SHARED, needs_shared

PLANS = SHARED / "data" / "plans"

# folder, files (more may be there), of them exact
TABLE = [
    ("vllm-0.29", 80, "all"),
    ("vllm-0.33", 80, "all"),
    ("vllm-0.29-priority", 36, "all"),
    ("vllm-0.33-priority", 36, "all"),
    ("vllm-0.29-prefix-caching", 39, "all"),
    ("vllm-0.33-prefix-caching", 39, "all"),
    ("vllm-0.8.5-v0-default", 42, "all"),
    ("vllm-0.8.5-v0-chunked", 51, "all"),
    ("sarathi-serve-orca", 42, "all"),
    ("vidur-orca", 43, "all"),
    ("sarathi-serve-sarathi", 46, "all"),
    ("sarathi-serve-vllm", 46, "all"),
]

# Recorded, and not modelled: folder, and what its rules rest on.
NOT_MODELLED = {
    "vidur-sarathi": "a preempted partial prefill loses the rest of its prompt, which comes out as output",
    "vidur-vllm": "the token budget counts padding, and a victim grown over it blocks the queue for ever",
    "vidur-lightllm": "admission by a worst-case curve with a strict <: a request as large as the pool waits for ever",
    "vidur-faster-transformer": "blocks of a request that ends before the last of its batch are never freed",
}


@cache
def read(folder: str) -> dict[str, Trace]:
    """Read every recording of a folder."""
    return {path.name: read_file(path) for path in sorted((PLANS / folder).glob("*.jsonl"))}


def read_file(path: Path) -> Trace:
    with path.open(encoding="utf-8") as lines:
        return read_trace(lines)


def find_differences(folder: str, make: Callable[[Trace], ReferenceEngine] = make_reference) -> Iterator[str]:
    """Name each file of a folder that differs, and its first difference."""
    for name, trace in read(folder).items():
        difference = find_difference(trace, make(trace), trace.limits)
        if difference is not None:
            yield f"{name}: {difference}"


@needs_shared("data", "plans")
@pytest.mark.parametrize(("folder", "files", "exact"), TABLE)
def test_a_folder_is_reproduced_plan_for_plan(folder: str, files: int, exact: str) -> None:
    assert list(find_differences(folder)) == []
    assert len(read(folder)) >= files and exact == "all"


@needs_shared("data", "plans")
@pytest.mark.parametrize("folder", NOT_MODELLED)
def test_an_engine_that_is_not_modelled_is_refused_by_name(folder: str) -> None:
    for trace in read(folder).values():
        with pytest.raises(InputError, match=f"no dialect named '{folder}'"):
            make_reference(trace)


# EVERY CHOICE COUNTS: with another value, some file is not reproduced

CHOICES = [
    ("vllm-0.29-priority", "policy", "fcfs"),
    ("vllm-0.29-priority", "self_victim", "next-goes-on"),
    ("vllm-0.33", "chunk_cap_lifted_when_alone", False),
    ("vllm-0.33", "admission_gate", "chunk"),
    ("vllm-0.33", "decode_limit", 2),
    ("vllm-0.33-priority", "order", "arrival"),
    ("vllm-0.33-prefix-caching", "prefix_cache", False),
    ("vllm-0.33-prefix-caching", "watermark_blocks", 2),
    ("vllm-0.8.5-v0-default", "decode_reserve", "exact"),
    ("vllm-0.8.5-v0-default", "watermark_percent", 0),
    ("vllm-0.8.5-v0-default", "planning_rejects", "over-length"),
    ("vllm-0.8.5-v0-default", "impossible", "reject"),
    ("vllm-0.8.5-v0-chunked", "decode_reserve", "exact"),
    ("vllm-0.8.5-v0-chunked", "watermark_percent", 0),
    ("vllm-0.8.5-v0-chunked", "planning_rejects", "over-length"),
    ("sarathi-serve-orca", "planning_rejects", "nothing"),
    ("sarathi-serve-orca", "slot_rounding", "down"),
    ("vidur-orca", "planning_rejects", "over-length"),
    ("sarathi-serve-sarathi", "decode_reserve", "exact"),
    ("sarathi-serve-sarathi", "watermark_percent", 2),
    ("sarathi-serve-sarathi", "victim_reset", "at-once"),
    ("sarathi-serve-sarathi", "planning_rejects", "nothing"),
    ("sarathi-serve-vllm", "victim_reset", "at-once"),
    ("sarathi-serve-vllm", "rejection_ends_step", False),
    ("sarathi-serve-vllm", "planning_rejects", "nothing"),
]


@needs_shared("data", "plans")
@pytest.mark.parametrize(("folder", "option", "value"), CHOICES)
def test_another_choice_is_noticed(folder: str, option: str, value: object) -> None:
    def make(trace: Trace) -> ReferenceEngine:
        dialect = replace(make_reference(trace).dialect, **{option: value})  # type: ignore[arg-type]
        return ReferenceEngine(dialect, trace.limits)

    assert next(find_differences(folder, make), None) is not None


@needs_shared("data", "plans")
@pytest.mark.parametrize(
    ("folder", "name"),
    [("vllm-0.8.5-v0-default", "vllm-v0-chunked"), ("sarathi-serve-sarathi", "sarathi"), ("vidur-orca", "orca")],
)
def test_another_rule_is_noticed(folder: str, name: str) -> None:
    dialect = get_dialect(name, {"impossible": "admit"})
    assert next(find_differences(folder, lambda trace: ReferenceEngine(dialect, trace.limits)), None) is not None


# THE CACHE: each of its rules, broken


def head_first(pool: PrefixPool, owner: str) -> None:
    """Give a request's blocks back head first."""
    pool.chains[owner].blocks.reverse()
    PrefixPool.release(pool, owner)


def forgetting(pool: PrefixPool, owner: str) -> None:
    """Let freed blocks lose their numbers."""
    PrefixPool.release(pool, owner)
    for block in tuple(pool.idle):
        pool.forget(block)
    pool.blank += len(pool.idle)
    pool.idle.clear()


def last_freed_first(pool: PrefixPool, owner: str) -> None:
    """Put freed numbered blocks to the front."""
    before = set(pool.idle)
    PrefixPool.release(pool, owner)
    for block in [block for block in pool.idle if block not in before]:
        pool.idle.move_to_end(block, last=False)


@needs_shared("data", "plans")
@pytest.mark.parametrize("release", [head_first, forgetting, last_freed_first])
def test_another_way_of_freeing_is_noticed(release: Callable[[PrefixPool, str], None]) -> None:
    class Broken(PrefixPool):
        def release(self, owner: str) -> None:
            release(self, owner)

    def make(trace: Trace) -> ReferenceEngine:
        engine = make_reference(trace)
        engine.queues.pool = Broken(trace.limits.block_size, trace.limits.num_blocks)
        return engine

    assert next(find_differences("vllm-0.33-prefix-caching", make), None) is not None
