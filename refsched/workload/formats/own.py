"""Our own workload files: JSON lines, or CSV with a header; nothing but the fields listed here.

`arrival_s` (seconds, exact decimal), `prompt_tokens` and `output_tokens` are needed. `id`, `priority`, `group`,
`cancel_s` (on the clock of `arrival_s`, not before it) and `hash_ids` with `block_tokens` may be there: one hash id per
block of the prompt, the last one for its partial block where there is one; in CSV they have spaces between.
"""

from refsched.errors import InputError
from refsched.model import LARGEST_COUNT
from refsched.units import Ticks, Tokens
from refsched.workload.formats.blocks import check_hashes
from refsched.workload.formats.cells import Record, has, read_count, read_hashes, read_name, read_time, show
from refsched.workload.formats.layout import REFUSED, Layout, Row

NEEDS = ("arrival_s", "prompt_tokens", "output_tokens")
MAY = frozenset({"id", "priority", "group", "cancel_s", "hash_ids", "block_tokens"})


def read_own(record: Record) -> Row:
    """Read one row of ours; raise InputError naming the field."""
    at, rounded = read_time(record, "arrival_s")
    prompt, output = read_count(record, "prompt_tokens"), read_count(record, "output_tokens")
    if record.cells.keys().isdisjoint(MAY):
        return Row(at, prompt, output, rounded)
    priority = read_count(record, "priority", -LARGEST_COUNT) if has(record, "priority") else 0
    hashes, block_tokens = _read_blocks(record, prompt)
    return Row(
        at, prompt, output, rounded, read_name(record, "id"), priority, read_name(record, "group"),
        _read_cancel(record, at), hashes, block_tokens,
    )  # fmt: skip


def _read_blocks(record: Record, prompt: Tokens) -> tuple[tuple[int, ...], Tokens]:
    given = [has(record, field) for field in ("hash_ids", "block_tokens")]
    if not any(given):
        return (), 0
    if not all(given):
        raise InputError("hash_ids and block_tokens need each other", field="hash_ids")
    block_tokens = read_count(record, "block_tokens")
    return check_hashes(read_hashes(record, "hash_ids"), prompt, block_tokens, "hash_ids"), block_tokens


def _read_cancel(record: Record, at: Ticks) -> Ticks | None:
    if not has(record, "cancel_s"):
        return None
    cancel_at = read_time(record, "cancel_s").ticks
    if cancel_at < at:
        raise InputError(f"{show(record.cells['cancel_s'])} is before the arrival", field="cancel_s")
    return cancel_at


LAYOUTS = (
    Layout("refsched-csv", "csv", NEEDS, "arrival_s", read_own, MAY, REFUSED),
    Layout("refsched-jsonl", "jsonl", NEEDS, "arrival_s", read_own, MAY, REFUSED),
)
