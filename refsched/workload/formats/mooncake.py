"""Traces that publish prefixes as hash ids: same key names, other units, so each form is told by its keys.

- Mooncake (and Dynamo's in the same form): `timestamp` whole milliseconds, 512 tokens a block, an id for the partial
  last block too.
- Qwen-Bailian: the same names with `chat_id`; `timestamp` in seconds, 16 tokens a block.
- vLLM runs of LLMServingSim in blocks: `timestamp_ns`, 16 tokens a block, ids for full blocks only.
"""

from refsched.errors import InputError
from refsched.units import Ticks, Tokens
from refsched.workload.formats.blocks import check_hashes
from refsched.workload.formats.cells import Record, get_number, read_count, read_hashes, read_name, read_time, show
from refsched.workload.formats.layout import Layout, Row

MOONCAKE_BLOCK: Tokens = 512
SMALL_BLOCK: Tokens = 16
_MILLISECOND: Ticks = 10**9
_NANOSECOND: Ticks = 10**3
_LENGTHS = ("input_length", "output_length", "hash_ids")


def read_mooncake(record: Record) -> Row:
    """Read one Mooncake row; raise InputError if its time is no whole number of milliseconds."""
    stamp = get_number(record, "timestamp")
    if not isinstance(stamp, int):
        raise InputError(f"{show(stamp)} is not a whole number of milliseconds", field="timestamp")
    return _read(record, read_time(record, "timestamp", _MILLISECOND).ticks, MOONCAKE_BLOCK)


def read_bailian(record: Record) -> Row:
    """Read one Qwen-Bailian row: seconds, and the request's type as its group."""
    at, rounded = read_time(record, "timestamp")
    return _read(record, at, SMALL_BLOCK)._replace(rounded=rounded, group=read_name(record, "type"))


def read_full_blocks(record: Record) -> Row:
    """Read one row whose ids stand for full blocks only."""
    at = read_time(record, "timestamp_ns", _NANOSECOND).ticks
    prompt, hashes = read_count(record, "input_length"), read_hashes(record, "hash_ids")
    if len(hashes) != prompt // SMALL_BLOCK:
        full = f"{prompt} tokens have {prompt // SMALL_BLOCK} full blocks of {SMALL_BLOCK}"
        raise InputError(f"{len(hashes)} ids, but {full}", field="hash_ids")
    return Row(at, prompt, read_count(record, "output_length"), hashes=hashes, block_tokens=SMALL_BLOCK)


def _read(record: Record, at: Ticks, block_tokens: Tokens) -> Row:
    prompt, output = read_count(record, "input_length"), read_count(record, "output_length")
    hashes = check_hashes(read_hashes(record, "hash_ids"), prompt, block_tokens, "hash_ids")
    return Row(at, prompt, output, hashes=hashes, block_tokens=block_tokens)


LAYOUTS = (
    Layout(
        "mooncake-jsonl", "jsonl", ("timestamp", *_LENGTHS), "timestamp", read_mooncake,
        note="Mooncake form: times in milliseconds, 512 tokens a block.",
    ),
    Layout(
        "bailian-jsonl", "jsonl", ("chat_id", "timestamp", *_LENGTHS), "timestamp", read_bailian,
        frozenset({"type"}), note="Qwen-Bailian form: times in seconds, 16 tokens a block.",
    ),
    Layout(
        "llmservingsim-blocks-jsonl", "jsonl", ("timestamp_ns", *_LENGTHS), "timestamp_ns", read_full_blocks,
        note="LLMServingSim form: times in nanoseconds, 16 tokens a block, full blocks only.",
    ),
)  # fmt: skip
