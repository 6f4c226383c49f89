"""Step-time models: how long one iteration takes, from what it computes.

A model promises the affine contract [decision 10] or declares that it does not keep it. A token budget is only a
proxy for work [A16]; these models say what an iteration costs, and each says what it leaves out [B21].
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from pathlib import Path
from typing import Protocol

from refsched import spec
from refsched.errors import InputError
from refsched.model import Work, check_count
from refsched.simulation.cost_file import CALIBRATION_FORMAT, read_calibration
from refsched.units import TICKS_PER_SECOND, Ticks, Tokens, format_decimal, parse_time


class CostModel(Protocol):
    """Price an iteration in ticks.

    Where `affine` is true the model promises: for a fixed number of decodes and fixed chunk counts, `duration` is an
    integer constant plus integer slopes times `context` and each chunk's start. While a plan repeats, its iterations
    then last an arithmetic progression, given by the first two. Where it is false every iteration is priced itself.
    """

    @property
    def name(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def affine(self) -> bool: ...

    def duration(self, work: Work) -> Ticks:
        """Give the ticks that one iteration with this work takes; an empty one pays its overhead too."""
        ...

    def describe(self) -> Mapping[str, str]:
        """Give the parameters by name, as exact times in text."""
        ...


@dataclass(frozen=True, slots=True)
class UnitCost:
    """Let every iteration last one unit, shown as one second and never turned into milliseconds [A6b]."""

    name: str = "unit"
    label: str = "iterations are counted, not timed: one iteration is 1"
    affine: bool = True

    def duration(self, work: Work) -> Ticks:
        """Give one unit, whatever the work."""
        return TICKS_PER_SECOND

    def describe(self) -> Mapping[str, str]:
        """Give no parameters."""
        return {}


@dataclass(frozen=True, slots=True)
class ChunkCost:
    """Price an iteration as document B does: decodes together, the chunk's share of a full prefill, overhead [B3].

    Left out [B21]: mixed-batch efficiency, KV growth, later chunks attending to longer history, overlap, shapes.
    The shares telescope, so a prompt's chunks sum to the full prefill exactly, however it is cut [decision 9];
    rounding each share down to a tick is not affine in a chunk's start, so this model promises nothing.
    """

    decode: Ticks = 4 * 10**9
    full_prefill: Ticks = 64 * 10**9
    prompt: Tokens = 4096
    overhead: Ticks = 5 * 10**8
    name: str = "chunk"
    label: str = "document B's teaching model; its parameters are assumptions, not measurements"
    affine: bool = False

    def __post_init__(self) -> None:
        check_count(self.prompt, "prompt")
        for field in ("decode", "full_prefill", "overhead"):
            if getattr(self, field) < 0:
                raise InputError("a duration cannot be negative", field=field)

    def duration(self, work: Work) -> Ticks:
        """Give decode + overhead + the telescoped share of each chunk."""
        full, prompt = self.full_prefill, self.prompt
        shares = sum(full * (start + count) // prompt - full * start // prompt for start, count in work.chunks)
        return self.decode + self.overhead + shares

    def describe(self) -> Mapping[str, str]:
        """Give the four assumptions of document B."""
        times = {name: format_ticks(getattr(self, name)) for name in ("decode", "full_prefill", "overhead")}
        return times | {"prompt": str(self.prompt)}


@dataclass(frozen=True, slots=True)
class LinearCost:
    """Price an iteration linearly in its tokens, the KV tokens its decodes read, and chunk x history.

    Covered [B21]: KV growth and later chunks attending to longer history. Left out: mixed-batch efficiency, overlap
    of host and device, and everything that depends on shape.
    """

    name: str
    label: str
    overhead: Ticks
    per_prefill_token: Ticks
    per_decode: Ticks
    per_kv_token: Ticks
    per_chunk_history: Ticks  # for each (token of a chunk) x (token computed before the chunk)

    @property
    def affine(self) -> bool:
        """Promise the affine contract."""
        return True

    def duration(self, work: Work) -> Ticks:
        """Give the sum of the five terms."""
        total = self.overhead + self.per_decode * work.decodes + self.per_kv_token * work.context
        for start, count in work.chunks:
            total += (self.per_prefill_token + self.per_chunk_history * start) * count
        return total

    def describe(self) -> Mapping[str, str]:
        """Give the five coefficients."""
        return {name: format_ticks(getattr(self, name)) for name in COEFFICIENTS}


COEFFICIENTS = tuple(field.name for field in fields(LinearCost))[2:]
COST_FORMAT = "refsched-cost/1"
BUILT_IN = ("unit", "chunk", "a100-8b")


def format_ticks(ticks: Ticks) -> str:
    """Write a duration exactly, in microseconds."""
    return f"{format_decimal(ticks) if ticks % 10**6 else ticks // 10**6} {'ps' if ticks % 10**6 else 'us'}"


def get_cost_model(name: str) -> CostModel:
    """Find a built-in model by name, or read one from a JSON file; raise InputError otherwise."""
    if name == "unit":
        return UnitCost()
    if name == "chunk":
        return ChunkCost()
    if name in BUILT_IN:
        return parse_file(spec.read_text(f"costs/{name}.json"), name)
    if not Path(name).is_file():
        raise InputError(
            f"no cost model and no file named {name!r}; built in are {', '.join(BUILT_IN)}", field="--cost"
        )
    try:
        text = Path(name).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", file=name) from None
    return parse_file(text, name)


def parse_file(text: str, file: str) -> CostModel:
    """Read a linear model or a calibration from JSON text; raise InputError naming the file and the field."""
    page = parse_page(text, file)
    return read_calibration(page, file) if page.get("schema") == CALIBRATION_FORMAT else read_linear(page, file)


def parse_page(text: str, file: str) -> Mapping[str, object]:
    """Read a JSON object with exact decimals; raise InputError for anything else."""
    try:
        page = json.loads(text, parse_float=Decimal, parse_constant=Decimal)
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not JSON: {error}", file=file) from None
    return page if isinstance(page, dict) else {}


def read_linear(page: Mapping[str, object], file: str) -> LinearCost:
    """Read a linear model; raise InputError naming the field."""
    if page.get("format") != COST_FORMAT:
        formats = f'"format" is not "{COST_FORMAT}" and "schema" is not "{CALIBRATION_FORMAT}"'
        raise InputError(f"is not a cost model: {formats}", file=file)
    unknown = sorted(page.keys() - {"format", "name", "label", *COEFFICIENTS})
    if unknown:
        raise InputError("is not a field of a linear cost model", file=file, field=unknown[0])
    times = {field: read_coefficient(page, field, file) for field in COEFFICIENTS}
    if times["overhead"] == 0 and times["per_prefill_token"] == 0:
        raise InputError("every iteration must take time: overhead or per_prefill_token must be above 0", file=file)
    return LinearCost(str(page.get("name", file)), str(page.get("label", "from a file")), **times)


def read_coefficient(page: Mapping[str, object], field: str, file: str) -> Ticks:
    """Read one coefficient, a time such as "93.58 us"; raise InputError if it is missing, negative or no time."""
    value = page.get(field)
    if not isinstance(value, str):
        raise InputError(f'{value!r} is not a time such as "93.58 us"', file=file, field=field)
    try:
        ticks, rounded = parse_time(value)
    except InputError as error:
        raise error.at(file=file, field=field) from None
    if ticks < 0 or rounded:
        problem = "is negative" if ticks < 0 else "is not a whole number of picoseconds"
        raise InputError(f"{value!r} {problem}", file=file, field=field)
    return ticks
