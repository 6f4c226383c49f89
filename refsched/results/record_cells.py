"""One line of RECORDS as cells, and the reading of single cells: text, words, counts."""

import json
from collections.abc import Mapping
from typing import NoReturn, TypeVar

from refsched.errors import InputError

SOURCES = {name: name for name in ("usage", "retokenised", "chunks", "requested")}
MOST_TOKENS = 10**12
LONGEST_QUOTE = 40
Cells = dict[str, object]
T = TypeVar("T")


def refuse_constant(word: str) -> NoReturn:
    """Refuse NaN and the infinities."""
    raise InputError(f"{word} is not a number")


def pair(pairs: list[tuple[str, object]]) -> Cells:
    """Make an object of its pairs; raise InputError where a name stands twice."""
    cells = dict(pairs)
    if len(cells) < len(pairs):
        names = [name for name, _ in pairs]
        raise InputError("is given twice", field=quote(next(name for name in names if names.count(name) > 1)))
    return cells


DECODER = json.JSONDecoder(parse_float=str.encode, parse_constant=refuse_constant, object_pairs_hook=pair)


def parse_line(line: bytes) -> Cells:
    """Read one JSON object; raise InputError for anything else."""
    try:
        text = line.decode().strip(" \t\r\n")
        value, stop = DECODER.raw_decode(text)
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 text (byte {error.start + 1})") from None
    except json.JSONDecodeError as error:
        if error.pos >= len(line.rstrip()) or error.msg.startswith("Unterminated"):
            raise InputError("ends in the middle of a record") from None
        raise InputError(f"is not JSON: {error.msg.removesuffix(' at')} at place {error.colno}") from None
    except RecursionError:
        raise InputError("is nested too deeply") from None
    except InputError:
        raise
    except ValueError:
        raise InputError("holds a number of too many digits") from None
    if not isinstance(value, dict):
        raise InputError("is not a JSON object")
    if stop < len(text):
        raise InputError(f"holds something after its object, at place {stop + 1}")
    return value


def read_tokens(value: object, name: str) -> int:
    """Read a count of tokens."""
    if type(value) is not int or not 0 <= value <= MOST_TOKENS:
        raise InputError(f"is not a whole number of 0 … {MOST_TOKENS}", field=name)
    return value


def read_text(value: object, name: str) -> str:
    """Read a text that can be printed anywhere."""
    if not isinstance(value, str):
        raise InputError("is not text", field=name)
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise InputError("holds half a character", field=name)
    return value


def read_word(value: object, name: str, words: Mapping[str, T]) -> T:
    """Read one of a few words."""
    if not isinstance(value, str) or value not in words:
        raise InputError(f"is not one of {', '.join(words)}", field=name)
    return words[value]


def quote(text: str) -> str:
    """Write a text on one line, cut to what is worth repeating."""
    line = json.dumps(text)
    return line if len(line) <= LONGEST_QUOTE else line[:LONGEST_QUOTE] + "…"
