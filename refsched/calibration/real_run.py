"""A real engine's run, read: what was asked of it, under which limits, and what its clients saw.

The folder is that of LLMServingSim's vLLM runs: meta.json (limits, KV pool), config.json (devices, memory),
requests.jsonl (lengths and times). Requests arrive when the engine queued them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from refsched.calibration.profile import read_text
from refsched.calibration.shapes import estimate_kv_tokens, get_shape
from refsched.errors import InputError
from refsched.model import Limits, Request, check_count
from refsched.units import parse_decimal, round_to_ticks
from refsched.workload.load import load_workload
from refsched.workload.offer import Offer

DEFAULT_BLOCK = 16
GIBIBYTE = 1 << 30


@dataclass(frozen=True, slots=True)
class Times:
    """Hold what one client saw, in seconds: time to first token, per further token (None for one), latency, end."""

    ttft: float
    tpot: float | None
    latency: float
    end: float


@dataclass(frozen=True, slots=True)
class Run:
    """Hold a real run: what was asked, under which limits, on how many devices, and what was measured."""

    name: str
    model: str
    hardware: str
    limits: Limits
    prefix_cache: bool
    tensor_parallel: int
    replicas: int
    offers: tuple[Offer, ...]
    measured: tuple[Times, ...]
    notes: tuple[str, ...]


def read_run(folder: str, workload: str | None = None) -> Run:
    """Read a run folder; `workload` is a workload file with prefix numbers for the same requests, in order.

    Raise InputError naming the file.
    """
    try:
        return make_run(Path(folder), workload)
    except InputError as error:
        raise error.at(file=str(Path(folder) / "meta.json")) from None


def make_run(path: Path, workload: str | None) -> Run:
    """Put a run together from its folder's files."""
    meta, rows = read_json(path / "meta.json"), read_lines(path / "requests.jsonl")
    asked = meta.get("engine_kwargs")
    if not isinstance(asked, Mapping):
        raise InputError("is missing", file=str(path / "meta.json"), field="engine_kwargs")
    config = path / "config.json"
    limits, cache, notes = read_limits(meta, asked, read_instance(config))
    pairs = zip(make_offers(rows, workload, limits), map(read_times, rows), strict=True)
    offers, measured = zip(*sorted(pairs, key=lambda pair: pair[0].at), strict=True)  # the simulator's order
    return Run(
        name=path.name,
        model=str(asked.get("model")),
        hardware=str(read_instance(config).get("hardware") or path.name.partition("__")[0]),
        limits=limits,
        prefix_cache=cache,
        tensor_parallel=check_count(asked.get("tensor_parallel_size") or 1, "tensor_parallel_size"),
        replicas=check_count(asked.get("data_parallel_size") or 1, "data_parallel_size"),
        offers=offers,
        measured=measured,
        notes=(*notes, *([] if workload else ["no prefix numbers: the prefix cache finds only what a request left"])),
    )


