"""Replaying a run: reading it, what is compared, and the real vLLM run on an RTX 4090."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from refsched.calibration.profile import read_profile
from refsched.calibration.published import read_distserve, read_dynamo, read_splitwise
from refsched.calibration.real_run import Times, find_workload, read_run
from refsched.calibration.replay import Boundaries, fit_overhead, get_start, replay, summarise
from refsched.errors import InputError
from refsched.model import NOTHING, Iteration, Work
from refsched.simulation.cost_fitted import FittedCost, set_overhead
from scripts.hardware_runs import FITTED_AIMS, RUN_AIMS, check_run, fit_for_run, run_pair
from scripts.validate_hardware import cross_validate
from tests.calibration.test_cost_file import COST
from tests.shared import SHARED, needs_shared

HARDWARE = SHARED / "data" / "hardware"
RUN = ("data", "hardware", "llmservingsim", "vllm_e2e", "RTX4090__Llama-3.1-8B")
PROFILES = HARDWARE / "llmservingsim" / "profile"
META: dict[str, Any] = {
    "engine_kwargs": {
        "model": "meta-llama/Llama-3.1-8B", "tensor_parallel_size": 1, "data_parallel_size": 1,
        "max_num_seqs": 4, "max_num_batched_tokens": 64, "max_model_len": None,
    },
    "kv_cache": {"num_gpu_blocks": 40, "block_size": 16, "enable_prefix_caching": True},
}  # fmt: skip


def write_run(folder: Path, meta: dict[str, Any] = META, rows: int = 6) -> str:
    """Write a run of equal requests, one a second, each with a token after 0.5 s and then one every 0.1 s."""
    folder.mkdir(exist_ok=True)
    (folder / "meta.json").write_text(json.dumps(meta))
    lines = [
        {
            "input_toks": 40, "output_toks": 5, "arrival_time": 1e9 + place, "queued_ts": 100.0 + place,
            "first_token_ts": 100.5 + place, "last_token_ts": 100.9 + place,
        }
        for place in range(rows)
    ]  # fmt: skip
    (folder / "requests.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    return str(folder)


def test_a_run_is_read_with_its_limits_and_times(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "CARD__model"))
    assert (run.limits.token_budget, run.limits.max_seqs, run.limits.num_blocks, run.limits.max_len) == (
        64,
        4,
        40,
        None,
    )
    assert run.hardware == "CARD" and run.prefix_cache
    assert [offer.at for offer in run.offers[:2]] == [0, 10**12]
    summary = summarise(run.measured, get_start(run))
    assert (summary.mean_ttft, summary.p95_ttft) == pytest.approx((0.5, 0.5))
    assert (summary.mean_tpot, summary.makespan) == pytest.approx((0.1, 5.9))


def test_a_pool_that_was_not_recorded_is_estimated_and_said(tmp_path: Path) -> None:
    folder = tmp_path / "CARD__model"
    write_run(folder, {name: value for name, value in META.items() if name != "kv_cache"})
    memory = {"mem_size": 24, "mem_util": 0.833919}
    config = {"nodes": [{"instances": [{"hardware": "CARD", "npu_mem": memory, "tp_size": 1}]}]}
    (folder / "config.json").write_text(json.dumps(config))
    run = read_run(str(folder))
    assert run.limits.num_blocks == pytest.approx(2588, abs=2)
    assert "estimated" in run.notes[0]


def test_a_workload_with_prefix_numbers_is_found_beside_the_run(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "CARD__model", rows=2)
    assert find_workload(folder) is None
    line = {"timestamp_ns": 0, "input_length": 40, "output_length": 5, "hash_ids": [7, 8]}
    file = tmp_path / "workload_blocks.jsonl"
    file.write_text("\n".join([json.dumps(line)] * 2) + "\n")
    assert find_workload(folder) == str(file)
    first, second = (offer.request.prefix for offer in read_run(folder, str(file)).offers)
    assert first == second and len(first) == 2
    file.write_text(json.dumps({**line, "input_length": 41}) + "\n")
    with pytest.raises(InputError, match="other requests"):
        read_run(folder, str(file))


@pytest.mark.parametrize(
    ("file", "text", "named"),
    [
        ("meta.json", "{", "meta.json: is not JSON"),
        ("meta.json", "[]", "meta.json: is not a JSON object"),
        ("meta.json", "{}", "engine_kwargs: is missing"),
        ("meta.json", json.dumps(META).replace('"max_num_seqs": 4', '"max_num_seqs": 0'), "meta.json: max_num_seqs: 0"),
        ("requests.jsonl", "", "holds no requests"),
        ("requests.jsonl", '{"input_toks": 3}\n', "row 1: output_toks: is not a number"),
        ("config.json", '{"nodes": []}', "config.json: nodes: names no instance"),
    ],
)
def test_a_bad_run_is_named(tmp_path: Path, file: str, text: str, named: str) -> None:
    folder = write_run(tmp_path / "CARD__model")
    Path(folder, file).write_text(text)
    with pytest.raises(InputError) as caught:
        read_run(folder)
    assert named in str(caught.value)


def test_what_comes_during_an_iteration_is_seen_at_its_end() -> None:
    boundaries = Boundaries()
    for number, (start, end) in enumerate([(0, 10), (10, 30), (50, 60)]):
        boundaries.on_iteration(Iteration(number, start, end, NOTHING, Work((), 1, 1), (), ()))
    assert [boundaries.see(at) for at in (0, 9, 10, 29, 30, 40, 55)] == [10, 10, 30, 30, 30, 40, 60]


def test_the_overhead_that_was_put_in_is_found(tmp_path: Path) -> None:
    """A run made by the simulator itself with 12.3 ms per iteration."""
    run = read_run(write_run(tmp_path / "CARD__model", rows=12))
    times = replay(run, set_overhead(COST, round(12.3e9)), "vllm-0.29")
    made = replace(run, measured=times)
    assert fit_overhead(made, COST, "vllm-0.29", first=6) == pytest.approx(0.0123, rel=0.01)


def test_one_token_has_no_time_per_further_token() -> None:
    times = [Times(1.0, None, 1.0, 1.0), Times(3.0, 0.5, 5.0, 9.0)]
    summary = summarise(times, 0.0)
    assert (summary.mean_ttft, summary.mean_tpot, summary.makespan) == (2.0, 0.5, 9.0)


def test_a_run_of_several_replicas_is_left_out_with_the_reason(tmp_path: Path) -> None:
    several = {**META, "engine_kwargs": {**META["engine_kwargs"], "data_parallel_size": 2}}
    rows, notes = run_pair(tmp_path, Path(write_run(tmp_path / "CARD__model", several)), None)
    assert rows == [] and "2 replicas" in notes[0]


# PUBLISHED


@needs_shared("data", "hardware", "dynamo")
def test_h200_decodes_are_within_three_percent() -> None:
    sets = read_dynamo(str(HARDWARE / "dynamo" / "H200_TP1P_TP1D"))
    assert len(sets["decode"]) == 38  # three whose batch was not reached are left out
    errors = cross_validate(sets["decode"], seed=1)
    assert errors["two-regime knee"].median <= 0.03
    assert errors["linear in tokens"].median > 0.2


@needs_shared("data", "hardware", "splitwise-sim")
def test_splitwise_is_read_without_what_its_readme_warns_of() -> None:
    sets = read_splitwise(str(HARDWARE / "splitwise-sim" / "perf_model.csv"))
    assert not any("pcap" in name for name in sets) and len(sets) == 16
    batches = {len(sample.work.chunks) for sample in sets["llama2-70b h100-80gb tp2 prefill"]}
    assert max(batches) == 32


@needs_shared("data", "hardware", "distserve")
def test_distserve_s_prefill_formula_is_one_of_ours() -> None:
    sets = read_distserve(str(HARDWARE / "distserve" / "profiler-a100-80g.vllm.json"))
    assert cross_validate(sets["opt-13b tp1 prefill"], seed=1)["linear"].max < 0.001


@needs_shared(*RUN)
def test_the_real_run_on_an_rtx_4090() -> None:
    """With no overhead all requests within 10 %; with the overhead of the first 100 arrivals the others within 5 %."""
    folder = str(SHARED.joinpath(*RUN))
    run = read_run(folder, find_workload(folder))
    cost = fit_for_run(read_profile(str(PROFILES / "RTX4090__meta-llama__Llama-3.1-8B")), 41_408)
    assert isinstance(cost, FittedCost)
    whole, _, others = check_run(run, cost)
    assert whole.is_met and whole.aims == RUN_AIMS and whole.overhead == 0
    assert others.is_met and others.aims == FITTED_AIMS and 0 < others.overhead < 0.003


@needs_shared(*RUN)
def test_a_run_folder_is_enough_wherever_it_lies(tmp_path: Path) -> None:
    """Renamed, and without the recorded pool: the estimate from the memory does."""
    folder = tmp_path / "OTHER__Llama-3.1-8B"
    shutil.copytree(SHARED.joinpath(*RUN), folder, copy_function=shutil.copyfile)
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").unlink()
    (folder / "meta.json").write_text(json.dumps({name: meta[name] for name in ("engine_kwargs", "model")}))
    run = read_run(str(folder))
    assert run.limits.num_blocks == pytest.approx(2588, rel=0.002)
