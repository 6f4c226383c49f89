"""What pyproject.toml and the package must agree on."""

import re
import tomllib
from pathlib import Path

import refsched

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_version_stands_in_one_place() -> None:
    assert "version" not in PROJECT["project"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "refsched/__init__.py"
    assert re.fullmatch(r"\d+\.\d+\.\d+", refsched.__version__)


def test_the_library_needs_nothing() -> None:
    assert PROJECT["project"]["dependencies"] == []


def test_every_extra_has_its_reason_beside_it() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for requirements in PROJECT["project"]["optional-dependencies"].values():
        for requirement in requirements:
            assert re.search(rf'"{re.escape(requirement)}".*# \w+', text), requirement
