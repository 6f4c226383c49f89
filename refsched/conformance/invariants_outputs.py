"""The policy-free clauses on what an iteration yields: one predicate each [SCH-OUT-1 .. SCH-OUT-4]."""

from collections import Counter

from refsched.conformance.breach import count
from refsched.conformance.messages import Claim
from refsched.conformance.scene import Because, Planning, Result


def emits_no_token_early(scene: Result) -> Because:
    """Emit nothing for a request whose known tokens are not all computed in this iteration [SCH-OUT-1]."""
    due = set(scene.books.expect_emitted())
    for id in scene.event.emitted:
        if id not in due:
            return f"{scene.name()} emits a token of {id}, {explain_early(scene, id)}"
    return None


def explain_early(scene: Result, id: str) -> str:
    """Say why no token of a request is due."""
    account = scene.books.live.get(id)
    if account is None:
        return "which is not live"
    if id not in {entry.id for entry in scene.plan.entries}:
        return "which it did not plan"
    return f"of which {account.computed} of {account.known} known tokens are computed"


def emits_every_token_due(scene: Result) -> Because:
    """Emit exactly one token for each request whose last known token this iteration computes [SCH-OUT-2]."""
    emitted = Counter(scene.event.emitted)
    for id in scene.books.expect_emitted():
        if emitted[id] != 1:
            got = count(emitted[id], "token")
            return f"{scene.name()} computes the last known token of {id} and emits {got} of it"
    return None


def ends_with_its_outputs(scene: Result) -> Because:
    """End each request once, exactly when it has the outputs it asked for, or is at max_len [SCH-OUT-3]."""
    emitted, finished = set(scene.event.emitted), Counter(scene.event.finished)
    for id, times in finished.items():
        if times > 1 or id not in scene.books.live:
            return f"{scene.name()} ends {id}, " + ("which is not live" if times == 1 else "and ends it again")
    for id in (*scene.event.emitted, *(each for each in finished if each not in emitted)):
        because = explain_end(scene, id, id in emitted, id in finished)
        if because is not None:
            return because
    return None


def explain_end(scene: Result, id: str, emits: bool, ends: bool) -> Because:
    """Say what is wrong with the end, or the going on, of one request."""
    account, limit = scene.books.live.get(id), scene.books.limits.max_len
    if account is None:
        return None
    got, wanted = account.emitted + emits, account.request.output
    at_limit = limit is not None and account.request.prompt + got >= limit
    if got <= wanted and (got == wanted) == ends or got <= wanted and at_limit and ends:
        return None
    return f"{scene.name()} {'ends' if ends else 'goes on with'} {id} at {count(got, 'output')}; it asked for {wanted}"


def drops_nobody_started(scene: Planning) -> Because:
    """Refuse nobody who already has outputs [SCH-OUT-3]."""
    for id in scene.plan.rejected:
        account = scene.books.live.get(id)
        if account is not None and account.emitted:
            got, wanted = count(account.emitted, "output"), account.request.output
            return f"{scene.name()} refuses {id} at {got}; it asked for {wanted}"
    return None


def agrees_with_driver(scene: Result) -> Because:
    """Claim the emissions and ends that the driver reports [SCH-OUT-4]."""
    claim = scene.claim or Claim(None, None)
    pairs = (("emissions", claim.emitted, scene.event.emitted), ("ends", claim.finished, scene.event.finished))
    for what, own, told in pairs:
        if own is not None and sorted(own) != sorted(told):
            return f"{scene.name()}: the engine claims the {what} {list(own)}; its driver reports {list(told)}"
    return None
