"""A real engine's run, replayed: the same requests through the scheduler's rule under a cost model.

The run folder is that of LLMServingSim's vLLM runs: meta.json (limits, KV pool), config.json (devices, memory),
requests.jsonl (lengths and times). Requests arrive when the engine queued them. A time to first token counts from
when the engine queued a request, which happens between iterations; so the simulated one counts from the first
boundary at which the request is seen.
"""

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from refsched.calibration.profile import read_text
from refsched.calibration.samples import quantile
from refsched.calibration.shapes import estimate_kv_tokens, get_shape
from refsched.dialect import get_dialect
from refsched.errors import InputError
from refsched.model import Event, Iteration, Limits, Request, check_count
from refsched.record import Record
from refsched.scheduling.engine import ReferenceEngine
from refsched.simulation.cost_fitted import FittedCost, set_overhead
from refsched.simulation.leap import leap
from refsched.units import TICKS_PER_SECOND, Ticks, round_to_ticks
from refsched.workload.load import load_workload
from refsched.workload.offer import Offer

DEFAULT_BLOCK = 16
GIBIBYTE = 1 << 30
FITTED_ON = 100
LONGEST_OVERHEAD = 0.2  # seconds per iteration: beyond it the profile is of something else
SEARCHES = 14


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


@dataclass(frozen=True, slots=True)
class Summary:
    """Hold the numbers that are compared, in seconds."""

    mean_ttft: float
    p95_ttft: float
    mean_tpot: float
    makespan: float


# READING A RUN


def read_run(folder: str, workload: str | None = None) -> Run:
    """Read a run folder; `workload` is a workload file with prefix numbers for the same requests, in order."""
    path = Path(folder)
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
        tensor_parallel=int(asked.get("tensor_parallel_size") or 1),
        replicas=int(asked.get("data_parallel_size") or 1),
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
    block, notes = int(str(recorded.get("block_size") or DEFAULT_BLOCK)), []
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
    usable = int(Decimal(str(memory["mem_size"])) * GIBIBYTE * Decimal(str(memory.get("mem_util", 1))))
    return estimate_kv_tokens(get_shape(model), usable, devices=int(str(instance.get("tp_size", 1))))


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


# SIMULATING IT


class Boundaries:
    """Collect when each iteration started and ended."""

    def __init__(self) -> None:
        self.starts: list[Ticks] = []
        self.ends: list[Ticks] = []

    def on_event(self, event: Event) -> None:
        """Take no notice."""

    def on_iteration(self, iteration: Iteration) -> None:
        """Note one iteration."""
        self.starts.append(iteration.start)
        self.ends.append(iteration.end)

    def see(self, at: Ticks) -> Ticks:
        """Give when something that comes at `at` is seen: at once between iterations, else at the running one's end."""
        place = bisect_right(self.starts, at) - 1
        return max(at, self.ends[place]) if place >= 0 else at


def replay(run: Run, cost: FittedCost, dialect: str) -> tuple[Times, ...]:
    """Simulate the run and give what each client would have seen, by the engine's own stamps."""
    boundaries = Boundaries()
    engine = ReferenceEngine(get_dialect(dialect, {"prefix_cache": run.prefix_cache}), run.limits)
    result = leap(engine, run.limits, cost, run.offers, (boundaries,))
    return tuple(time_record(record, boundaries) for record in result.records)


def time_record(record: Record, boundaries: Boundaries) -> Times:
    """Give a simulated request's times; raise InputError where it got no token."""
    if record.server is None or record.server.first_token is None or record.ended is None:
        raise InputError(f"request {record.id} got no token in the simulation")
    queued, first, last = boundaries.see(record.planned or 0), record.server.first_token, record.ended
    further = sum(delivery.tokens or 0 for delivery in record.deliveries) - 1
    seconds = [ticks / TICKS_PER_SECOND for ticks in (first - queued, last - first, last - queued, last)]
    return Times(seconds[0], seconds[1] / further if further > 0 else None, seconds[2], seconds[3])


def summarise(times: Sequence[Times], start: float) -> Summary:
    """Give the numbers that are compared; the makespan runs from `start`, the first arrival, to the last token."""
    ttfts, tpots = [each.ttft for each in times], [each.tpot for each in times if each.tpot is not None]
    last = max(each.end for each in times)
    return Summary(sum(ttfts) / len(ttfts), quantile(ttfts, 0.95), sum(tpots) / len(tpots), last - start)


def get_start(run: Run) -> float:
    """Give the first queueing on the measured clock."""
    return min(each.end - each.latency for each in run.measured)


def fit_overhead(run: Run, cost: FittedCost, dialect: str, first: int = FITTED_ON) -> float:
    """Find the seconds per iteration with which the first arrivals take as long from first to last token as measured.

    Later arrivals are simulated too, for they compete, but only the first are looked at. Times to first token are not:
    the first iterations of a real run are slow once, and everybody who waits for them would count it.
    """
    goal = sum(map(get_decode_time, run.measured[:first]))
    low, high = 0.0, LONGEST_OVERHEAD
    for _ in range(SEARCHES):
        middle = (low + high) / 2
        times = replay(run, set_overhead(cost, round(middle * TICKS_PER_SECOND)), dialect)
        low, high = (middle, high) if sum(map(get_decode_time, times[:first])) < goal else (low, middle)
    return (low + high) / 2


def get_decode_time(times: Times) -> float:
    """Give the seconds from a request's first token to its last."""
    return times.latency - times.ttft
