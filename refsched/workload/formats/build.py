"""Rows become offers: rebased to the first arrival, named, their prefixes numbered, and what is odd counted."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from refsched.errors import InputError
from refsched.model import Request
from refsched.units import LONGEST, TICKS_PER_SECOND, Ticks, Tokens, format_decimal, to_seconds
from refsched.workload.formats.blocks import Chain
from refsched.workload.formats.layout import Row, Skip
from refsched.workload.formats.tally import Tally
from refsched.workload.offer import Offer

ROUNDED = "times finer than a picosecond, rounded half to even"
REPEATED = "rows that repeat an earlier row of the same instant in every field, kept"


@dataclass(slots=True)
class Builder:
    """Gather the offers of one file in order; `time` is the name of its field of time."""

    time: str
    tally: Tally
    offers: list[Offer] = field(default_factory=list)
    chain: Chain = field(default_factory=Chain)
    rows: int = 0  # rows of data seen, those left out included
    block_tokens: Tokens = 0
    ties: int = 0  # rows at the same instant as the row before
    _start: Ticks | None = None
    _last: Ticks = 0
    _ids: set[str] = field(default_factory=set)  # ids that the file gives
    _unnamed: bytearray = field(default_factory=bytearray)  # for each row, whether it was named after its place
    _instant: set[Row] = field(default_factory=set)

    def add(self, number: int, row: Row | Skip) -> None:
        """Take one row; raise InputError if it is out of order, its id is taken, or its block size is another."""
        place = self.rows
        self.rows += 1
        self._unnamed.append(not isinstance(row, Skip) and not row.id)
        if isinstance(row, Skip):
            self.tally.add(row.reason, number)
            return
        self._check_time(row, number)
        if row.rounded:
            self.tally.add(ROUNDED, number)
        at = row.at - (self._start or 0)
        request = Request(self._take_id(row.id, place), row.prompt, row.output, row.priority, self._number_prefix(row))
        cancel_at = None if row.cancel_at is None else row.cancel_at - (self._start or 0)
        self.offers.append(Offer(at, request, row.group, cancel_at))

    def _check_time(self, row: Row, number: int) -> None:
        if self._start is None:
            self._start = self._last = row.at
        elif row.at == self._last:
            self.ties += 1
        if row.at < self._last:
            early = format_decimal(to_seconds(self._last - row.at))
            raise InputError(f"is {early} s before the row above; rows must be in order of time", field=self.time)
        if row.at - self._start > LONGEST:
            raise InputError(f"is more than {LONGEST // TICKS_PER_SECOND} s after the first", field=self.time)
        self._count_repeats(row, number)

    def _count_repeats(self, row: Row, number: int) -> None:
        if row.at != self._last:
            self._instant.clear()
        self._last = row.at
        if row in self._instant:
            self.tally.add(REPEATED, number)
        self._instant.add(row)

    def _take_id(self, given: str | None, place: int) -> str:
        name = given or f"r{place}"
        if name in self._ids or (given and self._is_place_of_unnamed(given)):
            raise InputError(f"{name!r} is taken by an earlier row", field="id")
        if given:
            self._ids.add(given)
        return name

    def _is_place_of_unnamed(self, name: str) -> bool:
        digits = name[1:]
        is_place = name[0] == "r" and digits.isascii() and digits.isdigit() and name == f"r{int(digits[:12])}"
        return is_place and int(digits) < len(self._unnamed) and bool(self._unnamed[int(digits)])

    def _number_prefix(self, row: Row) -> tuple[int, ...]:
        if not row.hashes:
            return ()
        if self.block_tokens not in (0, row.block_tokens):
            raise InputError(f"{row.block_tokens} differs from {self.block_tokens} above", field="block_tokens")
        self.block_tokens = row.block_tokens
        return tuple(self.chain.add(row.hashes)[: row.prompt // row.block_tokens])


def take_offers(rows: Iterable[tuple[int, Row | Skip]], builder: Builder, first: int | None) -> Iterator[Offer]:
    """Give offers one at a time, `first` of them or all; raise InputError naming the row, or if there is none."""
    given = 0
    for number, row in rows:
        try:
            builder.add(number, row)
        except InputError as error:
            raise error.at(row=number) from None
        if builder.offers:
            given += 1
            yield builder.offers.pop()
        if given == first:
            break
    if not given:
        raise InputError("has no rows")