def read_json(path: Path) -> Mapping[str, object]:
    """Read a JSON object with exact decimals."""
    try:
        page = json.loads(read_text(path), parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not JSON: {error}", file=str(path)) from None
    if not isinstance(page, dict):
        raise InputError("is not a JSON object", file=str(path))
    return page


def read_lines(path: Path) -> list[Mapping[str, Decimal]]:
    """Read the requests in the file's order; raise InputError with the row where a number is missing."""
    fields = ("input_toks", "output_toks", "queued_ts", "first_token_ts", "last_token_ts")
    rows: list[Mapping[str, Decimal]] = []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        try:
            row = json.loads(line, parse_float=Decimal)
        except ValueError as error:
            raise InputError(f"is not JSON: {error}", file=str(path), row=number) from None
        missing = [field for field in fields if not isinstance(row.get(field), int | Decimal)]
        if missing:
            raise InputError("is not a number", file=str(path), row=number, field=missing[0])
        rows.append(row)
    if not rows:
        raise InputError("holds no requests", file=str(path))
    return rows


def read_instance(path: Path) -> Mapping[str, object]:
    """Read the first instance of a cluster's configuration; empty where there is no such file."""
    if not path.exists():
        return {}
    page = read_json(path)
    try:
        nodes = page["nodes"]
        assert isinstance(nodes, list)
        instance = nodes[0]["instances"][0]
    except (AssertionError, KeyError, IndexError, TypeError):
        raise InputError("names no instance", file=str(path), field="nodes") from None
    return instance if isinstance(instance, Mapping) else {}


def read_limits(
    meta: Mapping[str, object], asked: Mapping[str, object], instance: Mapping[str, object]
) -> tuple[Limits, bool, list[str]]:
    """Read the limits, and whether a prefix cache was on; the KV pool is estimated where it was not recorded."""
    cache = meta.get("kv_cache")
    recorded: Mapping[str, object] = cache if isinstance(cache, Mapping) else {}
    block, notes = check_count(recorded.get("block_size") or DEFAULT_BLOCK, "block_size"), []
    blocks = recorded.get("num_gpu_blocks")
    if blocks is None and (tokens := estimate_pool(str(asked.get("model")), instance)):
        blocks = tokens // block
        notes.append(f"KV pool not recorded: {tokens:,} tokens estimated from the memory beside the weights")
    limits = Limits(
        token_budget=check_count(asked.get("max_num_batched_tokens"), "max_num_batched_tokens"),
        max_seqs=check_count(asked.get("max_num_seqs"), "max_num_seqs"),
        block_size=block,
        num_blocks=None if blocks is None else check_count(blocks, "num_gpu_blocks"),
        max_len=None if asked.get("max_model_len") is None else check_count(asked["max_model_len"], "max_model_len"),
    )
    return limits, bool(recorded.get("enable_prefix_caching", True)), notes


def estimate_pool(model: str, instance: Mapping[str, object]) -> int:
    """Estimate the KV tokens of an instance from its memory; 0 where the configuration does not tell."""
    memory = instance.get("npu_mem")
    if not isinstance(memory, Mapping):
        return 0
    size, share = (
        parse_decimal(str(memory.get(name, default))) for name, default in (("mem_size", 0), ("mem_util", 1))
    )
    usable = int(size * GIBIBYTE * share)
    return estimate_kv_tokens(get_shape(model), usable, devices=check_count(instance.get("tp_size", 1), "tp_size"))


def make_offers(rows: Sequence[Mapping[str, Decimal]], workload: str | None, limits: Limits) -> tuple[Offer, ...]:
    """Offer each request when it was queued, with its prefix numbers where a workload file gives them."""
    first = min(row["queued_ts"] for row in rows)
    prefixes = read_prefixes(workload, rows, limits) if workload else [()] * len(rows)
    return tuple(
        Offer(
            round_to_ticks(Decimal(row["queued_ts"]) - first).ticks,
            Request(f"r{place}", int(row["input_toks"]), int(row["output_toks"]), prefix=prefix),
        )
        for place, (row, prefix) in enumerate(zip(rows, prefixes, strict=True))
    )


def find_workload(folder: str) -> str | None:
    """Find a workload file with prefix numbers in a run's folder or beside it that holds the same requests."""
    path = Path(folder)
    lengths = get_lengths(read_lines(path / "requests.jsonl"))
    for candidate in sorted([*path.glob("workload*.jsonl"), *path.parent.glob("workload*.jsonl")]):
        try:
            offers = load_workload(str(candidate)).offers
        except InputError:  # a workload of something else
            continue
        if [(offer.request.prompt, offer.request.output) for offer in offers] == lengths:
            return str(candidate)
    return None


def get_lengths(rows: Sequence[Mapping[str, Decimal]]) -> list[tuple[int, int]]:
    """Give each request's prompt and output."""
    return [(int(row["input_toks"]), int(row["output_toks"])) for row in rows]


def read_prefixes(workload: str, rows: Sequence[Mapping[str, Decimal]], limits: Limits) -> list[tuple[int, ...]]:
    """Take the prefix numbers of a workload's requests; raise InputError where they are not the same requests."""
    loaded = load_workload(workload)
    if [(offer.request.prompt, offer.request.output) for offer in loaded.offers] != get_lengths(rows):
        raise InputError("holds other requests than the run, or in another order", file=workload)
    if loaded.source.get("block_tokens") not in (None, limits.block_size):
        raise InputError(f"numbers blocks of {loaded.source['block_tokens']} tokens", file=workload)
    return [offer.request.prefix for offer in loaded.offers]


def read_times(row: Mapping[str, Decimal]) -> Times:
    """Take what was measured of one request; stamps of the engine only, which share a clock."""
    queued, first, last = (float(row[name]) for name in ("queued_ts", "first_token_ts", "last_token_ts"))
    further = int(row["output_toks"]) - 1
    return Times(first - queued, (last - first) / further if further > 0 else None, last - queued, last)
