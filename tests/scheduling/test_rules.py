"""The published rules in cases small enough to follow; recordings are replayed in test_recorded_engines."""

import pytest

from refsched.dialect import get_dialect
from refsched.errors import InputError
from refsched.model import Limits, Plan, Request
from refsched.record import Outcome
from refsched.scheduling.engine import ReferenceEngine
from refsched.scheduling.kv import explain_impossible, get_longest
from refsched.simulation.cost import UnitCost
from refsched.simulation.step import Simulated, simulate
from refsched.units import TICKS_PER_SECOND
from refsched.workload.offer import Offer

Asked = tuple[str, int, int]


class Drive:
    """Drive an engine by hand: everybody whose known tokens are computed emits; who has its outputs ends."""

    def __init__(self, name: str, limits: Limits, **options: object):
        self.engine = ReferenceEngine(get_dialect(name, options), limits)
        self.ends: dict[str, int] = {}
        self.known: dict[str, int] = {}

    def submit(self, *asked: Asked) -> None:
        for id, prompt, output in asked:
            assert self.engine.submit(Request(id, prompt, output)) is None
            self.known[id], self.ends[id] = prompt, prompt + output

    def step(self) -> Plan:
        plan = self.engine.plan()
        emitted = [entry.id for entry in plan.entries if entry.start + entry.count == self.known[entry.id]]
        for id in emitted:
            self.known[id] += 1
        self.engine.complete(emitted, [id for id in emitted if self.known[id] == self.ends[id]])
        return plan

    def show(self) -> dict[str, int]:
        """Run one iteration and give its plan as id -> tokens."""
        return {entry.id: entry.count for entry in self.step().entries}


def run(name: str, limits: Limits, *asked: tuple[int, int, int], **options: object) -> Simulated:
    """Simulate requests of (arrival, prompt, output) as the dialect would serve them."""
    dialect = get_dialect(name, options)
    offers = [
        Offer(at * TICKS_PER_SECOND, Request(f"r{place}", prompt, output))
        for place, (at, prompt, output) in enumerate(asked)
    ]
    return simulate(ReferenceEngine(dialect, limits), limits, UnitCost(), offers, (), dialect.stop)


# ORCA


def test_orca_reserves_a_whole_slot_and_runs_whole_prompts_beside_decodes() -> None:
    drive = Drive("orca", Limits(None, 8, block_size=4, num_blocks=8, max_len=10))  # two slots of three blocks
    drive.submit(("a", 2, 3), ("b", 7, 2), ("c", 1, 1))
    assert drive.show() == {"a": 2, "b": 7}
    assert drive.engine.state().held == {"a": 3, "b": 3}
    assert drive.show() == {"a": 1, "b": 1}  # b ends
    assert drive.show() == {"a": 1, "c": 1}


def test_orca_without_a_max_len_reserves_what_the_request_needs() -> None:
    drive = Drive("orca", Limits(None, 8, num_blocks=9))
    drive.submit(("a", 2, 3), ("b", 4, 3))  # 4 and 6 slots
    assert drive.show() == {"a": 2} and drive.engine.state().held == {"a": 4}


def test_orca_refuses_what_can_never_enter() -> None:
    small_pool = Drive("orca", Limits(None, 8, block_size=4, num_blocks=3, max_len=16)).engine
    assert small_pool.submit(Request("a", 1, 1)) == "a slot of 16 tokens needs 4 blocks; the pool has 3"
    budget = Drive("orca", Limits(6, 8)).engine
    assert "in one piece; the token budget is 6" in (budget.submit(Request("a", 7, 1)) or "")
    assert budget.submit(Request("b", 6, 1)) is None


def test_a_slot_rounded_down_lacks_room_for_the_last_tokens() -> None:
    limits = Limits(None, 8, block_size=16, num_blocks=9, max_len=50)
    for name, blocks in (("sarathi-serve-orca", 4), ("vidur-orca", 3)):
        drive = Drive(name, limits)
        drive.submit(("a", 40, 10))
        assert drive.show() == {"a": 40} and drive.engine.state().held == {"a": blocks}


# PREFILL FIRST


def test_prefill_first_never_mixes_and_its_decodes_wait() -> None:
    drive = Drive("prefill-first", Limits(8, 8))
    drive.submit(("a", 3, 4))
    assert drive.show() == {"a": 3}
    drive.submit(("long", 18, 2))
    assert [drive.show() for _ in range(4)] == [{"long": 8}, {"long": 8}, {"long": 2}, {"a": 1, "long": 1}]


def test_prefill_first_continues_a_chunk_before_newcomers() -> None:
    drive = Drive("prefill-first", Limits(8, 8))
    drive.submit(("long", 12, 1), ("b", 6, 1))
    assert [drive.show() for _ in range(3)] == [{"long": 8}, {"long": 4, "b": 4}, {"b": 2}]


