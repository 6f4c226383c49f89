"""Expectations: failures that are known, in a file that goes stale as soon as one of them passes.

One line each: an id with wildcards, the reason in words, and where it is followed up, a URL. `#` begins a comment.
"""

from dataclasses import dataclass
from fnmatch import fnmatchcase

from refsched.errors import InputError


@dataclass(frozen=True, slots=True)
class Expectation:
    """Expect that the vectors which `pattern` names fail, for a reason followed up at `url`."""

    pattern: str
    reason: str
    url: str
    row: int

    def names(self, id: str) -> bool:
        """Tell whether a vector is meant."""
        return fnmatchcase(id, self.pattern)


def parse_expectations(text: str, file: str | None = None) -> tuple[Expectation, ...]:
    """Read an expectations file; raise InputError naming file and row where a line is not one."""
    found = []
    for row, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) < 3 or "://" not in words[-1]:
            raise InputError("is not: id-glob reason url", file=file, row=row)
        found.append(Expectation(words[0], " ".join(words[1:-1]), words[-1], row))
    return tuple(found)


def read_expectations(path: str) -> tuple[Expectation, ...]:
    """Read an expectations file; raise InputError where it cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}", file=path) from None
    return parse_expectations(text, path)
