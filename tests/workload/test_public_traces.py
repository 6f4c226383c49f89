"""The published traces, where they are present: their rows, times and shares as published or computed a second time."""

import csv
import json
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from refsched.errors import InputError
from refsched.units import TICKS_PER_SECOND, round_decimal
from refsched.workload.formats import ReadOptions, read_lengths, read_workload
from refsched.workload.generate import generate
from refsched.workload.load import load_workload
from refsched.workload.spacing import write_root
from refsched.workload.summary import WorkloadFacts, summarise
from tests.shared import SHARED, needs_shared

TRACES: Path = SHARED / "data" / "traces"
HARDWARE: Path = SHARED / "data" / "hardware" / "llmservingsim" / "vllm_e2e"
CODE, CONV = "azure2023/AzureLLMInferenceTrace_code.csv", "azure2023/AzureLLMInferenceTrace_conv.csv"
CONVERSATION, SYNTHETIC = "mooncake_fast25/conversation_trace.jsonl", "mooncake_fast25/synthetic_trace.jsonl"

pytestmark = needs_shared("data", "traces")


def summarise_file(name: str, ties: str = "raw") -> WorkloadFacts:
    """Read a trace and summarise it."""
    return summarise(read_workload(str(TRACES / name), ReadOptions(ties=ties)), (4096, 8192, 32768))


def read_azure_seconds(name: str) -> list[Decimal]:
    """Compute seconds since the first arrival with decimals alone, knowing that the trace stays within one day."""
    with open(TRACES / name, encoding="utf-8", newline="") as file:
        stamps = [row["TIMESTAMP"] for row in csv.DictReader(file)]
    parts = [re.split("[ :]", stamp) for stamp in stamps]
    assert len({day for day, *_ in parts}) == 1
    seconds = [3600 * Decimal(hour) + 60 * Decimal(minute) + Decimal(second) for _, hour, minute, second in parts]
    return [each - seconds[0] for each in seconds]


@pytest.mark.parametrize(("name", "rows", "last"), [(CODE, 8819, "3435.948056"), (CONV, 19366, "3501.721937")])
def test_azure_times_are_exact(name: str, rows: int, last: str) -> None:
    offers = read_workload(str(TRACES / name)).offers
    expected = read_azure_seconds(name)
    assert len(offers) == len(expected) == rows
    assert offers[0].at == 0 and offers[-1].at == Decimal(last) * TICKS_PER_SECOND
    assert [offer.at for offer in offers] == [seconds * TICKS_PER_SECOND for seconds in expected]


def test_azure_code_as_published() -> None:
    facts = summarise_file(CODE)
    assert write_root(facts.spacing.cv_squared or Fraction(0), 2) == "13.15"
    assert facts.rate is not None and round_decimal(facts.rate, 3) == "2.567"
    assert round_decimal(Fraction(facts.spacing.longest_gap, TICKS_PER_SECOND), 2) == "217.17"
    assert (round_decimal(facts.prompt.mean, 1), facts.prompt.most) == ("2047.8", 7437)
    assert (round_decimal(facts.output.mean, 1), facts.output.p50, facts.output.most) == ("27.9", 13, 1899)
    assert facts.spacing.ties == 0 and facts.notes == ()


def test_azure_conv_as_published() -> None:
    facts = summarise_file(CONV)
    assert write_root(facts.spacing.cv_squared or Fraction(0), 3) == "1.094"
    assert facts.rate is not None and round_decimal(facts.rate, 3) == "5.530"
    assert (round_decimal(facts.prompt.mean, 1), facts.prompt.most) == ("1154.7", 14050)
    assert (round_decimal(facts.output.mean, 1), facts.output.p50, facts.output.most) == ("211.1", 129, 1000)
    assert [each.totals for each in facts.above] == [1612, 1, 0]
    assert facts.spacing.ties == 0