def test_prefill_first_preempts_the_last_admitted_and_recomputes_it() -> None:
    drive = Drive("prefill-first", Limits(8, 8, num_blocks=5))
    drive.submit(("a", 2, 4), ("b", 2, 3))
    assert drive.show() == {"a": 2, "b": 2}
    second = drive.step()
    assert second.preempted == ("b",) and [entry.id for entry in second.entries] == ["a"]
    assert [drive.show() for _ in range(3)] == [{"a": 1}, {"a": 1}, {"b": 3}]  # 2 + 1, and the next output comes of it


# SARATHI


def test_sarathi_serves_decodes_then_partial_prefills_then_new_requests() -> None:
    drive = Drive("sarathi", Limits(6, 8))
    drive.submit(("a", 2, 9), ("long", 9, 1))
    assert drive.show() == {"a": 2, "long": 4}
    drive.submit(("c", 3, 1))
    plan = drive.step()
    assert plan.entries == (("a", 2, 1), ("long", 4, 5))
    assert drive.show() == {"a": 1, "c": 3}


def test_sarathi_takes_all_blocks_of_a_prompt_at_admission() -> None:
    drive = Drive("sarathi", Limits(2, 8, block_size=2, num_blocks=5))
    drive.submit(("a", 6, 1), ("b", 5, 1))
    assert drive.show() == {"a": 2} and drive.engine.state().held == {"a": 3}
    assert [drive.show() for _ in range(2)] == [{"a": 2}, {"a": 2}]


def test_sarathi_admits_nobody_in_a_step_that_preempts_and_preempts_the_latest_arrival() -> None:
    drive = Drive("sarathi", Limits(8, 8, num_blocks=5))
    drive.submit(("a", 2, 4), ("b", 2, 4))
    assert drive.show() == {"a": 2, "b": 2}
    drive.submit(("c", 1, 1))
    plan = drive.step()
    assert plan.preempted == ("b",) and plan.entries == (("a", 2, 1),)
    assert drive.engine.state().waiting == ("b", "c")


@pytest.mark.parametrize(("reserve", "preempted"), [("exact", ()), ("one-free-block", ("b",))])
def test_a_decode_may_ask_for_a_block_that_it_does_not_need(reserve: str, preempted: tuple[str, ...]) -> None:
    """Field example 19: two requests of 1 + 3 tokens, two blocks of four."""
    drive = Drive("sarathi", Limits(8, 8, block_size=4, num_blocks=2), decode_reserve=reserve)
    drive.submit(("a", 1, 3), ("b", 1, 3))
    assert drive.show() == {"a": 1, "b": 1}
    assert drive.step().preempted == preempted


def test_the_smallest_recorded_run_that_stops_although_everything_fits() -> None:
    """6 + 3 tokens in 2 blocks of 4, then 7 + 1: the victim of an empty plan is never reset."""
    limits, asked = Limits(12, 3, block_size=4, num_blocks=2, max_len=9), ((0, 6, 3), (1, 7, 1))
    assert run("sarathi-serve-sarathi", limits, *asked).ending.kind == "stuck"
    assert run("sarathi", limits, *asked).ending.kind == "done"
    assert run("sarathi-serve-sarathi", limits, *asked, victim_reset="at-once").ending.kind == "done"


# NO EVICTION


def test_no_evict_reserves_everything_at_admission_so_nobody_runs_out() -> None:
    limits, asked = Limits(8, 8, num_blocks=8), (("a", 2, 4), ("b", 2, 4), ("c", 1, 1))
    drive = Drive("no-evict", limits)
    drive.submit(*asked)
    assert drive.show() == {"a": 2}  # 5 slots; b needs 5 of the 3 left and blocks c, which would fit
    assert drive.engine.state().held == {"a": 5}
    assert run("no-evict", limits, (0, 2, 4), (0, 2, 4), (0, 1, 1)).preemptions == 0
    assert run("vllm-v1", limits, (0, 2, 4), (0, 2, 4), (0, 1, 1)).preemptions > 0


def test_no_evict_puts_decodes_first_and_chunks_prompts() -> None:
    drive = Drive("no-evict", Limits(4, 8, chunk_cap=3))
    drive.submit(("a", 1, 9), ("long", 9, 1))
    assert [drive.show() for _ in range(3)] == [{"a": 1, "long": 3}, {"a": 1, "long": 3}, {"a": 1, "long": 3}]


# VLLM V0


def test_v0_alone_in_a_full_pool_recomputes_everything_for_each_output() -> None:
    """As recorded: 16 + 10 tokens in two blocks of 16 take 18 plans, of which 8 are empty."""
    result = run("vllm-v0", Limits(256, 8, block_size=16, num_blocks=2, max_len=32), (0, 16, 10))
    assert (result.iterations, result.preemptions, result.ending.kind) == (18, 8, "done")
    assert run("vllm-v1", Limits(256, 8, block_size=16, num_blocks=2, max_len=32), (0, 16, 10)).iterations == 10


