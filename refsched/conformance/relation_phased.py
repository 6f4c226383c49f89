"""What the rules allow that plan in phases: orca, no-evict, prefill-first, sarathi, and vLLM V0 in two modes.

Written from the rules in the READMEs beside the recorded plans and from the publications. Each phase is explained in
turn; what is left over then is out of turn.
"""

from refsched.conformance import relation_steps as steps
from refsched.conformance.desk import Desk, Finding, Sheet
from refsched.conformance.members import Member
from refsched.dialect import Dialect
from refsched.model import Limits, Plan, Request, State
from refsched.units import Tokens, ceil_div


class Phased:
    """Judge plans of one phased rule; `explain` is its sequence of phases."""

    def __init__(self, dialect: Dialect, limits: Limits):
        self.desk = Desk(dialect, limits)
        self.explain = PHASES[dialect.rule]

    def admit(self, request: Request) -> None:
        """Let a new request wait at the end."""
        self.desk.waiting.append(self.desk.enter(request))

    def explain_refusal(self, request: Request) -> str | None:
        """Say why a rule of whole prompts, or of whole slots, can never run a request."""
        desk = self.desk
        if desk.dialect.rule == "orca" and desk.blocks_for(get_slot(desk, request)) > (
            desk.limits.num_blocks or desk.free
        ):
            return f"a slot of {get_slot(desk, request)} tokens is more than the pool"
        return steps.explain_whole_prompt(desk, request) if desk.dialect.rule in ("orca", "vllm-v0") else None

    def judge(self, sheet: Sheet, plan: Plan) -> Finding | None:
        """Explain the phases, then find what is left over."""
        self.desk.arrange(self.desk.running)
        finding = self.explain(self.desk, sheet)
        if finding is None:
            finding = steps.judge_left_over(self.desk, sheet) or sheet.judge_rest(
                "SCH-ADM-2", self.desk.waiting, "nobody can enter in this iteration"
            )
        steps.reset_victims(self.desk, sheet)
        return finding

    def judge_queues(self, sheet: Sheet, state: State) -> Finding | None:
        """Leave queues open: how an engine keeps them is its own business under these rules."""
        return None


