"""Kernel times from an LLMServingSim profile folder: tables by operator, composed into iterations.

An iteration is embedding + layers x (norms + matrices + rotation + activation + attention) + last norm, by tokens, and
logits + sampling by sequences. Attention was measured for one chunk (or none) beside equal decodes, as one kernel
over both. Two readings: `additive` takes only the points without a mix and adds prefill and decode attention (kernels
run apart); `as run` takes the mixed points as they are. Points that do not fit the KV capacity are left out.
"""

import csv
import math
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from refsched.calibration.forms import Knots, Measured, interpolate
from refsched.calibration.samples import Sample
from refsched.calibration.shapes import Shape, get_shape
from refsched.errors import InputError
from refsched.model import Work

MICROSECOND = 1e-6
PER_LAYER: Mapping[str, int] = {  # operator by tokens: how often in a layer
    "layernorm": 2,
    "qkv_proj": 1,
    "qk_norm": 1,
    "rotary_emb": 1,
    "o_proj": 1,
    "gate_up_proj": 1,
    "act_fn": 1,
    "down_proj": 1,
}
PER_STEP = ("embedding", "final_layernorm")
BY_TOKENS = ("layer", "tokens", "time_us")
BY_SEQUENCES = ("layer", "sequences", "time_us")
Key = tuple[int, int, int, int]  # chunk, history, decodes, context of each
ATTENTION_COLUMNS = ("prefill_chunk", "kv_prefill", "n_decode", "kv_decode", "time_us")
EXPERT_COLUMNS = ("tokens", "activated_experts", "time_us")
KNOT_STEP, KNOT_AFTER, SMALL_KNOTS = 128, 16, (1, 8, 16, 32, 48, 64, 96)


@dataclass(frozen=True, slots=True)
class Profile:
    """Hold a profile: seconds of token-wise work per layer, of logits per iteration, and of attention per layer."""

    device: str
    model: str
    shape: Shape
    measured: Measured  # every token count that was measured
    attention: Mapping[Key, float]


def read_profile(folder: str, degree: int = 1) -> Profile:
    """Read the tables for a degree of tensor parallelism; raise InputError naming the file where one does not do."""
    path = Path(folder)
    facts = read_facts(path / "meta.yaml")
    shape = get_shape(facts["model"])
    dense = read_layers(path / f"tp{degree}_dense.csv", BY_TOKENS)
    experts = path / f"tp{degree}_moe.csv"
    if experts.exists():
        dense["experts"] = read_experts(experts, shape)
    rows = add_knots([*read_layers(path / f"tp{degree}_per_sequence.csv", BY_SEQUENCES).values()])
    table = add_knots([scale(dense[name], PER_LAYER.get(name, 1)) for name in dense if name not in PER_STEP])
    once = add_knots([dense[name] for name in PER_STEP if name in dense])
    table = add_knots([table, scale(once, 1 / shape.layers)]) if once else table
    attention = read_attention(path / f"tp{degree}_attention.csv")
    return Profile(facts.get("gpu", path.name), facts["model"], shape, Measured(table, rows, shape.layers), attention)


def read_facts(path: Path) -> dict[str, str]:
    """Read the top level `name: value` lines of a YAML file that holds nothing harder there; `model` must be one."""
    pairs = (line.partition(":") for line in read_text(path).splitlines() if line[:1].isalpha())
    facts = {name: value.strip().strip("'\"") for name, _, value in pairs}
    if not facts.get("model"):
        raise InputError("is missing", file=str(path), field="model")
    return facts


def read_text(path: Path) -> str:
    """Read a text file; raise InputError where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", file=str(path)) from None


def read_table(
    path: Path, columns: Sequence[str], label: Sequence[str] = ("layer",)
) -> Iterator[tuple[str, list[float]]]:
    """Give each row's label (the `label` columns that it has) and its numbers; raise InputError with the row."""
    reader = csv.DictReader(read_text(path).splitlines())
    names = reader.fieldnames or ()
    numeric = [name for name in columns if name != "layer"]
    missing = [name for name in (*numeric, *(label if len(numeric) < len(columns) else ())) if name not in names]
    if missing:
        raise InputError("is missing", file=str(path), row=1, field=missing[0])
    for number, row in enumerate(reader, start=2):
        for name in numeric:
            if not is_number(row[name]):
                raise InputError(f"{row[name]!r} is not a number", file=str(path), row=number, field=name)
        yield " ".join(row[name] for name in label if name in row), [float(row[name]) for name in numeric]


def is_number(text: str | None) -> bool:
    """Tell whether a cell is a finite number of at least 0."""
    try:
        return text is not None and 0 <= float(text) < math.inf
    except ValueError:
        return False