@pytest.mark.parametrize(("name", "ties"), [(CODE, 2690), (CONV, 801)])
def test_fewer_digits_would_make_ties(name: str, ties: int) -> None:
    """What a reader that keeps hundredths of a second would do to the same file."""
    stamps = [line.split(",")[0][:-5] for line in (TRACES / name).read_text().splitlines()[1:]]
    assert sum(1 for before, after in zip(stamps, stamps[1:], strict=False) if before == after) == ties


@pytest.mark.parametrize("part", ["code", "conv"])
def test_vidur_has_the_same_requests_as_azure(part: str) -> None:
    azure = read_workload(str(TRACES / f"azure2023/AzureLLMInferenceTrace_{part}.csv")).offers
    vidur = read_workload(str(TRACES / f"vidur_processed/splitwise_{part}.csv"))
    assert [offer.request for offer in vidur.offers] == [offer.request for offer in azure]
    assert max(abs(one.at - other.at) for one, other in zip(azure, vidur.offers, strict=True)) < 1000
    noise = {"code": "1", "conv": "9"}[part]
    assert f"rounded half to even: {noise} (" in vidur.notes[0]


def test_mooncake_conversation_as_published() -> None:
    facts = summarise_file(CONVERSATION)
    assert (facts.rows, facts.spacing.ties, facts.single_output) == (12031, 10851, 72)
    assert write_root(facts.spacing.cv_squared or Fraction(0), 2) == "3.03"
    assert (round_decimal(facts.prompt.mean, 0), facts.prompt.p50, facts.prompt.most) == ("12035", 6909, 126195)
    assert (round_decimal(facts.output.mean, 0), facts.output.most) == ("343", 2000)
    shares = {each.tokens: round_decimal(Fraction(100 * each.totals, facts.rows), 1) for each in facts.above}
    assert (shares[8192], shares[32768]) == ("46.3", "7.0")
    assert facts.reuse is not None
    assert round_decimal(Fraction(100 * facts.reuse.ids_reused, facts.reuse.ids), 1) == "36.6"


def test_mooncake_synthetic_as_published() -> None:
    facts = summarise_file(SYNTHETIC)
    assert (facts.rows, facts.single_output) == (3993, 4)
    assert write_root(facts.spacing.cv_squared or Fraction(0), 2) == "1.01"
    assert facts.reuse is not None
    assert round_decimal(Fraction(100 * facts.reuse.ids_reused, facts.reuse.ids), 1) == "64.0"


