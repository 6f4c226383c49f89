"""The choice of the dialect that a trace is judged by [CNF-DIA-1]."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from refsched.conformance.exact import NOT_OPTIONS
from refsched.dialect import OPTION_NAMES, Dialect, get_dialect, list_dialects
from refsched.errors import InputError


class Choice(NamedTuple):
    """Hold the dialect to judge by, or why there is none, and the relation that is promised either way."""

    dialect: Dialect | None
    unsupported: str | None = None
    promised: str = "refines"


def choose_dialect(hello: Mapping[str, object], name: str | None = None) -> Choice:
    """Make the dialect to judge by: `name`, or the hello's own, with the hello's options [CNF-DIA-1].

    Choice points that a named foreign dialect does not have are left aside; what no dialect knows is unsupported.
    Raise InputError where `name` is no dialect.
    """
    base = hello.get("name") if name is None else name
    if name is not None and name not in list_dialects():
        get_dialect(name)
    if base not in list_dialects():
        return Choice(
            None, f"no dialect {base!r} is known" if "name" in hello else "the hello names no dialect", "safe"
        )
    options = {option: value for option, value in hello.items() if option not in NOT_OPTIONS}
    foreign = set() if name is None else set(OPTION_NAMES) - get_dialect(name).offered
    try:
        dialect = get_dialect(str(base), {option: value for option, value in options.items() if option not in foreign})
    except InputError as error:
        return Choice(None, str(error))
    return Choice(replace(dialect, name=str(base)))