def get_slot(desk: Desk, request: Request) -> Tokens:
    """Count the tokens that Orca reserves: max_len in whole blocks, or without max_len all that a request needs."""
    max_len, size = desk.limits.max_len, desk.limits.block_size
    if max_len is None:
        return request.prompt + request.output - 1
    return size * (ceil_div(max_len, size) if desk.dialect.slot_rounding == "up" else max_len // size)


def is_over_length(desk: Desk, tokens: Tokens) -> bool:
    """Tell whether the dialect refuses, while planning, a request of so many tokens."""
    return desk.dialect.planning_rejects != "nothing" and tokens > desk.max_len


def never_fits(desk: Desk, member: Member) -> bool:
    """Tell whether known tokens are above pool and watermark, where the dialect refuses that while planning."""
    share = (desk.limits.num_blocks or 0) * desk.dialect.watermark_percent // 100
    return (
        desk.dialect.planning_rejects == "over-length-or-pool"
        and desk.limits.num_blocks is not None
        and desk.blocks_for(member.known) + share > desk.limits.num_blocks
    )


def explain_orca(desk: Desk, sheet: Sheet) -> Finding | None:
    """Explain one token for each running request, then whole prompts with a whole slot each."""
    for member in desk.running:
        finding = sheet.judge_share(member, 1, 1) if sheet.left > 0 else None
        sheet.serve(member, 1 if sheet.left > 0 else 0)
        if finding is not None:
            return finding
    return steps.judge_admissions(
        desk,
        sheet,
        steps.whole_of(sheet),
        lambda member: get_slot(desk, member.request),
        lambda member: is_over_length(desk, member.known),
    )


def explain_no_evict(desk: Desk, sheet: Sheet) -> Finding | None:
    """Explain decodes, chunks, and new requests that reserve all they will ever need."""
    for member in desk.running:
        if not member.is_prefilling() and sheet.left > 0:
            finding = sheet.judge_share(member, 1, desk.cap)
            sheet.serve(member, 1)
            if finding is not None:
                return finding
    prefills = [member for member in desk.running if member.is_prefilling()]
    return steps.judge_chunks(desk, sheet, prefills) or steps.judge_admissions(
        desk, sheet, steps.chunk_of(desk, sheet), lambda member: member.wanted - 1, steps.nobody
    )


def explain_prefill_first(desk: Desk, sheet: Sheet) -> Finding | None:
    """Explain chunks and new requests, or, where there are none, decodes."""
    prefills = [member for member in desk.running if member.is_prefilling()]
    finding = steps.judge_chunks(desk, sheet, prefills) or steps.judge_admissions(
        desk, sheet, steps.chunk_of(desk, sheet), lambda member: member.known, steps.nobody
    )
    return finding if finding is not None or any(sheet.served.values()) else steps.judge_decodes(desk, sheet)


def explain_sarathi(desk: Desk, sheet: Sheet) -> Finding | None:
    """Explain decodes, then chunks, then new requests, which enter after a preemption only where its reset is late."""
    unvisited, prefills = list(desk.running), []
    while unvisited:
        member = unvisited.pop(0)
        if member.is_prefilling():
            prefills.append(member)
        elif sheet.left > 0:
            finding = steps.judge_decode(desk, sheet, member, unvisited)
            if finding is not None:
                return finding
    finding = steps.judge_chunks(desk, sheet, prefills)
    desk.running = [member for member in desk.running if member not in prefills] + prefills
    if finding is not None:
        return finding
    if sheet.gone and desk.dialect.victim_reset == "at-once":
        return sheet.judge_rest("SCH-ADM-1", desk.waiting, "an iteration that preempts admits nobody")
    return steps.judge_admissions(
        desk,
        sheet,
        steps.chunk_of(desk, sheet),
        lambda member: member.known,
        lambda member: is_over_length(desk, member.goal),
    )


def explain_v0(desk: Desk, sheet: Sheet) -> Finding | None:
    """Explain whole prompts, or, where none was placed, decodes."""

    def refuses(member: Member) -> bool:
        return (
            desk.dialect.planning_rejects != "nothing" and member.known > min(desk.max_len, desk.budget)
        ) or never_fits(desk, member)

    refused = len(sheet.refused)
    finding = steps.judge_admissions(desk, sheet, steps.whole_of(sheet), lambda member: member.known, refuses)
    ends_here = desk.dialect.rejection_ends_step and len(sheet.refused) < refused
    return finding if finding is not None or sheet.served or ends_here else steps.judge_decodes(desk, sheet)


def explain_v0_chunked(desk: Desk, sheet: Sheet) -> Finding | None:
    """Explain running requests in list order, then new ones; only then do the preempted wait, in front."""
    finding = explain_v0_running(desk, sheet)
    victims, desk.waiting = desk.waiting[: len(sheet.gone)], desk.waiting[len(sheet.gone) :]
    if finding is None and sheet.left > 0:
        finding = steps.judge_admissions(
            desk,
            sheet,
            steps.chunk_of(desk, sheet),
            lambda member: member.known,
            lambda member: min(member.known, desk.cap, sheet.left) > desk.max_len or never_fits(desk, member),
        )
    desk.waiting = victims + desk.waiting
    return finding


def explain_v0_running(desk: Desk, sheet: Sheet) -> Finding | None:
    """Explain a token or a chunk for each running request; after that, decodes stand before ending prefills."""
    groups: tuple[list[Member], list[Member], list[Member]] = ([], [], [])
    unvisited = list(desk.running)
    while unvisited and sheet.left > 0:
        member = unvisited.pop(0)
        finding = steps.judge_room(desk, sheet, member, unvisited, lambda each: finds_block(desk, each))
        if finding is None and member.id not in sheet.gone:
            left = member.known - member.computed
            granted = min(left, desk.cap, sheet.left)
            finding = sheet.judge_share(member, granted, desk.cap)
            desk.take(member, member.computed + granted)
            sheet.serve(member, granted)
            groups[0 if not member.is_prefilling() else 1 if granted == left else 2].append(member)
        if finding is not None:
            return finding
    desk.running = [*unvisited, *groups[0], *groups[1], *groups[2]]
    return None


def finds_block(desk: Desk, member: Member) -> bool:
    """Tell whether a request finds the free block it asks for; a partial prefill of whole blocks asks for none."""
    if not member.is_prefilling():
        return steps.has_slot(desk, member)
    return member.known % desk.limits.block_size == 0 or desk.free > 0


PHASES = {
    "orca": explain_orca,
    "no-evict": explain_no_evict,
    "prefill-first": explain_prefill_first,
    "sarathi": explain_sarathi,
    "vllm-v0": explain_v0,
    "vllm-v0-chunked": explain_v0_chunked,
}
