"""The cohort: all decodes of vLLM V1's rule followed as one; an iteration costs the same for any number of them.

A member is a running request that got a token in the last iteration and lacks one. In an iteration in which blocks
and budget suffice for everybody, the order among members decides nothing: each gets one token. So the cohort keeps
counts instead of walking the list: how many members there are, how many tokens they have cached, when the next one
ends (a heap of cohort ticks), and, by residue class of the tick, how many of them take a new block in it. Members are
written out only where order matters: when blocks run short, when decodes and prefills compete for the budget, when a
client cancels. Then the rule itself runs, on its own lists, and the cohort is counted anew.
"""

from collections.abc import Iterable
from dataclasses import replace

from refsched.model import NOTHING, Work
from refsched.record import Outcome
from refsched.scheduling.engine import ReferenceEngine
from refsched.scheduling.kv import Pool
from refsched.scheduling.live import Live
from refsched.scheduling.policies.vllm_v1 import admit_waiting, get_chunk_cap
from refsched.scheduling.progress import open_range
from refsched.scheduling.queues import Draft
from refsched.simulation.ending import Ending
from refsched.simulation.members import Members
from refsched.simulation.observe import is_plain
from refsched.simulation.progression import count_to_reach
from refsched.simulation.step import Stepper, Totals
from refsched.simulation.tally import RunTally
from refsched.units import Blocks, Ticks, Tokens, ceil_div

Chunk = tuple[Live, Tokens]  # a request that is no member, and the tokens it is given


