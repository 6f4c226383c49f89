"""The text of a generator: `kind:key=value,key=value`, each key once and none unknown."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from refsched.errors import InputError
from refsched.model import check_count
from refsched.workload.formats.cells import show

T = TypeVar("T")


@dataclass(slots=True)
class Settings:
    """Hold the values by key, and remember which were asked for."""

    values: dict[str, str]
    known: set[str] = field(default_factory=set)

    def take(self, name: str, parse: Callable[[str], T], default: T | None = None) -> T:
        """Read one value; raise InputError naming the key if it is wrong, or missing and without a default."""
        self.known.add(name)
        text = self.values.get(name)
        if text is None and default is not None:
            return default
        if text is None:
            raise InputError("is missing", field=name)
        try:
            return parse(text)
        except InputError as error:
            raise (error if error.file else InputError(error.problem, field=name)) from None

    def has(self, name: str) -> bool:
        """Say whether the text gives this key."""
        self.known.add(name)
        return name in self.values

    def check_all_taken(self) -> None:
        """Raise InputError for a key that nobody asked for."""
        for name in self.values:
            if name not in self.known:
                raise InputError(f"is unknown; known here are {', '.join(sorted(self.known))}", field=name)


def parse_settings(text: str) -> tuple[str, Settings]:
    """Split `kind:key=value,…`; raise InputError for a part without "=" and for a key given twice."""
    kind, _, rest = text.partition(":")
    values: dict[str, str] = {}
    for part in rest.split(",") if rest else ():
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not name or not value:
            raise InputError(f"{part!r} is not key=value")
        if name in values:
            raise InputError("is given twice", field=name)
        values[name] = value
    return kind.strip(), Settings(values)


def parse_whole(text: str) -> int:
    """Read a whole number of at least 1, written in digits."""
    if not (text.isascii() and text.isdigit() and len(text) <= 20):
        raise InputError(f"{show(text)} is not a whole number")
    return check_count(int(text), "number")
