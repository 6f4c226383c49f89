"""Check what a user gets: sdist -> wheel from that sdist -> a new environment -> the command, the data and the types.

Needs the packages of the extra `test` (scripts/test installs them) and the package index, for the build backend.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
NOWHERE = Path("/")  # a folder that holds no checkout
PACKAGES = ("refsched", "refsched_gpu")
COMMANDS = ("refsched", "refsched-calibrate")
TOOLS = ("build", "mypy")
RIGHT_CONSUMER = "import refsched\nversion: str = refsched.__version__\n"
WRONG_CONSUMER = "import refsched\nversion: int = refsched.__version__\n"

# A check of what is installed must not find the checkout.
CLEAN_ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")}


class CheckFailed(Exception):
    """Say in one line what is wrong with the wheel."""


def require(condition: bool, problem: str) -> None:
    """Raise CheckFailed where a condition does not hold."""
    if not condition:
        raise CheckFailed(problem)


def try_run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command without the checkout on any path, and keep what it prints."""
    return subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=CLEAN_ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
    )


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command and return what it printed; raise CheckFailed with that where it fails."""
    done = try_run(*command, cwd=cwd)
    require(done.returncode == 0, f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def list_files(folder: Path) -> set[str]:
    """List the files below a folder, by their path inside it."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def get_only(folder: Path, pattern: str) -> Path:
    """Get the one file of a folder that matches."""
    found = sorted(folder.glob(pattern))
    require(len(found) == 1, f"{len(found)} files match {pattern}, not 1")
    return found[0]


def build_wheel(folder: Path) -> Path:
    """Build the sdist, and the wheel from what that sdist holds."""
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT, cwd=folder)
    get_only(folder, "*.tar.gz")
    return get_only(folder, "*.whl")


def make_environment(folder: Path) -> tuple[Path, Path]:
    """Make a virtual environment; return its folder of commands and its site-packages."""
    run(sys.executable, "-m", "venv", folder, cwd=folder.parent)
    commands = folder / ("Scripts" if os.name == "nt" else "bin")
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return commands, Path(run(commands / "python", "-c", where, cwd=NOWHERE).strip())


def check_contents(site: Path, gained: set[str]) -> None:
    """Check that the installation brought our packages whole, and nothing beside them."""
    information = {name for name in gained if name.startswith("refsched-") and name.endswith(".dist-info")}
    require(len(information) == 1, f"site-packages gained {len(information)} dist-info folders of refsched, not 1")
    require(gained - information == set(PACKAGES), f"site-packages gained {', '.join(sorted(gained))}")
    for package in PACKAGES:
        require((site / package / "py.typed").is_file(), f"{package}/py.typed is missing")
    difference = sorted(list_files(site / "refsched" / "_spec") ^ list_files(ROOT / "spec"))
    require(not difference, f"spec/ and refsched/_spec differ in {len(difference)} files: {', '.join(difference[:3])}")


def check_commands(commands: Path) -> None:
    """Check that the command works from anywhere, and does the same as the module."""
    for command in COMMANDS:
        get_only(commands, f"{command}*" if os.name == "nt" else command)
    by_command = run(commands / "refsched", "tables", cwd=NOWHERE)
    by_module = run(commands / "python", "-m", "refsched", "tables", cwd=NOWHERE)
    require(by_command.strip() != "", "refsched tables printed nothing")
    require(by_command == by_module, "refsched tables and python -m refsched tables print different things")
    run(commands / "python", "-c", "import refsched_gpu", cwd=NOWHERE)


def check_types(commands: Path, folder: Path) -> None:
    """Check that a consumer's strict mypy sees our types: it accepts right code and finds a mistake."""
    installed = ("--python-executable", commands / "python", "--cache-dir", folder / "types")
    mypy = (sys.executable, "-m", "mypy", "--strict", "--config-file=", *installed)
    for name, code in (("right.py", RIGHT_CONSUMER), ("wrong.py", WRONG_CONSUMER)):
        (folder / name).write_text(code, encoding="utf-8")
    run(*mypy, "right.py", cwd=folder)
    wrong = try_run(*mypy, "wrong.py", cwd=folder)
    require("[assignment]" in wrong.stdout, f"mypy does not see the types of refsched:\n{wrong.stdout}")


def check(folder: Path) -> None:
    """Build, install and check in an empty folder; raise CheckFailed at the first thing that is wrong."""
    (folder / "dist").mkdir()
    (folder / "consumer").mkdir()
    wheel = build_wheel(folder / "dist")
    commands, site = make_environment(folder / "environment")
    before = set(os.listdir(site))
    run(commands / "python", "-m", "pip", "install", "--no-deps", "--no-index", wheel, cwd=folder)
    check_contents(site, set(os.listdir(site)) - before)
    check_commands(commands)
    check_types(commands, folder / "consumer")
    print(f"{wheel.name}: contents ({len(list_files(ROOT / 'spec'))} spec files), commands and types are right")


def main() -> int:
    """Check the wheel of this checkout; return 1 where it is wrong and 6 where a tool is missing."""
    missing = [name for name in TOOLS if find_spec(name) is None]
    if missing:
        print(f"check_wheel: {' and '.join(missing)} not installed; scripts/test installs it", file=sys.stderr)
        return 6
    try:
        with TemporaryDirectory(prefix="refsched-wheel-") as folder:
            check(Path(folder).resolve())
    except CheckFailed as failure:
        print(f"check_wheel: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
