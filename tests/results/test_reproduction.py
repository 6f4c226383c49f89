"""Every number of the recorded result files of eight tools: reproduced to 1e-9, or excused by a committed reason."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from refsched.results.collect import collect_runs
from refsched.results.run import Run
from refsched.spec import read_text
from tests.shared import SHARED, needs_shared

FOLDER = SHARED / "data" / "tool_results"
TABLE: Mapping[str, Any] = json.loads(read_text("tools/reproduced.json"))
EXCEPTIONS = json.loads(read_text("tools/exceptions.json"))["exceptions"]
RUNS = sorted({name.split(" #")[0] for runs in TABLE["runs"].values() for name in runs})


def read(name: str) -> list[Run]:
    """Read the runs of one recorded folder."""
    return collect_runs([str(FOLDER / name)])


def is_excused(tool: str, field: str) -> bool:
    """Say whether the committed list excuses a number."""
    return any(each["tool"] == tool and re.fullmatch(each["field"], field) for each in EXCEPTIONS)


@needs_shared("data", "tool_results")
@pytest.mark.parametrize("name", RUNS)
def test_all_numbers_are_reproduced_or_excused(name: str) -> None:
    for run in read(name):
        wrong = [(line.name, line.reason) for line in run.reported if line.reproduced is False]
        assert wrong == []
        bare = [line.name for line in run.reported if line.reproduced == "unsupported"]
        assert [field for field in bare if not is_excused(run.tool, field)] == []
        assert all(line.reason for line in run.reported if line.reproduced != True)  # noqa: E712 - three values
        assert all(line.definition for line in run.reported)


@needs_shared("data", "tool_results")
@pytest.mark.parametrize("name", RUNS)
def test_the_committed_table_says_what_the_files_say(name: str) -> None:
    runs = read(name)
    for number, run in enumerate(runs):
        key = name if len(runs) == 1 else f"{name} #{number}"
        counts = Counter(line.reproduced for line in run.reported)
        assert TABLE["runs"][run.tool][key] == {
            "reported": len(run.reported),
            "reproduced": counts[True],
            "not": counts[False],
            "unsupported": counts["unsupported"],
            "success_counted": run.success.counted,
            "success_shown": run.success.shown,
        }


@needs_shared("data", "tool_results")
def test_every_recorded_run_is_in_the_table() -> None:
    without_results = {"genai-perf/c_errors_chat", "sglang_bench_serving/e_completions_usage_crash"}
    folders = {f"{path.parent.name}/{path.name}" for path in FOLDER.glob("[a-z]*/*/")}
    assert folders - without_results == set(RUNS)


def test_the_totals_are_the_sums_of_the_table() -> None:
    for tool, runs in TABLE["runs"].items():
        totals = TABLE["totals"][tool]
        assert totals["runs"] == len(runs)
        for key in ("reported", "reproduced", "not", "unsupported"):
            assert totals[key] == sum(run[key] for run in runs.values())
        assert totals["not"] == 0


def test_no_exception_excuses_everything() -> None:
    for each in EXCEPTIONS:
        assert each["reason"] and not re.fullmatch(each["field"], "mean_ttft_ms"), each


@needs_shared("data", "tool_results")
def test_targets_from_outside_reproduce_what_the_file_does_not_hold() -> None:
    from decimal import Decimal

    slo = {"ttft": Decimal("0.120"), "tpot": Decimal("0.025"), "e2e": Decimal("1.500")}
    for path in sorted(Path(FOLDER / "vllm_bench_serve").glob("*/result.json")):
        (run,) = collect_runs([str(path)], None, slo)
        lines = [line for line in run.reported if line.name == "request_goodput"]
        assert [line.reproduced for line in lines] in ([True], [])


@needs_shared("data", "tool_results")
def test_without_the_exact_ends_of_the_phase_only_what_needs_them_is_unsupported() -> None:
    folder = FOLDER / "aiperf" / "a_openloop_const_chat" / "artifacts"
    (run,) = collect_runs([str(folder / name) for name in ("profile_export.jsonl", "profile_export_aiperf.json")])
    bare = {line.name.split(".")[0] for line in run.reported if line.reproduced == "unsupported"}
    assert "request_throughput" in bare and "output_token_throughput" not in bare
    assert all(is_excused(run.tool, line.name) for line in run.reported if line.reproduced == "unsupported")
    assert not any(line.reproduced is False for line in run.reported)
