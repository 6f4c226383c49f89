"""Writing a simulated client's record."""

from refsched.record import Deliveries, Outcome, Record, Server
from refsched.units import Ticks
from refsched.workload.offer import Offer


def make_record(
    offer: Offer,
    outcome: Outcome,
    ended: Ticks | None,
    reason: str | None = None,
    deliveries: Deliveries = (),
    server: Server = Server(),
) -> Record:
    """Write the record of an offer; a simulated client sends exactly when it planned to."""
    request = offer.request
    return Record(
        id=request.id,
        prompt_tokens=request.prompt,
        outcome=outcome,
        planned=offer.at,
        sent=offer.at,
        deliveries=deliveries,
        ended=ended,
        group=offer.group,
        server=server,
        reason=reason,
    )