@pytest.mark.parametrize("name", [CONVERSATION, SYNTHETIC, "dynamo_mooncake/mooncake_trace_1000.jsonl"])
def test_full_blocks_that_a_cache_would_find(name: str) -> None:
    """The share of full blocks, computed a second time from the file's own ids, which are already chained."""
    seen: set[int] = set()
    blocks = reused = 0
    for line in (TRACES / name).read_text().splitlines():
        row = json.loads(line)
        ids = row["hash_ids"][: row["input_length"] // 512]
        blocks += len(ids)
        reused += next((k for k, each in enumerate(ids) if each not in seen), len(ids))
        seen.update(ids)
    facts = summarise_file(name)
    assert facts.reuse is not None and (facts.reuse.blocks, facts.reuse.blocks_reused) == (blocks, reused)


def test_mooncake_ticks() -> None:
    """Spread at random within each tick of 3 s the CV is about 1.01; at even steps arrivals are smoother than that."""
    scattered, spread = summarise_file(CONVERSATION, "scatter"), summarise_file(CONVERSATION, "spread")
    assert scattered.spacing.cv_squared is not None and spread.spacing.cv_squared is not None
    assert float(scattered.spacing.cv_squared) ** 0.5 == pytest.approx(1.01, abs=0.015)
    assert spread.spacing.cv_squared < scattered.spacing.cv_squared
    assert spread.spacing.ties == scattered.spacing.ties == 0


def test_dynamo_as_published() -> None:
    facts = summarise_file("dynamo_mooncake/mooncake_trace_1000.jsonl")
    assert (facts.rows, facts.single_output, facts.output.p50) == (1000, 3, 34)
    assert facts.rows - facts.spacing.ties == 59
    assert round_decimal(Fraction(facts.span, TICKS_PER_SECOND), 1) == "177.1"
    assert facts.reuse is not None
    assert round_decimal(Fraction(100 * facts.reuse.ids_reused, facts.reuse.ids), 1) == "38.0"
    assert summarise_file("dynamo_mooncake/mooncake_tiny.jsonl").rows == 16


def test_burstgpt_head_is_the_same_in_both_forms() -> None:
    by_csv = read_workload(str(TRACES / "burstgpt_head5/burstgpt_1_head5.csv")).offers
    by_json = read_workload(str(TRACES / "burstgpt_head5/burstgpt_1_head5_normalized.jsonl")).offers
    assert len(by_csv) == 5 and by_csv == by_json
    assert [offer.at // TICKS_PER_SECOND for offer in by_csv] == [0, 40, 113, 180, 209]


def test_small_ones() -> None:
    assert summarise_file("llmservingsim_workloads/workload_me2_01_mixed.jsonl").rows == 608
    splitwise = read_workload(str(TRACES / "splitwise_sim/test_trace.csv"))
    assert [offer.at // TICKS_PER_SECOND for offer in splitwise.offers] == [0, 2, 3]


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("vidur_processed/arxiv_summarization_stats_llama2_tokenizer_filtered_v2.csv", 28257),
        ("etalon_processed/bwb_stats_llama2_tokenizer_filtered_v2.csv", 33768),
        ("etalon_processed/sharegpt_8k_filtered_stats_llama2_tokenizer.csv", 30731),
    ],
)
def test_lengths_only(name: str, rows: int) -> None:
    path = str(TRACES / name)
    with pytest.raises(InputError, match="no arrival times"):
        read_workload(path)
    assert len(read_lengths(path)) == rows
    assert len(generate(f"poisson:rate=4,n=100,lengths={path}", 0).offers) == 100


def test_servegen_counts() -> None:
    """Requests expected from the file: the sum of rate times 600 s."""
    path = TRACES / "servegen/reason_deepseek-r1_chunk-13-trace.csv"
    expected = sum(Decimal(line.split(",")[1]) * 600 for line in path.read_text().splitlines())
    workload = load_workload(str(path), 1)
    assert abs(len(workload.offers) - Decimal(expected)) < 1
    assert "Windows: 144, idle among them: 133" in workload.notes[0]


def test_servegen_survives_cv_360() -> None:
    path = TRACES / "servegen/language_m-small_chunk-17-trace.csv"
    workload = generate(f"servegen:trace={path},start=637200,span=600", 1)
    assert len(workload.offers) == 133546  # 222.57666666666665 /s for 600 s
    with pytest.raises(InputError, match="152305719 requests are more than"):
        load_workload(str(path))
    with pytest.raises(InputError, match="chunk-61-dataset.json: cannot be read"):
        load_workload(str(TRACES / "servegen/language_m-large_chunk-61-trace.csv"))


@needs_shared("data", "hardware", "llmservingsim", "vllm_e2e")
def test_the_workload_of_the_vllm_runs() -> None:
    path = HARDWARE / "workload_llama-3.1-8b_blocks16.jsonl"
    workload = read_workload(str(path))
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(workload.offers) == len(rows) == 300
    start = rows[0]["timestamp_ns"]
    assert [offer.at for offer in workload.offers] == [1000 * (row["timestamp_ns"] - start) for row in rows]
    assert all(len(offer.request.prefix) == offer.request.prompt // 16 for offer in workload.offers)
    facts = summarise(workload)
    assert facts.reuse is not None and facts.reuse.ids == facts.reuse.blocks
