"""Engines written in other styles than ours, as others may bring them: plain functions and dicts, no classes shared.

Each factory takes limits and returns an engine; `RIGHT` and `WRONG` name them, the wrong ones with their clause.
"""

from types import SimpleNamespace

from refsched.model import Entry, Plan, State

BIG = 10**15


def build(limits, pick, dialect=None, admit_more=lambda pool, left: True):
    """Make an engine from one function: `pick(world)` yields (id, count) and may call world.evict."""
    world = SimpleNamespace(
        limits=limits, known={}, done={}, ask={}, queue=[], active=[], evicted=[], blocks={}, dropped=[]
    )
    world.pool = limits.num_blocks or BIG
    world.left = lambda: world.pool - sum(world.blocks.values())
    world.need = lambda tokens: -(-tokens // limits.block_size)

    def evict(id, front=True):
        world.active.remove(id)
        world.queue.insert(0 if front else len(world.queue), id)
        world.blocks[id], world.done[id] = 0, 0
        world.evicted.append(id)

    world.evict = evict

    def submit(request):
        if request.id in world.known:
            return "known already"
        longest = request.prompt + request.output
        if limits.max_len is not None:
            longest = max(min(longest, limits.max_len), request.prompt + 1)
            if request.prompt >= limits.max_len:
                return "too long"
        if world.need(longest - 1) > world.pool:
            return "never fits"
        world.known[request.id], world.done[request.id], world.blocks[request.id] = request.prompt, 0, 0
        world.ask[request.id] = request
        world.queue.append(request.id)

    def plan():
        world.evicted = []
        entries = tuple(Entry(id, world.done[id], count) for id, count in pick(world))
        for id, start, count in entries:
            world.done[id] = start + count
        return Plan(entries, tuple(world.evicted))

    def forget(id):
        for pile in (world.known, world.done, world.blocks, world.ask):
            pile.pop(id, None)
        for line in (world.queue, world.active):
            if id in line:
                line.remove(id)

    def complete(emitted, finished):
        for id in emitted:
            world.known[id] += 1
        for id in finished:
            forget(id)

    def state():
        told = None if limits.num_blocks is None else world.left()
        return State(tuple(world.active), tuple(world.queue), None, dict(world.blocks), told)

    return SimpleNamespace(submit=submit, plan=plan, complete=complete, cancel=forget, state=state)


def grab(world, id, upto):
    """Take blocks up to so many tokens, or say no."""
    more = world.need(upto) - world.blocks[id]
    if more > world.left():
        return False
    world.blocks[id] += max(more, 0)
    return True


def reserve(world, id):
    """Take all blocks that a request will ever need."""
    request, limits = world.ask[id], world.limits
    longest = request.prompt + request.output
    if limits.max_len is not None:
        longest = max(min(longest, limits.max_len), request.prompt + 1)
    return grab(world, id, longest - 1)


def cautious(world, budget_slip=0, seat_slip=0, overtake=False):
    """Reserve everything at admission; decodes, then chunks of the active, then newcomers: `no-evict`."""
    limits = world.limits
    left = (limits.token_budget or BIG) + budget_slip
    cap, seats = limits.chunk_cap or BIG, (limits.max_seqs or BIG) + seat_slip
    ready = [id for id in world.active if world.done[id] >= world.ask[id].prompt]
    for id in ready + [id for id in world.active if id not in ready]:
        count = min(world.known[id] - world.done[id], cap, left)
        if count > 0:
            left -= count
            yield id, count
    for id in list(world.queue):
        count = min(world.known[id], cap, left)
        if count <= 0 or len(world.active) >= seats:
            return
        if not reserve(world, id):
            if overtake:
                continue
            return
        world.queue.remove(id)
        world.active.append(id)
        left -= count
        yield id, count


def eager(world, victim=-1, front=True, chunk_gate=False, after_eviction=False, forget_count=False):
    """Take blocks just in time and evict the youngest: vLLM V1."""
    limits, plan = world.limits, {}
    left, seats = limits.token_budget or BIG, limits.max_seqs or BIG
    longest = limits.max_len or BIG
    cap = limits.chunk_cap or BIG
    if len(world.active) + len(world.queue) <= 1:
        cap = BIG
    for id in list(world.active):
        count = min(world.known[id] - world.done[id], cap, left, longest - 1 - world.done[id])
        while id in world.active and count > 0 and not grab(world, id, world.done[id] + count):
            loser = world.active[victim]
            kept = world.done[loser]
            world.evict(loser, front)
            left += plan.pop(loser, 0)
            if forget_count:
                world.done[loser] = min(kept, world.known[loser] - 1)
        if id in world.active and count > 0:
            plan[id] = count
            left -= count
    while world.queue and left > 0 and len(world.active) < seats and (after_eviction or not world.evicted):
        id = world.queue[0]
        count = min(world.known[id] - world.done[id], cap, left)
        gate = count if chunk_gate else world.known[id]
        if world.need(min(gate, longest)) > world.left():
            break
        grab(world, id, min(world.done[id] + count, longest))
        world.active.append(world.queue.pop(0))
        plan[id] = count
        left -= count
    yield from plan.items()


def by_the_document(world, prefills_first=False):
    """Decodes of those with outputs, then chunks of the others, whoever can: `document-a`."""
    limits = world.limits
    left, cap, seats = limits.token_budget or BIG, limits.chunk_cap or BIG, limits.max_seqs or BIG
    for id in [id for id in world.queue if world.known[id] > world.ask[id].prompt]:
        world.queue.remove(id)
        world.active.append(id)
    seats -= sum(world.done[id] > 0 for id in [*world.active, *world.queue])
    planned = []
    for kind in ("chunk", "decode") if prefills_first else ("decode", "chunk"):
        for id in world.active if kind == "decode" else world.queue:
            room = (world.blocks[id] + world.left()) * limits.block_size - world.done[id]
            missing = 1 if kind == "decode" else world.ask[id].prompt - world.done[id]
            count = min(missing, left, room, cap if kind == "chunk" else 1)
            if count > 0 and (world.done[id] > 0 or seats > 0):
                seats -= world.done[id] == 0
                grab(world, id, world.done[id] + count)
                left -= count
                planned.append((id, count))
    return planned


def shy(world):
    """One request at a time, whole life long."""
    if not world.active and world.queue and reserve(world, world.queue[0]):
        world.active.append(world.queue.pop(0))
    for id in world.active:
        yield id, min(world.known[id] - world.done[id], world.limits.token_budget or BIG)


def turns(world):
    """Serve the active in turn, each with a fair share; no dialect knows this."""
    limits = world.limits
    left, seats = limits.token_budget or BIG, limits.max_seqs or BIG
    while world.queue and len(world.active) < seats and reserve(world, world.queue[0]):
        world.active.append(world.queue.pop(0))
    world.active.append(world.active.pop(0)) if world.active else None
    for number, id in enumerate(world.active):
        count = min(world.known[id] - world.done[id], max(1, left // (len(world.active) - number)), left)
        if count > 0:
            left -= count
            yield id, count


def engine(pick, claim=None, **slips):
    """Make a factory with its claim."""

    def factory(limits):
        return build(limits, lambda world: pick(world, **slips))

    if claim is not None:
        factory.dialect = claim
    return factory


def edit(factory, change):
    """Make a factory whose engines have one method changed."""

    def changed(limits):
        made = factory(limits)
        change(made)
        return made

    if hasattr(factory, "dialect"):
        changed.dialect = factory.dialect
    return changed


def emptied(made):
    """Drop the blocks of running requests from what is told."""
    inner = made.state
    made.state = lambda: State(
        *(lambda told: (told.running, told.waiting, None, {id: n - 1 for id, n in told.held.items()}, told.free))(
            inner()
        )
    )


def twice(made):
    """Plan the last entry of a plan twice."""
    inner = made.plan
    made.plan = lambda: (lambda plan: Plan(plan.entries + plan.entries[-1:], plan.preempted))(inner())


def late(made):
    """Start entries one token too far."""
    inner = made.plan
    made.plan = lambda: (
        lambda plan: Plan(tuple(Entry(e.id, e.start + (e.start > 0), e.count) for e in plan.entries), plan.preempted)
    )(inner())


right_cautious = engine(cautious, "no-evict")
right_eager = engine(eager, "vllm-v1")
right_eager_with_options = engine(eager, {"name": "vllm-v1", "admission_gate": "chunk"}, chunk_gate=True)
right_by_the_document = engine(by_the_document, "document-a")
right_shy = engine(shy)
right_turns = engine(turns)
right_cautious_unclaimed = engine(cautious)

wrong_budget = engine(cautious, "no-evict", budget_slip=1)
wrong_seats = engine(cautious, None, seat_slip=1)
wrong_overtaking = engine(cautious, "no-evict", overtake=True)
wrong_order = engine(by_the_document, "document-a", prefills_first=True)
wrong_victim = engine(eager, "vllm-v1", victim=0)
wrong_requeue = engine(eager, "vllm-v1", front=False)
wrong_gate = engine(eager, "vllm-v1", chunk_gate=True)
wrong_count_kept = engine(eager, "vllm-v1", forget_count=True)
wrong_twice = edit(right_shy, twice)
wrong_start = edit(right_turns, late)
wrong_blocks = edit(right_shy, emptied)

RIGHT = [name for name in dir() if name.startswith("right_")]
WRONG = {
    "wrong_budget": "SCH-BUD-1",
    "wrong_seats": "SCH-SEQ-1",
    "wrong_overtaking": "SCH-ADM-4",
    "wrong_order": "SCH-DOC-1",
    "wrong_victim": "SCH-VIC-1",
    "wrong_requeue": "SCH-PRE-4",
    "wrong_gate": "SCH-ADM-3",
    "wrong_count_kept": "SCH-RNG-1",
    "wrong_twice": "SCH-ENT-2",
    "wrong_start": "SCH-RNG-1",
    "wrong_blocks": "KV-HOLD-1",
}
