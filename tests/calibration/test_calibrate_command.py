"""refsched calibrate: from a log, from this machine, from a profile; and what it says where something is missing."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import refsched_gpu.__main__
from refsched.cli import calibrate
from tests.calibration.logs import draw_works, write_log
from tests.calibration.schema import find_faults
from tests.cli.conftest import shell  # noqa: F401
from tests.cli.running import Shell
from tests.shared import SHARED, needs_shared

PROFILE = ("data", "hardware", "llmservingsim", "profile", "RTX4090__meta-llama__Llama-3.1-8B")
WORKLOAD = "poisson:rate=20,n=30,prompt=100,output=20"


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "steps.csv"
    write_log(path, draw_works(120, seed=1), noise=0.01)
    return str(path)


def read(path: Path) -> dict[str, Any]:
    page: dict[str, Any] = json.loads(path.read_text())
    return page


def test_a_log_becomes_a_model_that_simulate_uses(shell: Shell, log: str, tmp_path: Path) -> None:  # noqa: F811
    out = tmp_path / "mine.json"
    code, text, err = shell.run("calibrate", "--from", log, "--out", str(out))
    assert (code, err) == (0, "")
    assert "two-regime knee (written)" in text and "largest relative rounding" in text
    page = read(out)
    assert list(find_faults(page)) == []
    assert page["source"]["file"] == "steps.csv" and len(page["source"]["sha256"]) == 64
    arguments = ("simulate", WORKLOAD, "--token-budget", "512", "--max-seqs", "16", "--cost", str(out))
    code, text, err = shell.run(*arguments)
    assert (code, err) == (0, "")
    assert "held-out error" in text and "p95 of 24 points" in text
    assert shell.json(*arguments)["cost"]["parameters"]["error"] in text


def test_a_run_beyond_the_measured_range_is_refused(shell: Shell, log: str, tmp_path: Path) -> None:  # noqa: F811
    out = tmp_path / "mine.json"
    shell.run("calibrate", "--from", log, "--out", str(out))
    problem = shell.refuse(
        "simulate", "poisson:rate=99,n=9,prompt=4000,output=20",
        "--token-budget", "4096", "--max-seqs", "16", "--cost", str(out),
    )  # fmt: skip
    assert "outside what was measured" in problem and "--extrapolate" in problem


def test_the_form_and_the_overhead_can_be_chosen(shell: Shell, log: str, tmp_path: Path) -> None:  # noqa: F811
    out = tmp_path / "mine.json"
    code, _, _ = shell.run("calibrate", "--from", log, "--form", "linear", "--overhead-us", "150", "--out", str(out))
    page = read(out)
    assert code == 0
    assert page["fit"]["form"] == "linear" and page["fit"]["overhead_s"] == pytest.approx(150e-6)
    assert "two-regime knee" in page["quality"]["alternatives_held_out"]


def test_equal_inputs_give_equal_fits(shell: Shell, log: str, tmp_path: Path) -> None:  # noqa: F811
    pages = []
    for name in ("a.json", "b.json"):
        shell.run("calibrate", "--from", log, "--out", str(tmp_path / name))
        pages.append({key: value for key, value in read(tmp_path / name).items() if key != "created"})
    assert pages[0] == pages[1]


def test_this_machine_is_measured_at_a_tiny_shape(shell: Shell, tmp_path: Path) -> None:  # noqa: F811
    pytest.importorskip("numpy", reason="the measuring package needs NumPy")
    out = tmp_path / "here.json"
    code, _, err = shell.run("calibrate", "--shape", "tiny", "--budget", "3", "--out", str(out))
    assert (code, err) == (0, "")
    page = read(out)
    assert list(find_faults(page)) == []
    assert page["fit"]["form"] == "component" and page["complete"]
    assert page["correctness"]["relative_error"] < page["correctness"]["limit"] == 1e-5
    assert {point["use"] for point in page["points"]} == {"table", "train", "held_out"}
    assert page["validity"]["decode_context"] == [16, 64] and page["validity"]["decode_batch"][1] == 8
    assert page["binding"] and page["depth_check"]["layers"] == 1
    arguments = ("simulate", "poisson:rate=20,n=9,prompt=30,output=9", "--token-budget", "32", "--max-seqs", "4")
    assert shell.run(*arguments, "--cost", str(out))[0] == 0


def test_interrupted_it_writes_what_there_is(
    shell: Shell,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,  # noqa: F811
) -> None:
    pytest.importorskip("numpy", reason="the measuring package needs NumPy")
    monkeypatch.syspath_prepend(str(calibrate.MEASURERS))
    from refsched_gpu.measure import Session

    time_point, count = Session.time_point, [0]

    def stop_in_the_second_pass(self: Session, series: Any) -> None:
        count[0] += 1
        if count[0] > len(self.series) + 5:
            raise KeyboardInterrupt
        time_point(self, series)

    monkeypatch.setattr(Session, "time_point", stop_in_the_second_pass)
    out = tmp_path / "part.json"
    code, _, _ = shell.run("calibrate", "--shape", "tiny", "--budget", "30", "--out", str(out))
    page = read(out)
    assert code == 130 and page["passes"] == 1 and not page["complete"]
    assert list(find_faults(page)) == []


def test_a_backend_that_computes_wrongly_is_not_timed(
    shell: Shell,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,  # noqa: F811
) -> None:
    pytest.importorskip("numpy", reason="the measuring package needs NumPy")
    import refsched_gpu.measure

    monkeypatch.setattr(refsched_gpu.measure, "find_error", lambda ops, shape: float("nan"))
    out = tmp_path / "none.json"
    code, text, err = shell.run("calibrate", "--shape", "tiny", "--out", str(out))
    assert code == 6 and text == "" and "computes wrongly" in err and err.count("\n") == 1
    assert not out.exists()


def test_a_missing_gpu_is_one_line_and_exit_code_6(shell: Shell, tmp_path: Path) -> None:  # noqa: F811
    """On a machine with a GPU there is nothing to say."""
    pytest.importorskip("numpy", reason="the measuring package needs NumPy")
    from refsched_gpu.cupy_load import open_device
    from refsched_gpu.errors import NotAvailableError
    from refsched.calibration.shapes import SHAPES

    try:
        open_device(SHAPES["tiny"])
        pytest.skip("there is a GPU here")
    except NotAvailableError:
        pass
    code, text, err = shell.run("calibrate", "--backend", "cupy", "--shape", "tiny", "--out", str(tmp_path / "x.json"))
    assert code == 6 and text == ""
    assert err.startswith("refsched: ") and err.count("\n") == 1


def test_missing_numpy_is_one_line_and_exit_code_6(
    shell: Shell,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,  # noqa: F811
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "refsched_gpu"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "numpy", None)
    code, text, err = shell.run("calibrate", "--out", str(tmp_path / "x.json"))
    assert code == 6 and text == ""
    assert "NumPy" in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--budget", "0"), "--budget"),
        (("--budget", "long"), "--budget"),
        (("--overhead-us", "-1"), "--overhead-us"),
        (("--from", "nowhere.csv"), "nowhere.csv"),
        (("--out", "no/such/folder/x.json"), "no/such/folder/x.json"),
        (("--shape", "llama-9"), "--shape"),
        (("--form", "cubic"), "--form"),
        (("--out", "-", "--json", "-"), "standard output"),
    ],
)
def test_bad_arguments_are_one_line(shell: Shell, arguments: tuple[str, ...], named: str) -> None:  # noqa: F811
    assert named in shell.refuse("calibrate", *arguments)


def test_the_second_name_is_the_same_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["refsched-calibrate", "--help"])
    with pytest.raises(SystemExit) as left:
        refsched_gpu.__main__.main()
    assert left.value.code == 0
    assert "refsched calibrate --backend cupy" in capsys.readouterr().out


@needs_shared(*PROFILE)
def test_a_kernel_profile_becomes_a_model(shell: Shell, tmp_path: Path) -> None:  # noqa: F811
    out = tmp_path / "rtx4090.json"
    folder = str(SHARED.joinpath(*PROFILE))
    code, _, err = shell.run("calibrate", "--from", folder, "--kv-tokens", "41408", "--out", str(out))
    assert (code, err) == (0, "")
    page = read(out)
    assert list(find_faults(page)) == []
    assert page["device"]["name"] == "NVIDIA GeForce RTX 4090" and page["fit"]["form"] == "two-regime"
    assert page["quality"]["held_out"]["median"] < 0.02
