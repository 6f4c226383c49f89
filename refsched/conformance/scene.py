"""What a predicate looks at: the books before an event, and the event."""

from dataclasses import dataclass, field

from refsched.conformance.ledger import Ledger
from refsched.conformance.messages import Claim
from refsched.model import Completed, Plan, State
from refsched.units import Tokens


@dataclass(frozen=True, slots=True)
class Planning:
    """Show one plan beside the books as they stood before it; `starts` is where each entry must begin."""

    books: Ledger
    plan: Plan
    state: State
    number: int
    cached: dict[str, Tokens] = field(default_factory=dict)

    def name(self) -> str:
        """Name the iteration, as every sentence begins."""
        return f"iteration {self.number}"


@dataclass(frozen=True, slots=True)
class Result:
    """Show the result of one plan beside the books as they stood before it."""

    books: Ledger
    plan: Plan
    planned_state: State
    event: Completed
    number: int
    claim: Claim | None = None

    def name(self) -> str:
        """Name the iteration, as every sentence begins."""
        return f"iteration {self.number}"


Because = str | None
