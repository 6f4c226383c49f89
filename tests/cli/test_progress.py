"""The progress of a long run: shown on a terminal, with the time left where it can be told, and wiped in the end."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from refsched.cli import main, progress
from refsched.cli.progress import ProgressLine, follow_requests
from refsched.workload.stream import open_stream

LIMITS = ("--token-budget", "64", "--max-seqs", "8")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let time stand still at what the list says."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_time_left_follows_from_the_pace_and_the_total(clock: list[float]) -> None:
    """50 of 200 in 10 s: 150 are left, at 5 a second."""
    line = ProgressLine(lambda: 200)
    line.ended, clock[0] = 50, 110.0
    assert line.describe() == "50 of 200 requests ended, about 30 s left"


def test_without_a_total_only_the_pace_is_told(clock: list[float]) -> None:
    line = ProgressLine(lambda: None)
    line.ended, clock[0] = 50, 110.0
    assert line.describe() == "50 requests ended, 5 a second"


def test_nothing_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "batch:n=300,prompt=4,output=2", *LIMITS]) == 0
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize("replicas", ["1", "2"])
def test_on_a_terminal_the_line_is_shown_and_wiped(
    replicas: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(["simulate", "batch:n=450,prompt=4,output=2", *LIMITS, "--replicas", replicas]) == 0
    shown = capsys.readouterr().err
    assert "200 of 450 requests ended, about " in shown and "400 of 450 requests ended" in shown
    assert ("450 requests ended; measuring" in shown) == (replicas == "1")
    assert shown.endswith("\r\x1b[K")


def test_it_is_wiped_where_a_run_fails(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with pytest.raises(ValueError), follow_requests(lambda: None) as line:
        assert line is not None
        raise ValueError
    assert capsys.readouterr().err == "\r\x1b[K"


def take(text: str, count: int, **more: int) -> Callable[[], int | None]:
    """Take some offers of a stream, and give what it then estimates."""
    stream = open_stream(text, **more)
    offers = iter(stream)
    for _ in range(count):
        next(offers)
    return stream.estimate_total


def test_how_many_will_come(tmp_path: Path) -> None:
    """Rows of one length: after any number of them the bytes tell the total, but for the header."""
    file = tmp_path / "rows.csv"
    file.write_text(
        "arrived_at,num_prefill_tokens,num_decode_tokens\n" + "".join(f"{k:04}.5,100,10\n" for k in range(400))
    )
    assert take("poisson:rate=4,n=70,prompt=8,output=2", 3)() == 70
    assert take("four-requests", 1)() == 4
    assert take(str(file), 0)() is None
    assert 360 <= (take(str(file), 100)() or 0) <= 400
    assert take(str(file), 100, first=120)() == 120
