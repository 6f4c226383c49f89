"""Typed access to what a JSON object holds; each complaint names file, row and field."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NoReturn

from refsched.errors import InputError
from refsched.results.load import Odd

LARGEST = Decimal(10) ** 30
Number = Decimal | None


@dataclass(frozen=True, slots=True)
class Fields:
    """Hold one JSON object and where it stands."""

    data: Mapping[str, object]
    file: str
    row: int | None = None
    path: str = ""

    def name(self, key: str) -> str:
        """Name a field by its path from the top of the file."""
        return f"{self.path}.{key}" if self.path else key

    def complain(self, key: str, problem: str) -> NoReturn:
        """Raise InputError about one field."""
        raise InputError(problem, file=self.file, row=self.row, field=self.name(key))

    def has(self, *keys: str) -> bool:
        """Say whether all these fields are there."""
        return all(key in self.data for key in keys)

    def get(self, key: str) -> object:
        """Give a field as it is, None where it is absent."""
        return self.data.get(key)

    def find(self, key: str) -> Number:
        """Give a finite number, None where it is absent or null; raise InputError for anything else."""
        value = self.data.get(key)
        return None if value is None else self.to_number(key, value)

    def number(self, key: str) -> Decimal:
        """Give a finite number that must be there."""
        value = self.find(key)
        return self.complain(key, "is missing") if value is None else value

    def time(self, key: str) -> Decimal:
        """Give a time that must be there and must not be negative."""
        return self.check_time(key, self.number(key))

    def find_time(self, key: str) -> Number:
        """Give a time that must not be negative, None where it is absent or null."""
        value = self.find(key)
        return None if value is None else self.check_time(key, value)

    def check_time(self, key: str, value: Decimal) -> Decimal:
        """Refuse a negative time."""
        return self.complain(key, f"is negative: {value}") if value < 0 else value

    def find_count(self, key: str) -> int | None:
        """Give a whole number of at least 0, None where it is absent or null."""
        value = self.find(key)
        if value is None:
            return None
        return self.complain(key, f"{value} is not a count") if value < 0 or value != int(value) else int(value)

    def count(self, key: str) -> int:
        """Give a whole number of at least 0 that must be there."""
        value = self.find_count(key)
        return self.complain(key, "is missing") if value is None else value

    def text(self, key: str) -> str | None:
        """Give a text, None where it is absent or null."""
        value = self.data.get(key)
        if value is not None and not isinstance(value, str):
            self.complain(key, "is not a text")
        return value

    def items(self, key: str) -> Sequence[object]:
        """Give a list that must be there."""
        value = self.data.get(key)
        if not isinstance(value, list):
            self.complain(key, "is missing" if value is None else "is not a list")
        return value

    def times(self, key: str) -> list[Decimal]:
        """Give a list of times, none of them negative."""
        return [self.check_time(f"{key}[{i}]", self.to_number(f"{key}[{i}]", x)) for i, x in enumerate(self.items(key))]

    def find_times(self, key: str) -> list[Number]:
        """Give a list of times in which null stands for what is not known."""
        return [
            None if value is None else self.check_time(f"{key}[{i}]", self.to_number(f"{key}[{i}]", value))
            for i, value in enumerate(self.items(key))
        ]

    def counts(self, key: str) -> list[int]:
        """Give a list of whole numbers of at least 0."""
        return [self.to_count(f"{key}[{i}]", x) for i, x in enumerate(self.items(key))]

    def to_count(self, key: str, value: object) -> int:
        """Read one value as a whole number of at least 0."""
        number = self.to_number(key, value)
        return self.complain(key, f"{number} is not a count") if number < 0 or number != int(number) else int(number)

    def to_number(self, key: str, value: object) -> Decimal:
        """Read one value as a finite number."""
        if isinstance(value, Odd):
            self.complain(key, f"is {value.word}, not a number")
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            self.complain(key, "is not a number")
        number = Decimal(value)
        return self.complain(key, "is too large") if abs(number) > LARGEST else number

    def inside(self, key: str) -> "Fields":
        """Give an object inside this one, which must be there."""
        value = self.data.get(key)
        if not isinstance(value, dict):
            self.complain(key, "is missing" if value is None else "is not an object")
        return Fields(value, self.file, self.row, self.name(key))

    def find_inside(self, key: str) -> "Fields | None":
        """Give an object inside this one, None where it is absent or null."""
        return None if self.data.get(key) is None else self.inside(key)

    def rows(self, key: str) -> Iterator["Fields"]:
        """Give the objects of a list, each with its place as its row."""
        for place, value in enumerate(self.items(key)):
            yield to_fields(value, self.file, place, self.name(key))


def to_fields(value: object, file: str, row: int | None = None, path: str = "") -> Fields:
    """Take a JSON value as an object; raise InputError where it is none."""
    if not isinstance(value, dict):
        raise InputError("is not an object", file=file, row=row, field=path or None)
    return Fields(value, file, row, path)
