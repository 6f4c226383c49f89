"""refsched tables: the documents' numbers, exact, on the screen and as JSON [A6, B4, B4b, B5]."""

import pytest

from tests.cli.running import Shell


def test_the_json_form(shell: Shell) -> None:
    page = shell.json("tables")
    static, continuous = page["timetable"]["static"], page["timetable"]["continuous"]
    assert {name: static[name] for name in "ABCD"} == {"A": 4, "B": 2, "C": 6, "D": 5} and static["end"] == 6
    assert {name: continuous[name] for name in "ABCD"} == {"A": 4, "B": 2, "C": 4, "D": 5} and continuous["end"] == 5
    shown = {row["chunk"]: (row["iterations"], row["longest_gap_ms"], row["prefill_done_ms"]) for row in page["chunks"]}
    assert shown == {
        4096: (1, "68.5", "68.5"),
        1024: (4, "20.5", "82"),
        256: (16, "8.5", "136"),
        1000: (5, "20.125", "86.5"),
    }
    parts = {
        row["chunk"]: (row["delay_ms"], row["delay_decode_ms"], row["delay_overhead_ms"], row["tokens_gained"])
        for row in page["chunks"]
    }
    assert parts[1024] == ("13.5", "12", "1.5", 6) and parts[256] == ("67.5", "60", "7.5", 30)
    assert "simulated" in page["provenance"]["how"]


def test_the_timetable_is_never_turned_into_milliseconds_or_per_cent(shell: Shell) -> None:
    _, out, _ = shell.run("tables")
    timetable = out.split("A prompt of")[0]
    assert "[4, 5)  D -" in timetable and "%" not in out
    assert " ms" not in timetable and "second" not in timetable


def test_a_higher_overhead_makes_small_chunks_dearer(shell: Shell) -> None:
    rows = shell.json("tables", "--overhead-ms", "2", "--chunk", "1024", "--chunk", "256")["chunks"]
    assert [row["delay_overhead_ms"] for row in rows] == ["6", "30"]


def test_the_reader_varies_everything(shell: Shell) -> None:
    row = shell.json(
        "tables",
        "--chunk",
        "3",
        "--prompt",
        "10",
        "--decode-ms",
        "1.5",
        "--full-prefill-ms",
        "10",
        "--overhead-ms",
        "0",
    )["chunks"][0]
    assert (row["iterations"], row["longest_gap_ms"], row["prefill_done_ms"]) == (4, "4.5", "16")


@pytest.mark.parametrize("option", ["--chunk", "--prompt"])
@pytest.mark.parametrize("value", ["0", "-1", "1.5", "x", "", "9" * 30, "٣"])
def test_token_counts_that_are_not_positive_are_refused(shell: Shell, option: str, value: str) -> None:
    assert option in shell.refuse("tables", f"{option}={value}")


@pytest.mark.parametrize("option", ["--decode-ms", "--full-prefill-ms", "--overhead-ms"])
@pytest.mark.parametrize("value", ["-1", "nan", "inf", "4 kg", "0.0000000001", "1e99"])
def test_times_that_are_no_times_are_refused(shell: Shell, option: str, value: str) -> None:
    assert option in shell.refuse("tables", f"{option}={value}")
