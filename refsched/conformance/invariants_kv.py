"""The policy-free clauses on KV blocks: one predicate each [KV-*]."""

from refsched.conformance.breach import shorten_list
from refsched.conformance.scene import Because, Planning, Result
from refsched.units import UNLIMITED, Blocks, ceil_div


def hits_leave_a_token(scene: Planning) -> Because:
    """Take from the cache less than all known tokens, and only for a request that has none computed [KV-HIT-1]."""
    for id, tokens in scene.cached.items():
        account = scene.books.live.get(id)
        if account is None or tokens < 0 or tokens >= account.known:
            known = account.known if account else 0
            return f"{scene.name()} takes {tokens} tokens of {id} from the cache; it knows {known}"
        if tokens and account.computed and id not in scene.plan.preempted:
            return f"{scene.name()} takes {tokens} tokens of {id} from the cache; it already has {account.computed}"
    return None


def conserves_blocks(scene: Planning) -> Because:
    """Count no block twice: free and held blocks are at most the pool, none of them negative [KV-CONS-1].

    A list may hold the planned requests only; what others held when they were last listed is added.
    """
    total, free, held = scene.books.limits.num_blocks, scene.state.free or 0, scene.state.held or {}
    for id, blocks in held.items():
        if blocks < 0:
            return f"{scene.name()} leaves {id} with {blocks} blocks"
    if free < 0:
        return f"{scene.name()} leaves {free} blocks free"
    known = 0 if scene.books.shares_blocks else sum(held.values()) + sum_of_others(scene)
    if total is None or free + known <= total:
        return None
    return f"{scene.name()} counts {free} free and {known} held blocks; the pool has {total}"


def sum_of_others(scene: Planning) -> Blocks:
    """Sum the blocks last told of live requests that the plan neither lists nor preempts."""
    told, preempted = scene.state.held or {}, set(scene.plan.preempted)
    live = scene.books.live
    return sum([each.held or 0 for id, each in live.items() if id not in told and id not in preempted])


def holds_what_it_plans(scene: Planning) -> Because:
    """Hold the blocks for all planned tokens when the plan is made [KV-HOLD-1].

    An entry that begins below max_len needs none for what lies past it: such tokens are never read again.
    """
    limits, held = scene.books.limits, scene.state.held or {}
    max_len, size = limits.max_len or UNLIMITED, limits.block_size
    for id, start, count in scene.plan.entries:
        end = start + count
        needed = ceil_div(min(end, max_len) if start < max_len else end, size)
        if held.get(id, needed) < needed:
            return f"{scene.name()} plans {id} up to token {end}, which need {needed} blocks; it holds {held[id]}"
    return None


def takes_nobodys_blocks(scene: Planning) -> Because:
    """Take no block from a running request without a reported preemption [KV-KEEP-1]."""
    held, live = scene.state.held or {}, scene.books.live
    for id, count in held.items():
        before = live[id].held if id in live and id not in scene.plan.preempted else None
        if before is not None and count < before:
            return f"{scene.name()} leaves {id} with {count} of its {before} blocks and reports no preemption"
    return None


def frees_the_finished(scene: Result) -> Because:
    """Give back all blocks of a finished request with its result [KV-FREE-1]."""
    held, before, after = scene.planned_state.held or {}, scene.planned_state.free, scene.event.free
    given_back = sum(held.get(id, 0) for id in scene.event.finished)
    if before is None or after is None or after >= before + given_back:
        return None
    names = shorten_list(list(scene.event.finished))
    return f"{scene.name()} leaves {after} blocks free; {before} were free, and {names} held {given_back}"


def frees_nobody_else(scene: Result) -> Because:
    """Let no more blocks come free with a result than the finished requests held [KV-CONS-1]."""
    held, before, after = scene.planned_state.held or {}, scene.planned_state.free, scene.event.free
    given_back = sum([held.get(id, 0) for id in scene.event.finished])
    if before is None or after is None or after <= before + given_back:
        return None
    return f"{scene.name()} leaves {after} blocks free; {before} were free, and its finished requests held {given_back}"


def drains(scene: Result) -> Because:
    """Have the whole pool free when no request is live [KV-DRAIN-1]."""
    total, free = scene.books.limits.num_blocks, scene.event.free
    left = scene.books.live.keys() - set(scene.event.finished)
    if left or total is None or free is None or free == total:
        return None
    return f"after iteration {scene.number} no request is live, and {free} of {total} blocks are free"
