"""Where the data of `spec/` is: packaged as refsched/_spec, or in the checkout beside the code."""

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path


@cache
def root() -> Traversable:
    """Find the spec folder of this installation or checkout."""
    packaged = files("refsched") / "_spec"
    return packaged if packaged.is_dir() else Path(__file__).parents[1] / "spec"


def read_text(path: str) -> str:
    """Read one file of the spec by its path inside it."""
    return root().joinpath(*path.split("/")).read_text(encoding="utf-8")


def list_names(folder: str) -> list[str]:
    """List the JSON files of one folder of the spec, sorted."""
    return sorted(item.name for item in root().joinpath(*folder.split("/")).iterdir() if item.name.endswith(".json"))
