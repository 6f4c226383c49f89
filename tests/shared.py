"""Where the recorded data is that some tests read. It is no part of the checkout: without it, those tests skip."""

import os
from pathlib import Path

import pytest

SHARED: Path = Path(os.environ.get("REFSCHED_SHARED") or Path(__file__).resolve().parents[2] / "shared")


def needs_shared(*parts: str) -> pytest.MarkDecorator:
    """Skip a test where a file or folder of the recorded data is absent, naming it."""
    missing = not SHARED.joinpath(*parts).exists()
    name = "/".join(("shared", *parts))
    return pytest.mark.skipif(missing, reason=f"{name} is not there; REFSCHED_SHARED can say where it is")
