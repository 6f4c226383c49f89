"""AIPerf's records: one JSON object a line, with the metrics of one request in units for display."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

from refsched.record import Delivery, Outcome, Record
from refsched.results.fields import Fields, to_fields
from refsched.results.load import read_lines
from refsched.results.rows import Row, make_deliveries, to_ticks
from refsched.results.run import CUT
from refsched.results.sse import Stream, make_stream

NS = Decimal("1e-9")
MS = Decimal("1e-3")
SOURCES = (("usage_completion_tokens", "usage"), ("output_sequence_length", "retokenised"))


@dataclass(frozen=True, slots=True)
class Entry:
    """Hold one line: the request, the metric values under their tags, and its times in nanoseconds."""

    row: Row
    tags: Mapping[str, Decimal | tuple[Decimal, ...]]
    units: Mapping[str, str]
    start: int
    end: int
    issued: int | None
    phase: str
    source: str | None = None
    whole: bool | None = None  # None: the file does not show it

    def value(self, tag: str) -> Decimal | None:
        """Give the one value under a tag."""
        value = self.tags.get(tag)
        return value if isinstance(value, Decimal) else None


def is_record(data: Mapping[str, object]) -> bool:
    """Recognise a line of records by its fields."""
    meta = data.get("metadata")
    return isinstance(meta, dict) and "request_start_ns" in meta and ("metrics" in data or "responses" in data)


def read_entries(path: Path) -> list[Entry]:
    """Read all lines of the profiled phase; raise InputError for a line that is no record."""
    entries = [read_entry(to_fields(value, str(path), row)) for row, value in read_lines(path)]
    return mark_whole([entry for entry in entries if entry.phase != "warmup"])


def read_entry(fields: Fields) -> Entry:
    """Read one line."""
    meta = fields.inside("metadata")
    metrics = fields.find_inside("metrics")
    tags, units = read_tags(metrics) if metrics else ({}, {})
    failed = fields.get("error") is not None
    start, end = meta.count("request_start_ns"), meta.count("request_end_ns")
    if end < start:
        meta.complain("request_end_ns", "is before request_start_ns")
    issued = meta.find_count("credit_issued_ns")
    if not failed and metrics is not None and "request_latency" not in tags:
        metrics.complain("request_latency", "is missing")
    row = make_row(fields, meta, tags, failed)
    phase = meta.text("benchmark_phase") or "profiling"
    source = next((name for tag, name in SOURCES if tag in tags), None)
    return Entry(row, tags, units, start, end, issued, phase, source)


def read_tags(metrics: Fields) -> tuple[dict[str, Decimal | tuple[Decimal, ...]], dict[str, str]]:
    """Read the values and units of the metrics of a request."""
    tags: dict[str, Decimal | tuple[Decimal, ...]] = {}
    units = {}
    for tag in metrics.data:
        metric = metrics.inside(tag)
        value = metric.get("value")
        tags[tag] = read_list(metric) if isinstance(value, list) else metric.number("value")
        units[tag] = metric.text("unit") or ""
    return tags, units


def read_list(metric: Fields) -> tuple[Decimal, ...]:
    """Read a list of values, such as the gaps between chunks."""
    return tuple(metric.times("value"))


def make_row(fields: Fields, meta: Fields, tags: Mapping[str, object], failed: bool) -> Row:
    """Make the row of a request, in seconds."""
    one = {tag: value for tag, value in tags.items() if isinstance(value, Decimal)}
    gaps = tags.get("inter_chunk_latency")
    issued = meta.find_count("credit_issued_ns")
    tokens = next((one[tag] for tag, _ in SOURCES if tag in one), None)
    prompt = one.get("usage_prompt_tokens", one.get("input_sequence_length", one.get("error_isl")))
    return Row(
        id=meta.text("x_request_id") or f"{meta.count('session_num')}",
        ok=not failed,
        prompt=None if prompt is None else int(prompt),
        output=None if tokens is None else int(tokens),
        start=meta.number("request_start_ns") * NS,
        wait=None if issued is None else (meta.number("request_start_ns") - issued) * NS,
        first=scale(one.get("time_to_first_token")),
        gaps=tuple(gap * MS for gap in gaps) if isinstance(gaps, tuple) else None,
        latency=scale(one.get("request_latency")),
        reason=describe_error(fields) if failed else None,
    )


def scale(milliseconds: Decimal | None) -> Decimal | None:
    """Turn milliseconds into seconds."""
    return None if milliseconds is None else milliseconds * MS


def describe_error(fields: Fields) -> str:
    """Say how a request failed."""
    error = fields.find_inside("error")
    if error is None:
        return "failed"
    return f"{error.get('code') or ''} {error.get('type') or ''}: {error.get('message') or ''}".strip()[:200]


def mark_whole(entries: Sequence[Entry]) -> list[Entry]:
    """Where the server reported usage for some successes, one without it was cut before its end."""
    ok = [entry for entry in entries if entry.row.ok]
    told = any("usage_completion_tokens" in entry.tags for entry in ok)
    known = told and any("usage_completion_tokens" not in entry.tags for entry in ok)
    if not told:
        return list(entries)
    return [replace(e, whole="usage_completion_tokens" in e.tags) if e.row.ok and known else e for e in entries]


def make_records(entries: Sequence[Entry], raws: Mapping[str, "Raw"]) -> Iterator[Record]:
    """Make Records; times count from the first send. Where the raw export is there, it gives every chunk."""
    origin = min((entry.start for entry in entries), default=0)
    for entry in entries:
        start = (entry.start - origin) * NS
        row, raw = entry.row, raws.get(entry.row.id)
        cut = row.ok and (entry.whole is False if raw is None else not raw.is_whole())
        yield Record(
            id=row.id,
            prompt_tokens=row.prompt,
            outcome=Outcome.COMPLETED if row.ok and not cut else Outcome.ERROR,
            planned=None if row.wait is None else to_ticks(start - row.wait),
            sent=to_ticks(start),
            deliveries=make_deliveries(row, start) if raw is None else to_deliveries(raw.stream, start),
            ended=to_ticks((entry.end - origin) * NS),
            reason=CUT if cut else row.reason,
            output_tokens=row.output,
            token_source=entry.source,
        )


# THE RAW EXPORT


@dataclass(frozen=True, slots=True)
class Raw:
    """Hold one request of the raw export: its stream, with times since its send."""

    id: str
    stream: Stream
    failed: bool
    start: int
    end: int

    def is_whole(self) -> bool:
        """Say whether the server ended the stream."""
        return not self.failed and self.stream.is_whole()


def make_raw_records(raws: Sequence["Raw"]) -> Iterator[Record]:
    """Make Records of the raw export alone; without usage, the tokens are not known."""
    origin = min((raw.start for raw in raws), default=0)
    for raw in raws:
        start = (raw.start - origin) * NS
        usage = raw.stream.completion_tokens()
        cut = not raw.failed and not raw.is_whole()
        yield Record(
            id=raw.id,
            prompt_tokens=None,
            outcome=Outcome.COMPLETED if raw.is_whole() else Outcome.ERROR,
            sent=to_ticks(start),
            deliveries=to_deliveries(raw.stream, start),
            ended=to_ticks((raw.end - origin) * NS),
            reason=CUT if cut else "the request failed" if raw.failed else None,
            output_tokens=usage,
            token_source=None if usage is None else "usage",
        )


def read_raw(path: Path) -> list[Raw]:
    """Read the raw export, with every chunk of every response."""
    entries = []
    for row, value in read_lines(path):
        fields = to_fields(value, str(path), row)
        meta = fields.inside("metadata")
        if meta.text("benchmark_phase") != "warmup":
            entries.append(read_raw_entry(fields, meta))
    return entries


def read_raw_entry(fields: Fields, meta: Fields) -> Raw:
    """Read one line of the raw export."""
    begin = fields.count("start_perf_ns")
    parts = [piece for response in fields.rows("responses") for piece in read_response(response, begin)]
    name = meta.text("x_request_id") or str(meta.count("session_num"))
    failed = fields.get("error") is not None
    return Raw(name, make_stream(parts), failed, meta.count("request_start_ns"), meta.count("request_end_ns"))


def read_response(response: Fields, begin: int) -> Iterator[tuple[Decimal, str]]:
    """Give the pieces of text of one response with their time since the send, in seconds."""
    at = (response.count("perf_ns") - begin) * NS
    if response.has("packets"):
        for packet in response.rows("packets"):
            if packet.get("name") == "data":
                yield at, "data: " + (packet.text("value") or "")
    elif response.get("text"):
        yield at, response.text("text") or ""


def to_deliveries(stream: Stream, start: Decimal) -> tuple[Delivery, ...]:
    """Give all events as deliveries of their kind; how many tokens each holds is not said."""
    known = ("content", "reasoning", "empty", "usage", "end")
    return tuple(
        Delivery(to_ticks(start + at) or 0, 0 if event.kind in ("empty", "usage", "end") else None, event.kind)
        for at, event in stream.events
        if event.kind in known
    )
