"""Step times that others published, as samples: Dynamo's H200 sweep, splitwise-sim's table, DistServe's coefficients.

What each source cannot be trusted with is left out here: Dynamo's points whose batch was not reached; splitwise-sim's
copies of its base point, its power-capped rows (computed from others) and the batch that ran out of memory.
"""

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from refsched.calibration.profile import read_table, read_text
from refsched.calibration.samples import Sample, quantile
from refsched.errors import InputError
from refsched.model import Work

MILLISECOND = 1e-3
UNREACHED_BATCH = 1000
DECODE_COLUMNS = ("context_length", "itl_ms", "implied_batch=kv_usage*max_kv_tokens/context")
PREFILL_COLUMNS = ("isl", "ttft_ms")
SPLITWISE_NUMBERS = ("prompt_size", "batch_size", "token_size", "prompt_time", "token_time", "tensor_parallel")
OUT_OF_MEMORY = (2, 64)  # tensor_parallel, batch_size
CAPPED = "pcap"
Sets = Mapping[str, list[Sample]]


def read_dynamo(folder: str) -> Sets:
    """Read Dynamo's sweep of one engine: iterations of decodes, and whole prompts alone."""
    decodes = [
        Sample(Work((), round(batch), round(batch * context)), time * MILLISECOND)
        for _, (context, time, batch) in read_table(Path(folder) / "decode.csv", DECODE_COLUMNS)
        if batch <= UNREACHED_BATCH
    ]
    prefills = [
        Sample(Work(((0, int(prompt)),), 0, 0), time * MILLISECOND)
        for _, (prompt, time) in read_table(Path(folder) / "prefill.csv", PREFILL_COLUMNS)
    ]
    return {"decode": decodes, "prefill": prefills}


def read_splitwise(path: str) -> Sets:
    """Read splitwise-sim's table by model, hardware and devices; decodes are in the middle of their output."""
    times: dict[str, dict[Work, set[float]]] = defaultdict(lambda: defaultdict(set))
    columns = ("layer", *SPLITWISE_NUMBERS)
    for label, values in read_table(Path(path), columns, label=("model", "hardware")):
        prompt, batch, output, prompt_ms, token_ms, devices = values
        if CAPPED in label or (devices, batch) == OUT_OF_MEMORY:
            continue
        name, chunks = f"{label} tp{devices:g}", ((0, int(prompt)),) * int(batch)
        times[f"{name} prefill"][Work(chunks, 0, 0)].add(prompt_ms)
        times[f"{name} decode"][Work((), int(batch), int(batch * (prompt + output / 2)))].add(token_ms)
    return {name: make_medians(points) for name, points in sorted(times.items())}


def make_medians(points: Mapping[Work, set[float]]) -> list[Sample]:
    """Take the median of each point's distinct times, given in milliseconds."""
    return [Sample(work, quantile([*times], 0.5) * MILLISECOND) for work, times in points.items()]


def read_distserve(path: str) -> Sets:
    """Read DistServe's coefficients, and evaluate its formulas on a grid: what they say, not what was measured."""
    page = json.loads(read_text(Path(path)))
    if not isinstance(page, dict):
        raise InputError("is not a JSON object", file=path)
    sets: dict[str, list[Sample]] = {}
    for model, by_devices in page.items():
        for devices, terms in by_devices.items():
            name = f"{model.rpartition('/')[2]} tp{devices}"
            sets[f"{name} prefill"] = [evaluate_prefill(terms, *point) for point in PREFILL_GRID]
            sets[f"{name} decode"] = [evaluate_decode(terms, *point) for point in DECODE_GRID]
    return sets


PREFILL_GRID = [(length, count) for length in (64, 128, 256, 384, 512, 768, 1024, 1536, 2048) for count in (1, 2, 4)]
DECODE_GRID = [
    (context, batch) for context in (64, 128, 256, 512, 1024, 2048) for batch in (1, 4, 16, 48, 94, 128, 200)
]


def evaluate_prefill(terms: Mapping[str, list[float]], length: int, count: int) -> Sample:
    """Evaluate a + b x lengths + c x squared lengths."""
    constant, linear, square = terms["prefill"]
    time = constant + linear * length * count + square * length**2 * count
    return Sample(Work(((0, length),) * count, 0, 0), time * MILLISECOND)


def evaluate_decode(terms: Mapping[str, object], context: int, batch: int) -> Sample:
    """Evaluate a + b x contexts + c x batch, by the set of coefficients for the batch."""
    small = batch < float(str(terms["decoding_large_small_bs_threshold"]))
    coefficients = terms["decoding_smallbs" if small else "decoding_largebs"]
    assert isinstance(coefficients, list)
    constant, per_context, per_sequence = coefficients
    time = constant + per_context * context * batch + per_sequence * batch
    return Sample(Work((), batch, context * batch), time * MILLISECOND)
