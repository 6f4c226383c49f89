"""Fixtures of the readers' tests."""

import pytest

from tests.cli.running import Shell


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    """Give a shell."""
    return Shell(capsys)
