"""Adapters: an engine under test, whatever it is, asked in the messages of the protocol and answering in them.

`ask` gives an answer that has the right form, or raises EngineError: the engine crashed, hung, or said what is
no answer. What an answer decides is not looked at here.
"""

import importlib
import os
import shlex
import sys
from collections.abc import Callable
from typing import Any, Protocol

from refsched.conformance.inprocess import InProcess
from refsched.conformance.pipe import Pipe
from refsched.conformance.wire import Message
from refsched.dialect import Dialect
from refsched.errors import EngineError, InputError
from refsched.model import Limits
from refsched.scheduling.engine import ReferenceEngine

PYTHON, COMMAND, TRACE = "python:", "cmd:", "trace:"
SECONDS = 10.0  # for one answer


class Adapter(Protocol):
    """Be an engine that can be asked."""

    def ask(self, request: Message) -> Message:
        """Answer one message; raise EngineError where that does not come to pass."""
        ...

    def close(self) -> None:
        """End the engine and everything it started."""
        ...


def open_adapter(text: str, parse_dialect: Callable[[str], Dialect], seconds: float = SECONDS) -> Adapter:
    """Make the adapter that an ENGINE argument names; raise InputError where it names none.

    `parse_dialect` reads a policy with its options.
    """
    if text.startswith(COMMAND):
        return Pipe(split_command(text.removeprefix(COMMAND)), seconds)
    if text.startswith(PYTHON):
        name = text.removeprefix(PYTHON)
        return InProcess(load_factory(name), None, seconds, name, None)
    if text.startswith(TRACE):
        raise InputError(f"{text!r} is a recording; an engine that can be asked is needed here", field="ENGINE")
    return open_policy(parse_dialect(text), text.partition(",")[0])


def open_policy(dialect: Dialect, name: str) -> InProcess:
    """Make the adapter of a reference policy under a dialect's published name."""

    def make(limits: Limits) -> ReferenceEngine:
        return ReferenceEngine(dialect, limits)

    return InProcess(make, {"name": name, **dialect.options()}, None)


def split_command(text: str) -> list[str]:
    """Split a command as a shell would, without ever handing it to one."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(f"{text!r} is not a command: {error}", field="ENGINE") from None
    if not words:
        raise InputError("cmd: needs a command", field="ENGINE")
    return words


def load_factory(text: str) -> Callable[[Limits], Any]:
    """Import `module:factory`; raise InputError where there is none, EngineError where the module itself fails."""
    module_name, colon, name = text.partition(":")
    if not (module_name and colon and name):
        raise InputError(f"{text!r} is not module:factory", field="ENGINE")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module_name}.".startswith(f"{error.name}."):
            raise InputError(f"no module named {error.name!r}", field="ENGINE") from None
        raise EngineError(f"importing {module_name} fails: {error}") from None
    except (Exception, SystemExit) as error:
        raise EngineError(f"importing {module_name} fails: {type(error).__name__}: {error}") from None
    for part in name.split("."):
        if not hasattr(found, part):
            raise InputError(f"module {module_name!r} has no {name!r}", field="ENGINE")
        found = getattr(found, part)
    if not callable(found):
        raise InputError(f"{text} is not callable; it must return an engine for some Limits", field="ENGINE")
    factory: Callable[[Limits], Any] = found
    return factory
