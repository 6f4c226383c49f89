"""Run the command line in this process, as a user would from a shell."""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from refsched.cli import main


class Shell:
    """Run commands and keep what they print."""

    def __init__(self, capsys: pytest.CaptureFixture[str]):
        self.capsys = capsys

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run one command; return its exit code, standard output and standard error."""
        try:
            code = main(arguments)
        except SystemExit as leaving:  # --help and --version leave by themselves
            code = int(leaving.code or 0)
        out, err = self.capsys.readouterr()
        return code, out, err

    def json(self, *arguments: str) -> Mapping[str, Any]:
        """Run a command that must succeed, and read its JSON; numbers are exact."""
        code, out, err = self.run(*arguments, "--json", "-")
        assert (code, err) == (0, "")
        page: Mapping[str, Any] = json.loads(out, parse_float=Decimal)
        return page

    def refuse(self, *arguments: str) -> str:
        """Run a command that must be refused with exit code 2 and one line; return that line."""
        code, out, err = self.run(*arguments)
        assert code == 2, (code, out, err)
        assert out == "" and err.startswith("refsched: ") and err.count("\n") == 1 and err.endswith("\n"), err
        assert "Traceback" not in err and len(err) < 400
        return err.removeprefix("refsched: ").strip()
