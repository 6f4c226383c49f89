"""The command line: one file per command, and one meaning for each exit code.

0 yes; 1 no (does not conform, stuck, no configuration meets the SLO, a contradiction); 2 bad usage or input, in one
line; 3 the engine under test broke; 4 a stale expectation; 5 nothing ran; 6 something needed is not there.
"""

import argparse
import gc
import os
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import NoReturn

from refsched import __version__
from refsched.cli import (
    audit,
    calibrate,
    check,
    explain,
    fuzz,
    measure,
    selftest,
    simulate,
    tables,
    vectors,
)
from refsched.errors import EngineError, InputError

COMMANDS: Mapping[str, ModuleType] = {
    "tables": tables,
    "simulate": simulate,
    "check": check,
    "explain": explain,
    "measure": measure,
    "audit": audit,
    "calibrate": calibrate,
    "fuzz": fuzz,
    "selftest": selftest,
    "vectors": vectors,
}
BAD_INPUT, ENGINE_BROKE, INTERRUPTED = 2, 3, 130
LAZY_COLLECTION = (200_000, 50, 50)  # commands make many objects and hardly any cycles


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; errors are one line on standard error."""
    gc.set_threshold(*LAZY_COLLECTION)
    try:
        arguments = make_parser().parse_args(argv)
        code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except InputError as error:
        return fail(str(error), BAD_INPUT)
    except EngineError as error:
        return fail(f"the engine broke: {error}", ENGINE_BROKE)
    except KeyboardInterrupt:
        return fail("interrupted", INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the interpreter's last flush is quiet
        return 0


def fail(problem: str, code: int) -> int:
    """Say what went wrong in one line."""
    print("refsched: " + " ".join(problem.split()), file=sys.stderr)
    return code


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="refsched", description="The reference for LLM-inference scheduling and its metrics."
    )
    parser.add_argument("--version", action="version", version=f"refsched {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, module in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=module.SUMMARY,
            description=module.SUMMARY,
            epilog=module.EXAMPLE,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
        set_one_line_errors(command)
    set_one_line_errors(parser)
    return parser


def set_one_line_errors(parser: argparse.ArgumentParser) -> None:
    """Make a parser raise its complaints instead of printing its usage before them."""

    def complain(message: str) -> NoReturn:
        raise InputError(f"{message} (see {parser.prog} --help)")

    setattr(parser, "error", complain)  # noqa: B010 - a method is replaced on purpose