def read_layers(path: Path, columns: Sequence[str]) -> dict[str, Knots]:
    """Read a table by operator, in seconds."""
    found: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for name, (count, time) in read_table(path, columns):
        found[name].append((int(count), time * MICROSECOND))
    if not found:
        raise InputError("holds no rows", file=str(path))
    return {name: tuple(sorted(knots)) for name, knots in found.items()}


def read_experts(path: Path, shape: Shape) -> Knots:
    """Read the experts' table; the experts that tokens activate are expected to be chosen evenly."""
    by_tokens: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for _, (tokens, active, time) in read_table(path, EXPERT_COLUMNS):
        by_tokens[int(tokens)].append((int(active), time * MICROSECOND))
    share = shape.experts_per_token / shape.experts
    expected = {tokens: round(shape.experts * (1 - (1 - share) ** tokens)) for tokens in by_tokens}
    return tuple(
        (tokens, interpolate(tuple(sorted(by_tokens[tokens])), expected[tokens])) for tokens in sorted(by_tokens)
    )


def read_attention(path: Path) -> dict[Key, float]:
    """Read the attention kernel's times, by (chunk, history, decodes, context)."""
    rows = (values for _, values in read_table(path, ATTENTION_COLUMNS))
    return {(int(a), int(b), int(c), int(d)): time * MICROSECOND for a, b, c, d, time in rows}


def scale(knots: Knots, times: float) -> Knots:
    """Multiply a table's seconds."""
    return tuple((count, times * seconds) for count, seconds in knots)


def add_knots(tables: Sequence[Knots]) -> Knots:
    """Add tables up at every knot that any of them has."""
    counts = sorted({count for knots in tables for count, _ in knots})
    return tuple((count, sum(interpolate(knots, count) for knots in tables)) for count in counts)


# FROM A PROFILE TO ITERATIONS


def thin_out(measured: Measured) -> Measured:
    """Keep the knots a calibration would measure: few below 128 tokens, then both sides of every tile of 128."""
    most = measured.table[-1][0]
    tiles = range(KNOT_STEP, most + 1, KNOT_STEP)
    counts = sorted({*SMALL_KNOTS, *tiles, *(count + KNOT_AFTER for count in tiles if count + KNOT_AFTER <= most)})
    table = tuple((count, interpolate(measured.table, count)) for count in counts)
    return Measured(table, measured.rows, measured.layers)


def make_work(key: Key) -> Work:
    """Give a measured attention point as work."""
    chunk, history, decodes, context = key
    return Work(((history, chunk),) if chunk else (), decodes, decodes * context)


def is_feasible(key: Key, capacity: int | None, budget: int) -> bool:
    """Tell whether a point fits the KV pool and the token table."""
    chunk, history, decodes, context = key
    fits = capacity is None or chunk + history + decodes * (context + 1) <= capacity
    return fits and 0 < chunk + decodes <= budget


def make_samples(profile: Profile, keys: Sequence[Key], additive: bool = False) -> list[Sample]:
    """Compose iterations of one layer's share from the points `keys`, measured mixed or (additive) added up."""
    times = [add_attention(profile, key) if additive else profile.attention[key] for key in keys]
    works = [make_work(key) for key in keys]
    return [Sample(work, profile.measured.known(work) + time) for work, time in zip(works, times, strict=True)]


def add_attention(profile: Profile, key: Key) -> float:
    """Add the times of a prefill kernel and a decode kernel."""
    chunk, history, decodes, context = key
    apart = ((chunk, history, 0, 0),) if chunk else ()
    parts = (*apart, (0, 0, decodes, context)) if decodes else apart
    return sum(profile.attention[part] for part in parts)


def choose_keys(profile: Profile, capacity: int | None, apart: bool) -> list[Key]:
    """List the feasible points in order; `apart` keeps those whose prefill and decode parts were measured apart too."""
    budget = profile.measured.table[-1][0]
    keys = sorted(key for key in profile.attention if is_feasible(key, capacity, budget))
    return [key for key in keys if is_apart(profile, key)] if apart else keys


def is_apart(profile: Profile, key: Key) -> bool:
    """Tell whether the parts of a point were measured apart."""
    chunk, history, decodes, context = key
    prefill = not chunk or (chunk, history, 0, 0) in profile.attention
    return prefill and (not decodes or (0, 0, decodes, context) in profile.attention)


def draw(keys: Sequence[Key], count: int, seed: int) -> tuple[list[int], list[int]]:
    """Draw the places of `count` training points, as many of each kind as there are kinds; the others are held out."""
    kinds: dict[tuple[bool, bool], list[int]] = defaultdict(list)
    for place, (chunk, _, decodes, _) in enumerate(keys):
        kinds[bool(chunk), bool(decodes)].append(place)
    random_source = random.Random(seed)
    chosen = {
        place
        for places in kinds.values()
        for place in random_source.sample(places, min(len(places) // 2, count // len(kinds)))
    }
    return sorted(chosen), [place for place in range(len(keys)) if place not in chosen]
