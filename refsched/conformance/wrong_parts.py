"""Parts of a Sketch that are wrong: each does one thing as a real scheduler once did, or might.

`faults` puts them into schedulers that are right otherwise.
"""

from collections.abc import Iterator
from dataclasses import replace

from refsched.conformance.sketch import Job, Sketch, make_room, passes_gate, preempt, refuse
from refsched.model import Entry, Plan, Request, State
from refsched.units import Tokens

# DECISIONS


def keep_computed(engine: Sketch, victim: Job) -> None:
    """Preempt, and keep the count of computed tokens."""
    computed = victim.computed
    preempt(engine, victim)
    victim.computed = min(computed, victim.known - 1)


def keep_in_plan(engine: Sketch, victim: Job) -> None:
    """Preempt, and leave an entry of the victim in the plan."""
    entry = engine.planned.get(victim.id)
    preempt(engine, victim)
    if entry is not None:
        engine.planned[victim.id] = entry


def forget_blocks(engine: Sketch, job: Job) -> None:
    """Forget a running job and leave its blocks taken."""
    engine.running.remove(job)


def forget_blocks_of_cancelled(engine: Sketch, job: Job) -> None:
    """Forget a cancelled job and leave its blocks taken."""
    (engine.running if job in engine.running else engine.waiting).remove(job)


def wait_for_room(engine: Sketch, job: Job, tokens: Tokens) -> bool:
    """Wait where blocks run out, and preempt nobody."""
    if engine.blocks_for(tokens) - job.held > engine.free:
        return False
    engine.take(job, tokens)
    return True


def take_without_room(engine: Sketch, job: Job, tokens: Tokens) -> bool:
    """Take blocks that are not there."""
    engine.take(job, tokens)
    return True


def steal_room(engine: Sketch, job: Job, tokens: Tokens) -> bool:
    """Take the blocks that are missing from the last admitted, who goes on as if nothing had happened."""
    victim, missing = engine.running[-1], engine.blocks_for(tokens) - engine.blocks_for(job.computed)
    if missing <= engine.free or victim is job:
        return make_room(engine, job, tokens) if missing > 0 else True
    victim.held -= missing - engine.free
    job.held, engine.free = job.held + missing, 0
    return True


def want_a_free_block(engine: Sketch, job: Job, tokens: Tokens) -> bool:
    """Preempt although the job's own last block has room."""
    if engine.free == 0 and engine.running[-1] is not job:
        engine.parts.preempt(engine, engine.running[-1])
    return make_room(engine, job, tokens)


def reserve_and_forget(engine: Sketch, job: Job, share: Tokens) -> bool:
    """Ask for room in the pool, and leave what was reserved where the gate is shut."""
    open_ = passes_gate(engine, job, share)
    if not open_ and engine.free > 0 and job.held == 0:
        engine.free -= 1
        job.held += 1
    return open_


def skip_after_victim(engine: Sketch) -> Iterator[Job]:
    """Walk over the running by a number that is not moved when a victim before it leaves."""
    number = 0
    while number < len(engine.running):
        yield engine.running[number]
        number += 1


def decode_two(engine: Sketch, job: Job, wanted: Tokens) -> Tokens:
    """Plan two tokens for a decode."""
    is_decode = job.known - job.computed == 1 and job.computed > 0
    return min(wanted + is_decode, engine.left)


def halve(engine: Sketch, job: Job, wanted: Tokens) -> Tokens:
    """Grant half of what could be granted, rounded up."""
    return -(-min(wanted, engine.left) // 2)


def plan_empty_entries(engine: Sketch, plan: Plan) -> Plan:
    """Plan the first waiting request as well where no token is left for it."""
    extra = [Entry(job.id, 0, 0) for job in engine.waiting[: engine.left <= 0]]
    return replace(plan, entries=(*plan.entries, *extra))


def plan_first_twice(engine: Sketch, plan: Plan) -> Plan:
    """Plan the first decode twice."""
    again = tuple(entry for entry in plan.entries[:1] if entry.start > 0)
    return replace(plan, entries=plan.entries + again)


def start_chunks_over(engine: Sketch, plan: Plan) -> Plan:
    """Plan every chunk from the beginning of its prompt."""
    prompts = {job.id: job.request.prompt for job in engine.running}
    return replace(plan, entries=tuple(e._replace(start=0) if e.start < prompts[e.id] else e for e in plan.entries))


def drop_preempted(engine: Sketch, plan: Plan) -> Plan:
    """Give the preempted up where they have outputs already."""
    dropped = [job for job in engine.gone if job.known > job.request.prompt]
    engine.waiting = [job for job in engine.waiting if job not in dropped]
    return replace(plan, rejected=tuple(job.id for job in dropped))


def retire_late(engine: Sketch, job: Job) -> None:
    """Free the blocks of a finished job, and plan it once more."""
    engine.give_back(job)
    engine.waiting.insert(0, job)
    engine.running.remove(job)


def refuse_exact_fits(engine: Sketch, request: Request) -> str | None:
    """Ask for room for the last output too, which is never written."""
    return refuse(engine, replace(request, output=request.output + 1))


def take_any_name(engine: Sketch, request: Request) -> str | None:
    """Refuse what does not fit, but take an id twice."""
    reason = refuse(engine, request)
    return None if reason == "this id is taken" else reason


def tell_preempted_twice(engine: Sketch, state: State) -> State:
    """Leave the preempted in the running list as well."""
    return replace(state, running=(*(state.running or ()), *(job.id for job in engine.gone)))


def tell_blocks_before(engine: Sketch, state: State) -> State:
    """Tell the blocks of decodes as they were before the plan."""
    held = {
        job.id: job.held - (job.id in engine.planned and job.held > 1 and engine.planned[job.id].count == 1)
        for job in engine.running
    }
    return replace(state, held=held)


def run_newest_first(engine: Sketch) -> tuple[Job, ...]:
    """Serve the last admitted first."""
    return tuple(reversed(engine.running))


def count_seats_before(engine: Sketch) -> bool:
    """Look at the sequence limit only as it stood before the first admission of this iteration."""
    fresh = sum(job.computed == 0 for job in engine.running)
    return len(engine.running) - fresh < engine.seats


def count_started_only(engine: Sketch) -> bool:
    """Let a partial prefill take no seat."""
    return sum(job.computed >= job.request.prompt for job in engine.running) < engine.seats


def ignore_decodes(engine: Sketch, job: Job, start: Tokens, count: Tokens) -> None:
    """Plan some tokens, and charge decodes nothing."""
    engine.planned[job.id] = Entry(job.id, start, count)
    engine.left -= count if count > 1 or start == 0 else 0


def requeue_at_end(engine: Sketch, job: Job) -> None:
    """Let a preempted job wait behind all others."""
    engine.waiting.append(job)


def refuse_nothing(engine: Sketch, request: Request) -> str | None:
    """Take even what can never finish."""
    return refuse(engine, request) if request.id in {job.id for job in (*engine.running, *engine.waiting)} else None


def gate_by_chunk(engine: Sketch, job: Job, share: Tokens) -> bool:
    """Let a job in if its first chunk fits."""
    return engine.blocks_for(share) <= engine.free


def admit_whole_prompts(engine: Sketch, job: Job, share: Tokens) -> bool:
    """Let a job in only if the budget left holds its whole prompt."""
    return share == job.known and passes_gate(engine, job, share)
