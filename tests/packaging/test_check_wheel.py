"""The check of what an installation brings: whole packages pass; a missing or an extra piece is named."""

from pathlib import Path

import pytest

from scripts.check_wheel import ROOT, CheckFailed, check_contents, list_files

INFORMATION = "refsched-0.1.0.dist-info"
GAINED = {"refsched", "refsched_gpu", INFORMATION}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Make a site-packages that holds what a right wheel brings."""
    names = {"refsched/py.typed", "refsched_gpu/py.typed"}
    for name in names | {f"refsched/_spec/{name}" for name in list_files(ROOT / "spec")}:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def test_a_whole_installation_passes(site: Path) -> None:
    check_contents(site, GAINED)


@pytest.mark.parametrize(
    ("gained", "problem"),
    [
        (GAINED | {"tests"}, "site-packages gained .*tests"),
        (GAINED - {"refsched_gpu"}, "site-packages gained"),
        (GAINED - {INFORMATION}, "0 dist-info folders"),
    ],
)
def test_other_packages_are_rejected(site: Path, gained: set[str], problem: str) -> None:
    with pytest.raises(CheckFailed, match=problem):
        check_contents(site, gained)


@pytest.mark.parametrize("name", ["refsched/py.typed", "refsched_gpu/py.typed"])
def test_missing_type_markers_are_rejected(site: Path, name: str) -> None:
    (site / name).unlink()
    with pytest.raises(CheckFailed, match=f"{name} is missing"):
        check_contents(site, GAINED)


def test_a_missing_spec_file_is_rejected(site: Path) -> None:
    (site / "refsched/_spec/dialects/document-a.json").unlink()
    with pytest.raises(CheckFailed, match="differ in 1 files: dialects/document-a.json"):
        check_contents(site, GAINED)


def test_an_extra_spec_file_is_rejected(site: Path) -> None:
    (site / "refsched/_spec/left-over.json").touch()
    with pytest.raises(CheckFailed, match="differ in 1 files: left-over.json"):
        check_contents(site, GAINED)
