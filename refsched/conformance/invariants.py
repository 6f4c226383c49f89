"""The policy-free clauses: one predicate each, and no knowledge of any rule [SCH-*, KV-*].

A predicate looks at the books before an event, and at the event; it returns why its clause is broken, or None. `needs`
names what an engine may leave unsaid: where one of them is missing, the clause stays open for that event.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from refsched.conformance.breach import count, list_tokens, shorten_list
from refsched.conformance.invariants_kv import (
    conserves_blocks,
    drains,
    frees_nobody_else,
    frees_the_finished,
    hits_leave_a_token,
    holds_what_it_plans,
    takes_nobodys_blocks,
)
from refsched.conformance.invariants_outputs import (
    agrees_with_driver,
    drops_nobody_started,
    emits_every_token_due,
    emits_no_token_early,
    ends_with_its_outputs,
)
from refsched.conformance.ledger import Ledger
from refsched.conformance.scene import Because, Planning
from refsched.model import Submitted
from refsched.units import Tokens

# SUBMISSIONS


def has_new_id(books: Ledger, event: Submitted) -> Because:
    """Take no second request under the id of a live one [MOD-REQ-1]."""
    if event.rejected is None and event.request.id in books.live:
        return f"{event.request.id} is taken while a request of that id is live"
    return None


# PLANS: WHO AND HOW MUCH


def stays_within_budget(scene: Planning) -> Because:
    """Plan no more tokens than the token budget, in the unit that the engine declares [SCH-BUD-1]."""
    budget = scene.books.limits.token_budget
    planned = sum([entry.count for entry in scene.plan.entries])
    if budget is None or planned <= budget or (not scene.books.counts_decodes and is_all_decodes(scene)):
        return None
    return f"{scene.name()} plans {count(planned, 'token')} ({list_tokens(scene.plan.entries)}); the budget is {budget}"


def is_all_decodes(scene: Planning) -> bool:
    """Tell whether a plan has decodes only."""
    live = scene.books.live
    return all(
        id in live and tokens == 1 and start >= live[id].request.prompt for id, start, tokens in scene.plan.entries
    )


def stays_within_sequences(scene: Planning) -> Because:
    """Plan no more requests than the sequence limit [SCH-SEQ-1]."""
    limit = scene.books.limits.max_seqs
    planned = len(scene.plan.entries)
    if limit is None or planned <= limit:
        return None
    return f"{scene.name()} plans {count(planned, 'request')}; the sequence limit is {limit}"


def runs_within_sequences(scene: Planning) -> Because:
    """Run no more requests than the sequence limit [SCH-SEQ-2]."""
    limit, running = scene.books.limits.max_seqs, scene.state.running or ()
    if limit is None or len(running) <= limit:
        return None
    return f"{scene.name()} leaves {count(len(running), 'request')} running; the sequence limit is {limit}"


def plans_whole_tokens(scene: Planning) -> Because:
    """Plan at least one token in every entry [SCH-ENT-1]."""
    for id, _, tokens in scene.plan.entries:
        if tokens < 1:
            return f"{scene.name()} plans {tokens} tokens of {id}"
    return None


def plans_each_once(scene: Planning) -> Because:
    """Name each request at most once in a plan [SCH-ENT-2]."""
    planned = [entry.id for entry in scene.plan.entries]
    for verb, ids in (("plans", planned), ("preempts", scene.plan.preempted)):
        if len(set(ids)) < len(ids):
            id, times = Counter(ids).most_common(1)[0]
            return f"{scene.name()} {verb} {id} {times} times"
    return None


def plans_the_living(scene: Planning) -> Because:
    """Name live requests only: taken, and neither ended, cancelled nor refused [SCH-ENT-3]."""
    live, plan = scene.books.live, scene.plan
    named = (("plans", [entry.id for entry in plan.entries]), ("preempts", plan.preempted), ("refuses", plan.rejected))
    for verb, ids in named:
        for id in ids:
            if id not in live:
                return f"{scene.name()} {verb} {id}, which is not live"
    return None


def spares_the_planned(scene: Planning) -> Because:
    """Preempt or refuse nobody whom the same plan runs [SCH-PRE-1]."""
    planned = {entry.id for entry in scene.plan.entries}
    for verb, ids in (("preempts", scene.plan.preempted), ("refuses", scene.plan.rejected)):
        for id in ids:
            if id in planned:
                return f"{scene.name()} {verb} {id} and plans it as well"
    return None


# PLANS: WHICH TOKENS


def get_start(scene: Planning, id: str) -> Tokens:
    """Say where the next token of a live request is to be computed: after what it has, or after its cache hit."""
    account = scene.books.live[id]
    has = 0 if id in scene.plan.preempted else account.computed
    return has or scene.cached.get(id, 0)


def find_starts(scene: Planning) -> Iterator[tuple[str, Tokens, Tokens, Tokens]]:
    """Give id, start, expected start and known tokens of each entry of a live request that this plan spares."""
    live, preempted = scene.books.live, set(scene.plan.preempted)
    for id, start, _ in scene.plan.entries:
        if id in live and not (id in preempted and start in (0, live[id].computed)):
            yield id, start, get_start(scene, id), live[id].known


def skips_no_token(scene: Planning) -> Because:
    """Start no entry beyond the tokens already computed [SCH-RNG-1]."""
    for id, start, expected, _ in find_starts(scene):
        if start > expected:
            return f"{scene.name()} starts {id} at {start}; only {expected} of its tokens are computed"
    return None


def loses_no_token(scene: Planning) -> Because:
    """Start no entry before the end of the tokens already computed, unless a preemption took them [SCH-RNG-2]."""
    for id, start, expected, _ in find_starts(scene):
        if start < expected:
            return f"{scene.name()} starts {id} at {start}; {expected} tokens are computed, no preemption is reported"
    return None


def ends_at_known(scene: Planning) -> Because:
    """Plan no token that is not known yet [SCH-RNG-3]."""
    live = scene.books.live
    for id, start, tokens in scene.plan.entries:
        if id in live and start + tokens > live[id].known:
            return f"{scene.name()} plans {id} up to token {start + tokens}; it knows {live[id].known}"
    return None


def queues_each_once(scene: Planning) -> Because:
    """Keep each live request in exactly one queue [SCH-QUE-1]."""
    queued = [*(scene.state.running or ()), *(scene.state.waiting or ())]
    live = scene.books.live.keys() - set(scene.plan.rejected)
    if len(queued) == len(live) and set(queued) == live:
        return None
    id, times = Counter(queued).most_common(1)[0] if queued else ("", 0)
    if times > 1:
        return f"{scene.name()} leaves {id} in its queues {times} times"
    dead = [id for id in queued if id not in live]
    if dead:
        return f"{scene.name()} leaves {dead[0]} in a queue; it is not live"
    return f"{scene.name()} leaves {shorten_list(sorted(live - set(queued)))} in no queue"


# THE REGISTRY


@dataclass(frozen=True, slots=True)
class Check:
    """Tie a clause to its predicate and to what it needs to be told."""

    clause: str
    holds: Callable[..., Because]
    needs: frozenset[str] = frozenset()


def needing(*names: str) -> frozenset[str]:
    """Write a set of needs."""
    return frozenset(names)


PLAN_CHECKS = (
    Check("SCH-ENT-1", plans_whole_tokens),
    Check("SCH-ENT-2", plans_each_once),
    Check("SCH-ENT-3", plans_the_living),
    Check("SCH-BUD-1", stays_within_budget),
    Check("SCH-SEQ-1", stays_within_sequences),
    Check("SCH-SEQ-2", runs_within_sequences, needing("running")),
    Check("SCH-PRE-1", spares_the_planned, needing("preempted")),
    Check("SCH-RNG-1", skips_no_token, needing("cached")),
    Check("SCH-RNG-2", loses_no_token, needing("preempted")),
    Check("SCH-RNG-3", ends_at_known),
    Check("SCH-QUE-1", queues_each_once, needing("running", "waiting", "rejected")),
    Check("SCH-OUT-3", drops_nobody_started),
    Check("KV-HIT-1", hits_leave_a_token, needing("cached")),
    Check("KV-CONS-1", conserves_blocks, needing("free", "held")),
    Check("KV-HOLD-1", holds_what_it_plans, needing("held")),
    Check("KV-KEEP-1", takes_nobodys_blocks, needing("held", "preempted")),
)
RESULT_CHECKS = (
    Check("SCH-OUT-1", emits_no_token_early, needing("emitted")),
    Check("SCH-OUT-2", emits_every_token_due, needing("emitted")),
    Check("SCH-OUT-3", ends_with_its_outputs, needing("emitted", "finished")),
    Check("SCH-OUT-4", agrees_with_driver),
    Check("KV-FREE-1", frees_the_finished, needing("free", "held", "unshared", "known")),
    Check("KV-CONS-1", frees_nobody_else, needing("free", "held", "unshared", "known")),
    Check("KV-DRAIN-1", drains, needing("free")),
)
SUBMIT_CHECKS = (Check("MOD-REQ-1", has_new_id),)