class Cohort:
    """Run a simulation in which the decodes are followed as one wherever that is the same."""

    def __init__(self, stepper: Stepper, engine: ReferenceEngine):
        assert isinstance(engine.queues.pool, Pool)  # is_cohort_rule lets no prefix cache in
        self.stepper, self.engine, self.queues, self.pool = stepper, engine, engine.queues, engine.queues.pool
        self.members = Members(self.pool.block_size)
        self.others: list[Live] = []  # running requests that are no members, in running order
        self.is_counted = True  # whether the counts hold, or the rule's own lists
        self.runs = RunTally()
        self.growths: dict[int, Ticks] = {}  # by number of decodes
        self.take_records = stepper.take_records
        self.decoding: set[Live] = set()  # who decoded in the last iteration, or would have had the budget sufficed

    def go_on(self) -> Ending | None:
        """See what came; then run one iteration and all that repeat it, or let time pass."""
        stepper = self.stepper
        if stepper.cancels and stepper.cancels[0][0] <= stepper.now:
            self.write_out()
        stepper.see_events()
        self.count_anew()
        if not stepper.progress.live:
            return stepper.idle()
        return None if self.try_iterations() else self.run_rule()

    def conclude(self, ending: Ending) -> Totals:
        """Give the totals of the run."""
        return replace(self.stepper.conclude(ending), events=self.runs.count)

    def run_rule(self) -> Ending | None:
        """Run one iteration by the rule itself, or find that it plans nothing."""
        self.write_out()
        plan = self.engine.plan()
        if plan == NOTHING:
            return self.stepper.idle()
        start = self.stepper.now
        self.start_decoding(
            self.engine.live[id] for id, start, count in plan.entries if self.is_decode(id, start, count)
        )
        decoding = {live.id for live in self.decoding}
        ending = self.stepper.run_iteration(plan)
        served = tuple(entry.id for entry in plan.entries if entry.id in decoding)
        chunks = [entry for entry in plan.entries if entry.id not in decoding]
        emits = self.stepper.last is not None and len(self.stepper.last.emitted) > len(served)
        self.runs.add(
            start, self.stepper.now, served if len(served) < len(decoding) else (), chunks, emits, is_plain(plan)
        )
        return ending

    def is_decode(self, id: str, start: Tokens, count: Tokens) -> bool:
        """Tell whether an entry is a decode: the last known token, past the prompt."""
        live = self.engine.live[id]
        return count == 1 and start + 1 == live.known > live.request.prompt

    def start_decoding(self, lives: Iterable[Live]) -> None:
        """Note who decodes from this iteration on; a run of repeating iterations ends where that changes."""
        for live in lives:
            if live not in self.decoding:
                self.decoding.add(live)
                self.runs.version += 1

    # MEMBERS

    def count_anew(self) -> None:
        """Count the cohort from the rule's own lists, if it was written out."""
        if self.is_counted:
            return
        self.is_counted, self.others = True, []
        self.members.clear()
        for live in self.queues.running:
            course = self.stepper.progress.live[live.id]
            if live.known - live.computed == 1 and course.last_emission == self.stepper.progress.iteration:
                self.members.join(live, course.longest)
            else:
                self.others.append(live)
        self.runs.version += self.decoding != self.members.joined.keys()
        self.decoding = set(self.members.joined)

    def bring_up_to_date(self, live: Live) -> None:
        """Write out one member: in the rule's lists, in the pool, and in the driver's books."""
        live.known = self.members.get_known(live)
        live.computed = live.known - 1
        self.pool.held[live.id] = ceil_div(live.computed, self.pool.block_size)
        course = self.stepper.progress.live[live.id]
        course.known, course.last_emission = live.known, self.stepper.progress.iteration

    def write_out(self) -> None:
        """Write out all members, so that the rule can run on its own lists."""
        if self.is_counted:
            for live in self.members.joined:
                self.bring_up_to_date(live)
        self.is_counted = False

    def retire_ended(self) -> None:
        """Let the members end whose last token this tick was."""
        for live in self.members.pop_ended():
            self.bring_up_to_date(live)
            self.retire(live)

    def retire(self, live: Live) -> None:
        """Let a request end."""
        self.runs.version += 1
        self.decoding.discard(live)
        self.engine.retire(live.id)
        self.stepper.retire(live.id, Outcome.COMPLETED, self.stepper.now)

    # ITERATIONS

    def try_iterations(self) -> bool:
        """Run one iteration and all that repeat it; return False, nothing changed, where the rule itself must run."""
        queues, members = self.queues, self.members
        budget = queues.token_budget - len(members.joined)
        if not self.others and not queues.waiting:
            return self.run_decodes(budget)
        cap = get_chunk_cap(queues)
        chunks = self.choose_chunks(budget, cap)
        if chunks is None or budget < 0:
            return False
        growth = members.count_growth()
        if growth + self.count_blocks(chunks) > self.pool.free:
            return False
        self.take_blocks(growth)
        draft = Draft(budget)
        for live, count in chunks:
            self.pool.grow(live.id, live.computed + count)
            draft.add(live, count)
        admitted = self.admit(draft, cap)
        chunks += [(live, entry.count) for live, entry in zip(admitted, draft.entries[len(chunks) :], strict=True)]
        if chunks:
            self.run_mixed(chunks, admitted)
            return True
        return self.run_decodes(budget, growth)

    def admit(self, draft: Draft, cap: Tokens) -> list[Live]:
        """Admit waiting requests by the rule itself; return them in order."""
        running = len(self.queues.running)
        admit_waiting(self.queues, draft, cap)
        return self.queues.running[running:]

    def choose_chunks(self, budget: Tokens, cap: Tokens) -> list[Chunk] | None:
        """Choose what each running request that is no member gets, or return None where order decides more.

        Everybody gets, in order, what cap and budget allow. Where the budget binds, that is the rule's choice only if
        all members come before them.
        """
        ceiling = self.queues.max_len - 1
        chunks: list[Chunk] = []
        for live in self.others:
            count = min(live.known - live.computed, cap, ceiling - live.computed)
            if count > budget and self.queues.running[len(self.members) :] != self.others:
                return None
            count = min(count, budget)
            if count > 0:
                chunks.append((live, count))
                budget -= count
        return chunks

    def count_blocks(self, chunks: list[Chunk]) -> Blocks:
        """Count the blocks that chunks of running requests would take."""
        size, held = self.pool.block_size, self.pool.held
        return sum(max(0, ceil_div(live.computed + count, size) - held.get(live.id, 0)) for live, count in chunks)

    def take_blocks(self, count: Blocks) -> None:
        """Take blocks for members; whose they are is written down when members are written out."""
        if count:
            self.pool.free -= count
            self.pool.lowest_free = min(self.pool.lowest_free, self.pool.free)

    # DECODES ALONE

    def run_decodes(self, budget: Tokens, taken: Blocks = 0) -> bool:
        """Run the members' decodes, and all iterations that repeat them up to an end, an event or a shortage.

        `taken` blocks are theirs already, for the first. Return False where there is none, or no room for one.
        """
        stepper, members, size = self.stepper, self.members, len(self.members.joined)
        if not size or budget < 0:
            return False
        duration = stepper.cost.duration(Work((), size, members.context))
        longer = self.get_growth(size)
        count = self.count_until_event(duration, longer, members.count_ticks_to_end(), budget)
        growth = members.count_growth(count)
        if growth > self.pool.free + taken:
            count = members.count_fitting(self.pool.free + taken, count)
            growth = members.count_growth(count)
        if not count:
            return False
        self.take_blocks(growth - taken)
        start = stepper.now
        self.move_on(duration, longer, count, size)
        self.runs.add(start, stepper.now, (), (), False, True)
        self.retire_ended()
        return True

    def get_growth(self, size: int) -> Ticks:
        """Give how much longer each iteration of `size` decodes lasts than the one before.

        By the affine contract it is the same for any context.
        """
        if size not in self.growths:
            first, second = (self.stepper.cost.duration(Work((), size, size * times)) for times in (1, 2))
            self.growths[size] = second - first
        return self.growths[size]

    def count_until_event(self, duration: Ticks, growth: Ticks, most: int, budget: Tokens) -> int:
        """Count the iterations up to the first boundary at which something is seen that can change the plan.

        First come, first served, an arrival cannot while somebody waits before it, or no budget or place is left.
        """
        queues, cancels = self.queues, self.stepper.cancels
        is_full = budget <= 0 or len(queues.running) >= queues.max_seqs
        if queues.dialect.policy != "fcfs" or not (queues.waiting or is_full):
            return self.stepper.count_until_event(duration, growth, most)
        if not cancels:
            return most
        return min(most, count_to_reach(cancels[0][0] - self.stepper.now, duration, growth))

    # CHUNKS BESIDE THEM

    def run_mixed(self, chunks: list[Chunk], admitted: list[Live]) -> None:
        """Run one iteration of the members' decodes beside chunks, of which some may be decodes too."""
        stepper, start, decodes = self.stepper, self.stepper.now, len(self.members.joined)
        context, emits, prefills = self.members.context, False, []
        for live, count in chunks:
            if count == 1 and live.is_decoding():
                self.start_decoding((live,))
                decodes, context = decodes + 1, context + live.computed
            else:
                emits = emits or live.computed + count == live.known
                prefills.append((live.id, live.computed, count))
        work = Work(tuple([(first, count) for _, first, count in prefills]), decodes, context)
        self.move_on(stepper.cost.duration(work), 0, 1, decodes + len(prefills))
        self.runs.add(start, stepper.now, (), prefills, emits, True)
        self.retire_ended()
        counts = dict(chunks)
        self.others = [live for live in (*self.others, *admitted) if not self.settle_chunk(live, counts.get(live, 0))]

    def settle_chunk(self, live: Live, count: Tokens) -> bool:
        """Count a chunk as computed; return True if the request thereby got a token, and so joined or ended."""
        progress = self.stepper.progress
        course, iteration = progress.live[live.id], progress.iteration
        live.computed += count
        if count and course.scheduled is None:
            course.scheduled = iteration
        if live.computed < live.known or not count:
            return False
        live.known += 1
        course.known = live.known
        if course.last_emission != iteration - 1:
            open_range(course, iteration)
        course.last_emission = iteration
        if live.known >= course.longest:
            self.retire(live)
        else:
            self.start_decoding((live,))
            self.members.join(live, course.longest)
        return True

    def move_on(self, duration: Ticks, growth: Ticks, count: int, entries: int) -> None:
        """Let iterations pass in which every member got a token."""
        self.stepper.now = self.stepper.ends.add(self.stepper.now, duration, growth, count)
        self.stepper.entries += count * entries
        self.stepper.progress.iteration += count
        self.members.move_on(count)
