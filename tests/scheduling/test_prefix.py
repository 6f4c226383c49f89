"""The prefix cache by the rules of its recordings: lookup, price, numbers, copies, order of eviction [A18]."""

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refsched.conformance.exact import find_difference, make_reference
from refsched.conformance.protocol import TraceWriter, read_trace
from refsched.dialect import get_dialect
from refsched.model import Limits, Planned, Request
from refsched.scheduling.engine import ReferenceEngine
from refsched.scheduling.kv import NO_HIT, Pool
from refsched.scheduling.live import Live
from refsched.scheduling.prefix import PrefixPool
from refsched.simulation.cost import UnitCost
from refsched.simulation.step import Simulated, simulate
from refsched.units import TICKS_PER_SECOND
from refsched.workload.offer import Offer

SIZE = 4


def make_live(id: str, prompt: int, *prefix: int, arrival: int = 0) -> Live:
    return Live(Request(id, prompt, 9, prefix=prefix), arrival)


def enter(pool: PrefixPool, live: Live, tokens: int | None = None) -> int:
    """Let a request in with what it finds, grow it, and return the tokens found."""
    hit = pool.find(live)
    pool.adopt(live, hit)
    assert pool.grow(live.id, live.known if tokens is None else tokens)
    assert pool.is_conserved()
    return len(hit.blocks) * SIZE


def serve(pool: PrefixPool, live: Live) -> int:
    """Let a request in and out again, and return the tokens found."""
    found = enter(pool, live)
    pool.release(live.id)
    assert pool.is_conserved() and live.id not in pool.held
    return found


def test_a_plain_pool_finds_nothing() -> None:
    assert Pool(SIZE, 8).find(make_live("a", 9, 1, 2)) is NO_HIT


def test_what_was_computed_before_is_found_in_whole_blocks_and_one_token_is_left() -> None:
    pool = PrefixPool(SIZE, 8)
    assert serve(pool, make_live("a", 8, 1, 2)) == 0
    assert serve(pool, make_live("b", 8, 1, 2)) == 4  # known - 1 = 7: one whole block
    assert serve(pool, make_live("c", 9, 1, 2)) == 8
    assert serve(pool, make_live("d", 9, 1, 3)) == 4
    assert serve(pool, make_live("e", 9, 4, 5)) == 0


def test_a_block_has_its_number_when_the_plan_that_fills_it_is_made() -> None:
    pool = PrefixPool(SIZE, 8)
    enter(pool, make_live("a", 12, 1, 2, 3), tokens=6)
    assert len(pool.find(make_live("twin", 12, 1, 2, 3)).blocks) == 1  # the second block is only half full
    pool.grow("a", 8)
    assert len(pool.find(make_live("twin", 12, 1, 2, 3)).blocks) == 2


def test_a_held_block_is_shared_free_of_charge_and_a_free_one_leaves_the_free_list() -> None:
    pool = PrefixPool(SIZE, 8)
    enter(pool, make_live("a", 8, 1, 2))
    assert pool.find(make_live("b", 9, 1, 2)).idle == 0
    enter(pool, make_live("b", 9, 1, 2))
    assert pool.held == {"a": 2, "b": 3} and pool.free == 5  # 3 distinct blocks in use, 5 counted
    pool.release("a")
    assert pool.free == 5  # b holds them still
    pool.release("b")
    assert pool.free == 8 and pool.find(make_live("c", 9, 1, 2)).idle == 2


def test_a_block_without_a_number_is_met_again_by_its_own_request_only() -> None:
    pool = PrefixPool(SIZE, 8)
    mine, other, later = make_live("a", 9), make_live("b", 9, arrival=1), make_live("a", 9, arrival=2)
    serve(pool, mine)
    assert len(pool.find(mine).blocks) == 2
    assert pool.find(other) is NO_HIT and pool.find(later) is NO_HIT  # a name used again is another request


def test_blocks_that_outputs_fill_are_found_by_their_numbers() -> None:
    pool = PrefixPool(SIZE, 8)
    first = Live(Request("a", 6, 3, prefix=(1,), output_blocks=(2,)), 0)
    enter(pool, first)
    pool.grow("a", 8)  # two outputs computed fill the block that began with prompt tokens
    assert len(pool.find(make_live("b", 9, 1, 2)).blocks) == 2