def test_v0_drops_a_victim_that_grew_out_of_the_pool_above_the_watermark() -> None:
    """As recorded: 390 + 9 tokens, 100 blocks of 4, one kept free; dropped after 8 of 9 outputs."""
    limits = Limits(1024, 4, block_size=4, num_blocks=100, max_len=512)
    dropped, other = run("vllm-v0", limits, (0, 390, 9), (0, 4, 3)).records
    assert (dropped.outcome, len(dropped.deliveries)) == (Outcome.REJECTED, 8)
    assert (other.outcome, len(other.deliveries)) == (Outcome.COMPLETED, 3)


def test_v0_refuses_a_prompt_while_planning_and_the_step_goes_on_as_sarathis_copy_does_not() -> None:
    plans = {}
    for name in ("vllm-v0", "sarathi-serve-vllm"):
        drive = Drive(name, Limits(64, 4, block_size=16, num_blocks=64, max_len=128))
        drive.submit(("a", 20, 8))
        drive.step()
        drive.submit(("b", 200, 3))
        plans[name] = drive.step()
        assert drive.engine.state().waiting == () and "b" not in drive.engine.live
    assert plans["vllm-v0"] == Plan((("a", 20, 1),), rejected=("b",))  # type: ignore[arg-type]
    assert plans["sarathi-serve-vllm"] == Plan(rejected=("b",))


@pytest.mark.parametrize(("prompt", "blocks", "size", "budget"), [(65, 5, 16, 64), (7, 2, 4, 3)])
def test_v0_chunked_livelocks_on_a_request_that_fits(prompt: int, blocks: int, size: int, budget: int) -> None:
    """As recorded: one chunk, then it preempts itself for a block that it does not need, for ever."""
    result = run("vllm-v0-chunked", Limits(budget, 8, block_size=size, num_blocks=blocks), (0, prompt, 2))
    assert (result.ending.kind, result.ending.period) == ("livelock", 2)


def test_v0_chunked_lets_newcomers_overtake_a_victim() -> None:
    drive = Drive("vllm-v0-chunked", Limits(64, 8, num_blocks=8))
    drive.submit(("a", 3, 9), ("b", 4, 9))
    assert drive.show() == {"a": 3, "b": 4}
    drive.submit(("new", 3, 1))
    plan = drive.step()
    assert plan.preempted == ("b",) and [entry.id for entry in plan.entries] == ["a", "new"]
    assert drive.engine.state().waiting == ("b",)


def test_whole_prompts_over_the_budget_are_refused_at_submission_where_impossible_is_reject() -> None:
    engine = Drive("vllm-v0", Limits(8, 8), impossible="reject").engine
    assert "in one piece" in (engine.submit(Request("a", 9, 1)) or "") and engine.submit(Request("b", 8, 1)) is None


# WHERE MAX_LEN ENDS A REQUEST


@pytest.mark.parametrize(("stop", "outputs"), [("reaches", 28), ("exceeds", 29), ("never", 100)])
def test_the_driver_stops_where_the_dialect_says(stop: str, outputs: int) -> None:
    """As recorded from V0: 20 prompt tokens and max_len 48 give 29 outputs."""
    limits, request = Limits(64, 4, block_size=16, num_blocks=40, max_len=48), Request("r0", 20, 100)
    assert get_longest(request, limits, stop) == 20 + outputs
    records = run("vllm-v0", limits, (0, 20, 100), stop=stop).records
    assert len(records[0].deliveries) == outputs


def test_v0_itself_exceeds_max_len_by_one() -> None:
    result = run("vllm-v0", Limits(64, 4, block_size=16, num_blocks=40, max_len=48), (0, 20, 100), (0, 10, 5))
    assert [len(record.deliveries) for record in result.records] == [29, 5] and result.iterations == 29


@pytest.mark.parametrize(("stop", "longest"), [("reaches", 7), ("exceeds", 8), ("never", 10**6)])
def test_a_prompt_may_be_as_long_as_leaves_room_for_one_output(stop: str, longest: int) -> None:
    limits = Limits(64, 4, max_len=8)
    assert explain_impossible(Request("a", longest, 1), limits, stop) is None
    if stop != "never":
        assert "max_len is 8" in (explain_impossible(Request("a", longest + 1, 1), limits, stop) or "")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("vllm-v0", {"stop": "after"}),
        ("vllm-v1", {"stop": "never"}),
        ("sarathi", {"decode_reserve": "two-free-blocks"}),
        ("sarathi", {"watermark_percent": 1}),
        ("orca", {"slot_rounding": "down"}),
        ("vidur-orca", {"slot_rounding": True}),
        ("vllm-v0", {"watermark_percent": -1}),
        ("vllm-v0", {"planning_rejects": "everything"}),
    ],
)
def test_what_a_dialect_does_not_offer_is_refused(name: str, options: dict[str, object]) -> None:
    with pytest.raises(InputError):
        get_dialect(name, options)
