"""Columns that take no more room than what they tell apart: equal ones are kept once, one value hardly at all."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice, repeat
from operator import le
from typing import TypeAlias, overload

from refsched.errors import InputError

TOO_FAR = "times more than 106 days from 0; count them from the start of the run"
MISSING = -(1 << 63)  # stands for what is not known
RUN = 1 << 19  # values sorted at once; this bounds the memory that sorting takes
Part: TypeAlias = tuple[int | None, ...]


class Repeated(Sequence[int]):
    """Be a column in which every row has the same value."""

    def __init__(self, value: int, rows: int):
        self.value, self.rows = value, rows

    def __len__(self) -> int:
        return self.rows

    @overload
    def __getitem__(self, row: int) -> int: ...
    @overload
    def __getitem__(self, row: slice) -> "Repeated": ...
    def __getitem__(self, row: int | slice) -> "int | Repeated":
        rows = range(self.rows)[row]
        return self.value if isinstance(rows, int) else Repeated(self.value, len(rows))

    def __iter__(self) -> Iterator[int]:
        return repeat(self.value, self.rows)

    def __contains__(self, value: object) -> bool:
        return self.rows > 0 and value == self.value

    def count(self, value: int) -> int:
        """Count the rows that have a value."""
        return self.rows if value == self.value else 0


class SharedColumns:
    """Keep columns of integers of at most 8 bytes; those that agreed in every row so far are one."""

    def __init__(self, count: int):
        self.leads = [0] * count  # by column: the first that agrees with it
        self.columns: dict[int, Sequence[int]] = {0: Repeated(0, 0)}  # by leading column
        self.rows = 0

    def __getitem__(self, place: int) -> Sequence[int]:
        return self.columns[self.leads[place]]

    def extend(self, parts: Sequence[Part]) -> None:
        """Add a part, all of one length, to each column; raise OverflowError for what 8 bytes do not hold."""
        before = self.leads
        self.leads = [find_lead(before, parts, place) for place in range(len(parts))]
        for place in sorted(set(self.leads)):
            so_far = self.columns[before[place]][: self.rows] if place != before[place] else self.columns[place]
            self.columns[place] = extend_column(so_far, mark_missing(parts[place]))
        self.rows += len(parts[0])


def find_lead(leads: Sequence[int], parts: Sequence[Part], place: int) -> int:
    """Find the first column that agreed with this one so far, and still does."""
    same = (other for other in range(place) if leads[other] == leads[place] and parts[other] == parts[place])
    return next(same, place)


def mark_missing(part: Part) -> Sequence[int]:
    """Put MISSING for None."""
    return [MISSING if value is None else value for value in part] if None in part else part  # type: ignore[return-value]


def extend_column(column: Sequence[int], part: Sequence[int]) -> Sequence[int]:
    """Add a part to a column, and return it or a wider one; raise OverflowError where not even 8 bytes will do."""
    if isinstance(column, array) and column:
        return extend_array(column, part)
    if part.count(part[0]) == len(part) and column.count(part[0]) == len(column):
        return Repeated(array("q", part[:1])[0], len(column) + len(part))  # the array refuses what is too large
    return extend_array(extend_array(array("i"), column or ()), part)


def extend_array(column: "array[int]", part: Sequence[int]) -> "array[int]":
    """Add to an array of 4 bytes a row, or to one of 8 where those do not hold it."""
    rows = len(column)
    try:
        column.extend(part)
    except OverflowError:
        del column[rows:]
        if column.typecode == "q":
            raise
        column = array("q", column)
        column.extend(part)
    return column


class Padded:
    """Keep a number for each row, mostly 0: what follows the last other number is not written down."""

    def __init__(self) -> None:
        self.values = array("i")

    def put(self, row: int, value: int) -> None:
        """Set the number of a row; rows come in order, and those left out are 0."""
        values = self.values
        if len(values) < row:
            values.extend(repeat(0, row - len(values)))
        try:
            values.append(value)
        except OverflowError:
            self.values = extend_array(values, (value,))

    def take(self, rows: int) -> Sequence[int]:
        """Give the numbers of the first `rows` rows; no more are put then."""
        if not self.values:
            return Repeated(0, rows)
        self.values.extend(repeat(0, rows - len(self.values)))
        return self.values


def to_array(values: Iterable[int]) -> "array[int]":
    """Pack integers into 8 bytes each; raise InputError where one does not fit."""
    try:
        return array("q", values)
    except OverflowError:
        raise InputError(TOO_FAR) from None


def pick(column: Sequence[int], rows: Sequence[int]) -> Sequence[int]:
    """Give some values of a column."""
    if isinstance(column, Repeated):
        return Repeated(column.value, len(rows))
    return array(get_kind(column), map(column.__getitem__, rows))


def sort_packed(values: Sequence[int]) -> "array[int]":
    """Sort integers into an array, a part at a time; memory beyond it follows one part and one more array."""
    parts = sort_parts(values)
    return parts[0] if len(parts) == 1 else to_array(merge(*parts))


def iterate_sorted(values: Sequence[int]) -> Iterator[int]:
    """Give integers in order; memory follows one array of them, where they are not in order already."""
    return iter(values) if is_sorted(values) else merge(*sort_parts(values))


def iterate_order(values: Sequence[int]) -> Iterator[int]:
    """Give the places of integers in ascending order of these; memory follows one array of places."""
    if is_sorted(values):
        return iter(range(len(values)))
    starts = range(0, len(values), RUN)
    places = (range(start, min(start + RUN, len(values))) for start in starts)
    parts = [array("q", sorted(each, key=values.__getitem__)) for each in places]
    return merge(*parts, key=values.__getitem__)


def is_sorted(values: Sequence[int]) -> bool:
    """Tell whether integers are in order."""
    return all(map(le, values, islice(values, 1, None)))


def sort_parts(values: Sequence[int]) -> "list[array[int]]":
    """Sort integers part by part, each into an array as wide as they came in."""
    kind = get_kind(values)
    return [array(kind, sorted(values[start : start + RUN])) for start in range(0, len(values), RUN)]


def get_kind(values: Sequence[int]) -> str:
    """Give the type code of an array that is as wide as some values' own, of 8 bytes where they have none."""
    return values.typecode if isinstance(values, array) else "q"
