"""Formats of a time and two lengths: Vidur, Splitwise's simulator, LLMServingSim; and lengths without times."""

from collections.abc import Callable

from refsched.errors import InputError
from refsched.units import TICKS_PER_SECOND, Ticks
from refsched.workload.formats.cells import Record, has, read_count, read_name, read_time
from refsched.workload.formats.layout import Layout, Row


def make_reader(time: str, prompt: str, output: str, unit: Ticks = TICKS_PER_SECOND) -> Callable[[Record], Row]:
    """Make the reader of a format with these names; its times are in units of `unit` ticks."""

    def read(record: Record) -> Row:
        at, rounded = read_time(record, time, unit)
        return Row(at, read_count(record, prompt), read_count(record, output), rounded)

    return read


def read_splitwise(record: Record) -> Row:
    """Read one row of Splitwise's simulator; raise InputError if it stands for more than one request."""
    if has(record, "batch_size") and read_count(record, "batch_size") != 1:
        raise InputError("only rows of one request are read", field="batch_size")
    row = make_reader("arrival_timestamp", "prompt_size", "token_size")(record)
    return row._replace(id=read_name(record, "request_id"))


def read_lengths_row(record: Record) -> Row:
    """Read one row of lengths; it has no time."""
    return Row(0, read_count(record, "num_prefill_tokens"), read_count(record, "num_decode_tokens"))


_VIDUR = ("arrived_at", "num_prefill_tokens", "num_decode_tokens")
_SPLITWISE = ("arrival_timestamp", "prompt_size", "token_size")
_SPLITWISE_MAY = frozenset({"request_id", "batch_size"})
_SERVINGSIM = ("arrival_time_ns", "input_toks", "output_toks")

LAYOUTS = (
    Layout("vidur-csv", "csv", _VIDUR, "arrived_at", make_reader(*_VIDUR)),
    Layout("splitwise-csv", "csv", _SPLITWISE, "arrival_timestamp", read_splitwise, _SPLITWISE_MAY),
    Layout("llmservingsim-jsonl", "jsonl", _SERVINGSIM, "arrival_time_ns", make_reader(*_SERVINGSIM, unit=10**3)),
    Layout("lengths-csv", "csv", ("num_prefill_tokens", "num_decode_tokens"), "", read_lengths_row),
)
