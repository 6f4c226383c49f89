"""Steps that the phased rules share: room made by preemption, chunks of running prefills, admission of the head."""

from collections.abc import Callable, Sequence

from refsched.conformance.desk import Desk, Finding, Sheet
from refsched.conformance.members import Member
from refsched.model import Request
from refsched.units import UNLIMITED, Tokens

Test = Callable[[Member], bool]
Amount = Callable[[Member], Tokens]


# DECODES


def has_slot(desk: Desk, member: Member) -> bool:
    """Tell whether a decode finds what it asks for: its slot, or under `one-free-block` a whole free block."""
    least = 1 if desk.dialect.decode_reserve == "one-free-block" else 0
    return desk.free >= max(least, desk.lacks(member, member.computed + 1))


def judge_room(desk: Desk, sheet: Sheet, member: Member, unvisited: list[Member], fits: Test) -> Finding | None:
    """Explain how room is made: the last not yet visited is preempted, again and again, in the end the request itself.

    Name KV-ROOM-1, SCH-PRE-3 or SCH-VIC-1 where that is not what happened.
    """
    while not fits(member):
        victim = unvisited[-1] if unvisited else member
        if not sheet.due:
            clause, verb = ("KV-ROOM-1", "plans") if member.id in sheet.entries else ("SCH-PRE-3", "leaves out")
            return sheet.find(
                clause,
                f"{verb} {member.id}, which finds no room, {desk.free} blocks are free; {victim.id} is to be preempted",
            )
        if sheet.due[0] != victim.id:
            return sheet.find(
                "SCH-VIC-1", f"preempts {sheet.due[0]} for {member.id}; the one to preempt is {victim.id}"
            )
        sheet.gone[sheet.due.pop(0)] = victim
        desk.preempt(victim)
        desk.waiting.insert(0, victim)
        if victim is member:
            return None
        unvisited.pop()
    return None


def judge_decode(desk: Desk, sheet: Sheet, member: Member, unvisited: list[Member]) -> Finding | None:
    """Explain one token for a decode, and the room for it."""
    finding = judge_room(desk, sheet, member, unvisited, lambda each: has_slot(desk, each))
    if finding is not None or member.id in sheet.gone:
        return finding
    desk.take(member, member.computed + 1)
    finding = sheet.judge_share(member, 1, UNLIMITED)
    sheet.serve(member, 1)
    return finding


def judge_decodes(desk: Desk, sheet: Sheet) -> Finding | None:
    """Explain an iteration of decodes only, in order, while budget is left or decodes are not counted [SCH-PRE-3]."""
    unvisited = list(desk.running)
    while unvisited and (sheet.left > 0 or not desk.dialect.decodes_counted):
        finding = judge_decode(desk, sheet, unvisited.pop(0), unvisited)
        if finding is not None:
            return finding
    return None


# PREFILLS


def judge_chunks(desk: Desk, sheet: Sheet, members: Sequence[Member]) -> Finding | None:
    """Explain the next chunk of each partial prefill, which holds all its blocks already."""
    for member in members:
        granted = min(member.goal - member.computed, desk.cap, sheet.left)
        finding = sheet.judge_share(member, granted, desk.cap) if granted > 0 else None
        sheet.serve(member, max(granted, 0))
        if finding is not None:
            return finding
    return None


def judge_admissions(desk: Desk, sheet: Sheet, granted: Amount, reserved: Amount, refuses: Test) -> Finding | None:
    """Explain who was refused or admitted, strictly from the head, with the blocks taken for it [SCH-ADM-2]."""
    while desk.waiting:
        head = desk.waiting[0]
        if refuses(head):
            finding = judge_refusal(desk, sheet, head)
        elif granted(head) <= 0 or len(desk.running) >= desk.seats:
            return sheet.judge_rest("SCH-ADM-2", desk.waiting, "no budget or no seat is left for it")
        elif desk.blocks_for(reserved(head)) + desk.count_kept_free() > desk.free:
            return sheet.judge_blocked(desk, head)
        else:
            finding = judge_admission(desk, sheet, granted(head), reserved(head))
        if finding is not None:
            return finding
    return None


def judge_refusal(desk: Desk, sheet: Sheet, head: Member) -> Finding | None:
    """Explain that the head is refused here [SCH-INT-3]."""
    if sheet.refused[:1] != [head.id]:
        return sheet.find(
            "SCH-INT-3",
            f"does not refuse {head.id}, whose {head.known} known tokens are more than this dialect ever plans",
        )
    sheet.refused.pop(0)
    desk.leave(head.id)
    return None


def judge_admission(desk: Desk, sheet: Sheet, granted: Tokens, reserved: Tokens) -> Finding | None:
    """Explain the first chunk of the head, and move it to the end of running."""
    finding = sheet.judge_overtaken(desk, desk.waiting[0])
    if finding is not None:
        return finding
    head = desk.waiting.pop(0)
    desk.running.append(head)
    desk.take(head, reserved)
    finding = sheet.judge_share(head, granted, UNLIMITED if granted > desk.cap else desk.cap, "SCH-ADM-4")
    sheet.serve(head, granted)
    return finding


def chunk_of(desk: Desk, sheet: Sheet) -> Amount:
    """Grant what a request has left to prefill, up to cap and budget."""
    return lambda member: min(member.goal - member.computed, desk.cap, sheet.left)


def whole_of(sheet: Sheet) -> Amount:
    """Grant all known tokens in one piece, or nothing where the budget does not hold them."""
    return lambda member: member.known - member.computed if member.known <= sheet.left else 0


def nobody(member: Member) -> bool:
    """Refuse nobody."""
    return False


# ENDS


def judge_left_over(desk: Desk, sheet: Sheet) -> Finding | None:
    """Find what no step explained: an entry out of turn [SCH-MIX-1, SCH-ORD-1], or a needless preemption."""
    if len({desk.live[id].is_prefilling() for id in sheet.entries if id in desk.live}) > 1 and not mixes(desk):
        finding = sheet.judge_rest("SCH-MIX-1", desk.running, "an iteration of prefills has no decode")
        if finding is not None:
            return finding
    rest = [*desk.running, *sheet.gone.values()]
    return sheet.judge_rest("SCH-ORD-1", rest, "the rule leaves nothing for it") or sheet.judge_needless()


def mixes(desk: Desk) -> bool:
    """Tell whether the rule lets prefill and decode share an iteration."""
    return desk.dialect.rule not in ("prefill-first", "vllm-v0")


def reset_victims(desk: Desk, sheet: Sheet) -> None:
    """Reset the victims late, where the dialect does: when a plan with entries is executed."""
    if desk.dialect.victim_reset != "at-once" and sheet.entries:
        for victim in sheet.gone.values():
            victim.restart()


def explain_whole_prompt(desk: Desk, request: Request) -> str | None:
    """Say that a prompt can never run in one piece, or return None [SCH-INT-1]."""
    return (
        None
        if request.prompt <= desk.budget
        else f"its prompt has {request.prompt} tokens in one piece; the budget is {desk.budget}"
    )
