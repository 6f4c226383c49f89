"""BurstGPT: the published CSV, read by column name, and its JSON form with other names; times in seconds.

A row without response tokens is a failed call, a row without request tokens has nothing to compute: both are left out
and counted. The group of a request is its log type.
"""

from refsched.workload.formats.cells import Record, read_count, read_name, read_time
from refsched.workload.formats.layout import Layout, Row, Skip

FAILED = Skip("rows without response tokens (failed calls), left out")
NO_PROMPT = Skip("rows without request tokens, left out")


def read_csv_row(record: Record) -> Row | Skip:
    """Read one row of the published CSV."""
    return _read(record, "Timestamp", "Request tokens", "Response tokens", "Log Type")


def read_json_row(record: Record) -> Row | Skip:
    """Read one row of the JSON form."""
    return _read(record, "request_arrival_ts_s", "input_tokens", "output_tokens", "log_type")


def _read(record: Record, time: str, prompt: str, output: str, group: str) -> Row | Skip:
    at, rounded = read_time(record, time)
    prompt_tokens, output_tokens = read_count(record, prompt, 0), read_count(record, output, 0)
    if not output_tokens:
        return FAILED
    if not prompt_tokens:
        return NO_PROMPT
    return Row(at, prompt_tokens, output_tokens, rounded, group=read_name(record, group))


LAYOUTS = (
    Layout(
        "burstgpt-csv", "csv", ("Timestamp", "Request tokens", "Response tokens"), "Timestamp", read_csv_row,
        frozenset({"Log Type"}),
    ),
    Layout(
        "burstgpt-jsonl", "jsonl", ("request_arrival_ts_s", "input_tokens", "output_tokens"), "request_arrival_ts_s",
        read_json_row, frozenset({"log_type"}),
    ),
)  # fmt: skip