def test_eviction_takes_blocks_without_a_number_then_the_least_recently_freed_and_the_tail_first() -> None:
    pool = PrefixPool(SIZE, 6)
    serve(pool, make_live("a", 8, 1, 2))
    serve(pool, make_live("b", 8, 3, 4))
    enter(pool, make_live("c", 7))  # two blocks were never used
    assert len(pool.find(make_live("x", 9, 1, 2)).blocks) == len(pool.find(make_live("x", 9, 3, 4)).blocks) == 2
    enter(pool, make_live("d", 3, arrival=1))
    assert len(pool.find(make_live("x", 9, 1, 2)).blocks) == 1  # a's tail went first
    pool.release("d")  # its block has no number: it is taken before any other
    enter(pool, make_live("e", 3, arrival=2))
    assert len(pool.find(make_live("x", 9, 1, 2)).blocks) == 1
    enter(pool, make_live("f", 7, arrival=3))
    assert pool.find(make_live("x", 9, 1, 2)) is NO_HIT and len(pool.find(make_live("x", 9, 3, 4)).blocks) == 1


def test_a_hit_makes_a_chain_the_most_recently_freed() -> None:
    pool = PrefixPool(SIZE, 4)
    serve(pool, make_live("a", 8, 1, 2))
    serve(pool, make_live("b", 8, 3, 4))
    assert serve(pool, make_live("c", 6, 1, 9)) == 4  # takes block 1 and, for the rest, the tail of a
    serve(pool, make_live("d", 8, arrival=1))  # two more: c's tail, which had no number, and the tail of b
    assert len(pool.find(make_live("x", 9, 1, 2)).blocks) == len(pool.find(make_live("x", 9, 3, 4)).blocks) == 1


def test_equal_content_computed_twice_is_two_blocks_and_the_oldest_copy_serves() -> None:
    pool = PrefixPool(SIZE, 8)
    enter(pool, make_live("a", 4, 1))
    enter(pool, make_live("b", 4, 1))  # its last token has to be computed: a copy
    first, second = pool.chains["a"].blocks[0], pool.chains["b"].blocks[0]
    assert first != second and pool.find(make_live("x", 5, 1)).blocks == (first,)
    pool.release("a")
    for place in range(7):
        enter(pool, make_live(f"c{place}", 3, arrival=place + 1))  # takes all free blocks: the first copy too
    assert pool.free == 0 and pool.find(make_live("x", 5, 1)).blocks == (second,)


def test_what_does_not_fit_changes_nothing() -> None:
    pool = PrefixPool(SIZE, 3)
    enter(pool, make_live("a", 8, 1, 2))
    live = make_live("b", 9, 3, 4)
    pool.adopt(live, pool.find(live))
    assert not pool.grow("b", 9) and pool.free == 1 and pool.held == {"a": 2, "b": 0} and pool.is_conserved()


