"""What a broken clause is shown with: the trace up to that point if it is short, the live requests otherwise."""

from dataclasses import asdict

from refsched.conformance.ledger import Ledger
from refsched.conformance.messages import Told
from refsched.model import Cancelled, Completed, Failed, Planned, Submitted

LONGEST = 400  # events; a longer trace is not repeated in a report
MOST_LIVE = 50
Compact = list[object]


class History:
    """Remember the events of a trace as short arrays while they are few."""

    def __init__(self) -> None:
        self.events: list[Compact] | None = []

    def add(self, told: Told) -> None:
        """Add an event, or give up remembering."""
        if self.events is not None:
            self.events.append(compact(told))
            if len(self.events) > LONGEST:
                self.events = None

    def page(self, books: Ledger, dialect: object) -> dict[str, object]:
        """Give a scenario: all events so far, or where the live requests stand and the plan that was made."""
        start: dict[str, object] = {"dialect": dialect, "limits": asdict(books.limits)}
        if self.events is not None:
            return start | {"events": list(self.events)}
        live = [
            {
                "id": id,
                "prompt": each.request.prompt,
                "output": each.request.output,
                "known": each.known,
                "computed": each.computed,
            }
            for id, each in list(books.live.items())[:MOST_LIVE]
        ]
        entries = [] if books.plan is None else [list(entry) for entry in books.plan.entries]
        return start | {"live": live, "more_live": len(books.live) - len(live), "plan": entries}


def compact(told: Told) -> Compact:
    """Write an event as a short array, as in the examples of the spec."""
    match told.event:
        case Submitted() as event:
            return compact_submission(event)
        case Planned() as event:
            return compact_plan(event, told.omitted)
        case Completed(emitted, finished, free):
            pairs = (("emitted", emitted), ("finished", finished))
            ids = [None if name in told.omitted else list(value) for name, value in pairs]
            return ["complete", *ids, free, *keep(told.claim._asdict() if told.claim else {})]
        case Cancelled(id):
            return ["cancel", id]
        case Failed(op, error):
            return ["error", op, error]


def compact_submission(event: Submitted) -> Compact:
    """Write a submission; what is rarely there stands at its end."""
    request = event.request
    more: dict[str, object] = {
        "priority": request.priority,
        "prefix": request.prefix,
        "output_blocks": request.output_blocks,
    }
    more |= {"rejected": event.rejected}
    return [
        "submit",
        request.id,
        request.prompt,
        request.output,
        *keep({name: value for name, value in more.items() if value}),
    ]


def compact_plan(event: Planned, omitted: frozenset[str]) -> Compact:
    """Write a plan with what is told of the state after it."""
    plan, state = event.plan, event.state
    preempted = None if "preempted" in omitted else list(plan.preempted)
    told: dict[str, object] = {"held": state.held, "running": state.running, "waiting": state.waiting}
    more: dict[str, object] = {
        "rejected": plan.rejected or None,
        "cached": None if "cached" in omitted else dict(plan.cached),
    }
    return ["plan", [list(entry) for entry in plan.entries], preempted, state.free, *keep(more | told)]


def keep(more: dict[str, object]) -> list[dict[str, object]]:
    """Keep what is told; nothing at all gives no object."""
    kept = {name: value for name, value in more.items() if value is not None}
    return [kept] if kept else []
