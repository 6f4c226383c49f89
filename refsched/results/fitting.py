"""Numbers of single requests: those that a tool derived must follow from the others of the same request."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal

from refsched.results.run import Finding

CLOSE = Decimal("1e-6")  # of the value, or of a millisecond: what a tool's own rounding may leave
SMALL = Decimal("1e-9")
Pair = tuple[Decimal | None, Decimal | None]  # as written, and as it follows from the others


def fits(written: Decimal | None, again: Decimal | None) -> bool:
    """Say whether a derived number is what it should be; what is not known on either side cannot be wrong."""
    if written is None or again is None:
        return True
    return abs(written - again) <= CLOSE * max(abs(written), abs(again)) + SMALL


def check_requests(requests: Iterable[tuple[str, Mapping[str, Pair]]]) -> Iterator[Finding]:
    """Name the derived numbers that do not follow, each with the first request in which that is so."""
    wrong: dict[str, list[tuple[str, Pair]]] = {}
    for id, numbers in requests:
        for name, pair in numbers.items():
            if not fits(*pair):
                wrong.setdefault(name, []).append((id, pair))
    for name, found in wrong.items():
        id, (written, again) = found[0]
        yield Finding(
            "request-does-not-fit",
            f"{name} of {len(found)} requests does not follow from their own times and tokens; of request {id} it is "
            f"{written}, which should be {again:.10g}",
        )