@pytest.mark.parametrize("spoil", ["blank", "holders", "held", "idle"])
def test_a_block_lost_or_counted_twice_is_noticed(spoil: str) -> None:
    pool = PrefixPool(SIZE, 8)
    serve(pool, make_live("a", 8, 1, 2))
    enter(pool, make_live("b", 9, 3, 4))
    assert pool.is_conserved()
    if spoil == "blank":
        pool.blank -= 1
    elif spoil == "holders":
        pool.holders[pool.chains["b"].blocks[0]] += 1
    elif spoil == "held":
        pool.held["b"] += 1
    else:
        pool.idle[pool.chains["b"].blocks[0]] = None
    assert not pool.is_conserved()


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 12), st.integers(0, 1)), max_size=30))
def test_no_block_is_ever_lost(moves: list[tuple[int, int, int]]) -> None:
    """Whatever enters, grows and leaves: free and distinct held blocks add up, and slots are as the plain pool says."""
    pool = PrefixPool(2, 7)
    for turn, (who, tokens, kind) in enumerate(moves):
        id = f"r{who}"
        if id not in pool.held:
            live = make_live(id, tokens, *range(10 * kind, 10 * kind + tokens // 2), arrival=turn)
            pool.adopt(live, pool.find(live))
        elif kind:
            pool.release(id)
        elif pool.grow(id, tokens):
            assert pool.held[id] * 2 >= tokens
        assert pool.is_conserved() and 0 <= pool.free <= 7 and pool.peak() <= 7
    for id in tuple(pool.held):
        pool.release(id)
    assert pool.free == 7 and pool.slots_for("new", 0) == 14


# IN THE ENGINE


def make_engine(limits: Limits, **options: object) -> ReferenceEngine:
    return ReferenceEngine(get_dialect("vllm-v1", {"prefix_cache": True, **options}), limits)


def run(engine: ReferenceEngine, *requests: Request) -> Simulated:
    """Run requests that arrive one every ten iterations."""
    offers = [Offer(10 * place * TICKS_PER_SECOND, request) for place, request in enumerate(requests)]
    return simulate(engine, engine.limits, UnitCost(), offers)


def test_cached_tokens_cost_no_budget_and_a_twin_in_the_same_plan_hits() -> None:
    engine = make_engine(Limits(12, 4, block_size=SIZE, num_blocks=32))
    for id in ("a", "b"):
        engine.submit(Request(id, 10, 1, prefix=(1, 2)))
    plan = engine.plan()
    assert plan.entries == (("a", 0, 10), ("b", 8, 2))
    assert plan.cached == (("a", 0), ("b", 8))


def test_a_victim_returns_to_the_blocks_that_nobody_took() -> None:
    limits = Limits(64, 4, block_size=SIZE, num_blocks=6)
    engine = make_engine(limits)
    engine.submit(Request("a", 11, 9, prefix=(1, 2)))
    engine.submit(Request("b", 11, 9, prefix=(3, 4)))
    plans = []
    for _ in range(3):
        plans.append(engine.plan())
        engine.complete([entry.id for entry in plans[-1].entries], [])
    assert [plan.preempted for plan in plans] == [(), (), ("b",)]
    engine.cancel("a")
    back = engine.plan()
    assert back.entries[0].start == dict(back.cached)["b"] == 8  # its third full block was its tail: a took it


def test_a_fresh_engine_is_cold_and_one_that_has_served_is_warm() -> None:
    engine = make_engine(Limits(64, 4, block_size=SIZE, num_blocks=32))
    requests = [Request(f"r{place}", 9, 2, prefix=(1, place)) for place in range(2, 4)]
    run(engine, *requests)
    reuse = engine.reuse()
    assert reuse is not None and reuse.share() == Fraction(4, 18)  # r3 finds block 1
    assert reuse.block_share() == Fraction(1, 6)
    run(engine, *requests)
    assert reuse.share() == Fraction(4 + 8 + 8, 36)
    assert make_engine(Limits(64, 4, block_size=SIZE)).reuse() is not reuse


def test_without_a_cache_there_is_nothing_to_report() -> None:
    engine = make_engine(Limits(64, 4), prefix_cache=False)
    engine.submit(Request("a", 9, 2, prefix=(1, 2)))
    assert engine.reuse() is None and engine.plan().cached == ()
    assert make_engine(Limits(64, 4)).reuse().share() is None  # type: ignore[union-attr]


def test_the_livelock_of_the_uncached_engine_becomes_a_stall() -> None:
    """An admitted request of 200 tokens against 160 slots, with the chunk gate: its own blocks cost the whole pool."""
    requests = [Request("r0", 200, 4, prefix=tuple(range(12))), Request("r1", 10, 3)]
    kinds = {}
    for cache in (False, True):
        options = {"prefix_cache": cache, "admission_gate": "chunk", "impossible": "admit"}
        engine = make_engine(Limits(64, 8, block_size=16, num_blocks=10), **options)
        kinds[cache] = run(engine, *requests).ending.kind
    assert kinds == {False: "livelock", True: "stuck"}


def test_what_a_plan_found_is_written_beside_the_plan_and_read_again() -> None:
    lines: list[str] = []
    engine = make_engine(Limits(64, 4, block_size=SIZE, num_blocks=32))
    options = {"name": "vllm-v1", **engine.dialect.options()}
    writer = TraceWriter(lines.append, "refsched", "0", options, engine.limits, {"name": "two"})
    offers = [Offer(0, Request(id, 9, 2, prefix=(1, 2))) for id in ("a", "b")]
    simulate(engine, engine.limits, UnitCost(), offers, [writer])
    writer.close()
    trace = read_trace(lines)
    assert next(event for event in trace.events if isinstance(event, Planned)).plan.cached == (("a", 0), ("b", 8))
    assert json.loads(next(line for line in lines if '"entries"' in line))["cached"] == {"a": 0, "b": 8}
    assert find_difference(trace, make_reference(trace), trace.limits) is None
