"""Adapters that crash, hang, flood or lie about the form: exit code 3, one clear line, and nobody left behind."""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from refsched.cli import main

pytestmark = pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="processes are listed in /proc")
ROOT = Path(__file__).resolve().parents[2]
HOSTILE = ROOT / "tests" / "interop" / "hostile.py"
MODES = {
    "hang": "no answer to hello within",
    "hang:9": "no answer to",
    "hang:300": "no answer to",
    "exit": "exited with code 0",
    "crash:5": "exited with code 3",
    "crash:300": "exited with code 3",
    "killed:7": "signal 9",
    "junk": "not JSON",
    "junk:6": "not JSON",
    "empty-line:4": "not JSON",
    "half-line-then-hang:4": "a line began",
    "half-line-then-exit:4": "a line began",
    "flood-lines:3": "seq",
    "flood-one-line:3": "longer than",
    "drip:2": "within",
    "wrong-seq:2": "seq",
    "no-seq:2": "seq",
    "seq-as-text:2": "seq",
    "seq-true:2": "seq",
    "not-utf-8:2": "not JSON",
    "float:2": "not an integer",
    "nan:2": "not an integer",
    "huge-integer:2": "not JSON",
    "large-integer:2": "seq",
    "deep:2": "not JSON",
    "array:2": "not a JSON object",
    "twice:2": "seq",
    "name-twice:2": "stands twice",
    "ok-as-text:2": "true or false",
    "unknown-field:2": "not a field",
    "closes-output:3": "closed its output",
    "closes-input:3": "input",
    "errors-flood:3": "within",
    "child-then-exit:4": "exited with code 1",
    "child-of-its-own-then-exit:4": "exited with code 1",
    "child-then-hang:4": "within",
    "deaf-to-signals:4": "within",
    "speaks-first": "speaks before it is asked",
    "never-reads": "no answer to hello",
}


def list_children() -> set[int]:
    """List the processes whose command line names the hostile adapter, or the child that it leaves behind."""
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
        except OSError:
            continue
        if str(HOSTILE).encode() in words or b"time.sleep(600)" in words:
            found.add(int(entry.name))
    return found - {os.getpid()}


def test_that_a_slow_adapter_is_given_up(capsys: pytest.CaptureFixture[str]) -> None:
    command = shlex.join([sys.executable, str(HOSTILE), "slow"])
    assert main(["check", f"cmd:{command}", "--total-timeout", "0.05"]) == 3
    assert "too slow" in capsys.readouterr().err


@pytest.mark.parametrize("mode", MODES)
def test_that_a_broken_adapter_gives_3_and_one_line(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = list_children()
    command = shlex.join([sys.executable, str(HOSTILE), mode])
    seconds = "2" if mode.endswith("00") else "0.5"
    assert main(["check", f"cmd:{command}", "--timeout", seconds]) == 3
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and err.startswith("refsched: the engine broke: "), err
    assert MODES[mode] in err and len(err) < 600 and err[:-1].isprintable()
    assert list_children() <= before


def test_that_the_same_adapter_passes_where_it_behaves(capsys: pytest.CaptureFixture[str]) -> None:
    command = shlex.join([sys.executable, str(HOSTILE), "good"])
    assert main(["check", f"cmd:{command}", "--only", "budget/*"]) == 0
    assert "exact, live (conforms)" in capsys.readouterr().out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_that_an_interrupted_check_leaves_nobody_behind(number: signal.Signals) -> None:
    before = list_children()
    command = [sys.executable, "-m", "refsched", "check", f"cmd:{sys.executable} {HOSTILE} hang:9", "--timeout", "60"]
    checking = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 20
    while not list_children() - before - {checking.pid} and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    checking.send_signal(number)
    _, err = checking.communicate(timeout=20)
    assert (checking.returncode, err) == (130, "refsched: interrupted\n")
    assert list_children() <= before
