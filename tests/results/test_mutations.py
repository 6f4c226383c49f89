"""Files with anything wrong in them: an answer or one clear line, never a traceback; always the same draws."""

import json
import random
from copy import deepcopy
from pathlib import Path

import pytest

from tests.cli.running import Shell
from tests.results import examples as ex

CASES = 40  # for each tool
WORDS: list[ex.Json] = [None, 0, -1, 1, "x", "", [], {}, True, 1.5, 1e300, [1], {"a": 1}, 10**18, [[]], float("nan")]
Path_ = tuple[str | int, ...]


def list_paths(value: ex.Json, path: Path_ = ()) -> list[Path_]:
    """List every place in a value but its top."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, each in inside for found in [(*path, key), *list_paths(each, (*path, key))]]


def mutate(value: ex.Json, draw: random.Random) -> ex.Json:
    """Copy a value with one to three places dropped or replaced."""
    copy = deepcopy(value)
    for _ in range(draw.randint(1, 3)):
        paths = list_paths(copy)
        if not paths:
            break
        *way, last = draw.choice(paths)
        inside = copy
        for key in way:
            inside = inside[key]
        if draw.random() < 0.3:
            del inside[last]
        else:
            inside[last] = deepcopy(draw.choice(WORDS))
    return copy


@pytest.mark.parametrize("tool", ex.FOLDERS)
def test_whatever_is_wrong_is_an_answer_or_one_line(tool: str, shell: Shell, tmp_path: Path) -> None:
    draw = random.Random(tool)
    for number in range(CASES):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, value in ex.FOLDERS[tool].items():
            ex.write(folder, name, mutate(value, draw))
        code, out, err = shell.run("audit", str(folder), "--slo", "ttft=1s,tpot=1s", "--json", "-")
        if code == 2:
            assert out == "" and err.startswith("refsched: ") and err.count("\n") == 1 and len(err) < 600
        else:
            assert code in (0, 1) and err == ""
            json.loads(out)


def test_enormous_numbers_take_neither_time_nor_memory(shell: Shell, tmp_path: Path) -> None:
    long = ex.change(ex.VLLM, "latencies", 0, to=5e6)  # two months: one second at a time would take long
    assert shell.run("audit", str(ex.write(tmp_path, "result.json", long)))[0] == 1
    longer = ex.change(ex.VLLM, "latencies", 0, to=1e8)
    assert "result.json" in shell.refuse("audit", str(ex.write(tmp_path, "result.json", longer)))
    timings = ("benchmarks", 0, "requests", "successful", 0, "info", "timings", "token_iterations")
    many = ex.change(ex.GUIDELLM, *timings, to=10**12)
    assert "token_iterations: is too large" in shell.refuse("audit", str(ex.write(tmp_path, "b.json", many)))
