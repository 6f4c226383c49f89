"""AIPerf's time-weighted curves: concurrency, tokens in flight and rates as step functions over the phase.

The tool works in binary doubles on epoch nanoseconds, whose steps are 256 ns; the same arithmetic is used here, because
rounding each time to such a step moves the results by more than 1e-9.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate, pairwise
from typing import NamedTuple

from refsched.results.aiperf_records import Entry

QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
PER_SECOND = 1e9
Event = tuple[float, float]  # when, and by how much the curve changes


class Curve(NamedTuple):
    """Hold a step function: from each time on it has the value beside it."""

    times: Sequence[float]
    values: Sequence[float]

    def at(self, time: float) -> float:
        """Give the value at a time; 0 before the first step."""
        place = bisect_right(self.times, time) - 1
        return self.values[place] if place >= 0 else 0.0


@dataclass(frozen=True, slots=True)
class Span:
    """Hold the times of one request in doubles of nanoseconds, and its tokens."""

    start: float
    end: float
    first: float | None
    prompt: float | None
    output: float | None
    gaps: tuple[float, ...]
    before: float  # the sum of all gaps of the requests before it, as the tool keeps one running sum


def make_spans(entries: Sequence[Entry]) -> list[Span]:
    """Take what the curves need from the records."""
    spans, total = [], 0.0
    for entry in entries:
        span = make_span(entry, total)
        spans.append(span)
        for gap in span.gaps:
            total += gap
    return spans


def make_span(entry: Entry, before: float) -> Span:
    """Take what the curves need from one record."""
    gaps = entry.tags.get("inter_chunk_latency")
    ttft = entry.value("time_to_first_token")
    return Span(
        start=float(entry.start),
        end=float(entry.end),
        first=None if ttft is None else float(entry.start + round(ttft * 1_000_000)),
        prompt=to_float(entry.value("input_sequence_length")),
        output=to_float(entry.value("output_sequence_length")),
        gaps=tuple(float(round(gap * 1_000_000)) for gap in gaps) if isinstance(gaps, tuple) else (),
        before=before,
    )


def to_float(value: Decimal | None) -> float | None:
    """Give a count as a double."""
    return None if value is None else float(value)


def make_curve(starts: Iterable[Event], stops: Iterable[Event]) -> Curve:
    """Add up changes in order of time, what falls before what rises; what floats leave of 0 becomes 0."""
    events = sorted([*starts, *stops], key=lambda event: (event[0], event[1] > 0))
    values = list(accumulate(change for _, change in events))
    least = 1e-9 * max(map(abs, values), default=0.0)
    return Curve([time for time, _ in events], [0.0 if abs(value) < least else value for value in values])


def make_rate(pieces: Sequence[tuple[float, float, float]]) -> Curve:
    """Make the curve of rates that each hold from one time to another."""
    return make_curve([(start, rate) for start, _, rate in pieces], [(stop, -rate) for _, stop, rate in pieces])


def divide(above: Curve, below: Curve) -> Curve:
    """Divide two curves; 0 where the divisor is."""
    if not above.times or not below.times:
        return Curve((), ())
    times = sorted({*above.times, *below.times})
    return Curve(times, [above.at(time) / below.at(time) if below.at(time) > 0 else 0.0 for time in times])


# THE CURVES


def make_curves(entries: Sequence[Entry]) -> dict[str, tuple[Curve, Curve | None]]:
    """Make every curve, with the concurrency in which it is active."""
    spans = make_spans(entries)
    everyone = make_rate([(span.start, span.end, 1.0) for span in spans])
    decoding = make_rate([(span.first, span.end, 1.0) for span in spans if span.first is not None])
    prefilling = make_rate([(span.start, span.first, 1.0) for span in spans if span.first is not None])
    decode, prefill = make_rate(get_decode_rates(spans)), make_rate(get_prefill_rates(spans))
    total = make_rate([*get_prefill_rates(spans), *get_even_rates(spans)])
    return {
        "concurrency": (everyone, None),
        "decode_concurrency": (decoding, None),
        "prefill_concurrency": (prefilling, None),
        "tokens_in_flight": (make_tokens_in_flight(spans), None),
        "decode_throughput": (decode, decoding),
        "prefill_throughput": (prefill, prefilling),
        "total_throughput": (total, everyone),
        "decode_throughput_per_user": (divide(decode, decoding), decoding),
        "prefill_throughput_per_user": (divide(prefill, prefilling), prefilling),
    }


def get_prefill_rates(spans: Sequence[Span]) -> list[tuple[float, float, float]]:
    """Spread each prompt over the time to the first token."""
    return [
        (span.start, span.first, span.prompt / (span.first - span.start))
        for span in spans
        if span.first is not None and span.prompt is not None and span.first > span.start
    ]


def get_even_rates(spans: Sequence[Span]) -> list[tuple[float, float, float]]:
    """Spread the tokens after the first over the time from it to the end."""
    return [
        (span.first, span.end, (span.output - 1.0) / (span.end - span.first))
        for span in spans
        if span.first is not None and span.output is not None and span.output >= 1 and span.end > span.first
    ]


def get_decode_rates(spans: Sequence[Span]) -> list[tuple[float, float, float]]:
    """Spread the tokens after the first over the gaps between chunks; evenly where no request has such gaps."""
    if not any(span.gaps for span in spans):
        return get_even_rates(spans)
    rates = []
    for span in spans:
        used = sum(gap > 0 for gap in span.gaps)
        if span.first is None or span.output is None or span.output < 1 or not used:
            continue
        for gap, after in zip(span.gaps, get_offsets(span), strict=True):
            if gap > 0:
                stop = span.first + after
                rates.append((stop - gap, stop, (span.output - 1.0) / used / gap))
    return rates


def get_offsets(span: Span) -> list[float]:
    """Give the time from the first token to the end of each gap, taken from the tool's one running sum."""
    return [total - span.before for total in list(accumulate(span.gaps, initial=span.before))[1:]]


def make_tokens_in_flight(spans: Sequence[Span]) -> Curve:
    """Count the tokens that running requests hold: the prompt from the send, outputs as they come, none at the end."""
    detailed = any(span.gaps for span in spans)
    rises = [event for span in spans for event in (get_chunk_rises(span) if detailed else get_even_rises(span))]
    prompts = [(span.start, span.prompt) for span in spans if has_prefill(span) and span.prompt is not None]
    falls = [(span.end, -held) for span in spans if (held := get_held(span, detailed)) is not None]
    return make_curve([*rises, *prompts], falls)


def has_prefill(span: Span) -> bool:
    """Say whether a request has a prompt and a first token after its send."""
    return span.prompt is not None and span.first is not None and span.first > span.start


def has_chunks(span: Span) -> bool:
    """Say whether a request has gaps between chunks and tokens to spread over them."""
    return bool(span.gaps) and span.first is not None and span.output is not None and span.output >= 1


def get_chunk_rises(span: Span) -> list[Event]:
    """Let the tokens after the first come with the chunks, each before the request's end."""
    if not has_chunks(span) or span.first is None or span.output is None:
        return []
    share, last = (span.output - 1.0) / len(span.gaps), math.nextafter(span.end, -math.inf)
    times = [span.first + after for after in get_offsets(span)]
    return [(span.first, 1.0), *((time if time < span.end else last, share) for time in times)]


def get_even_rises(span: Span) -> list[Event]:
    """Let all tokens of a request count from its first token on."""
    known = span.first is not None and span.output is not None and span.end > span.first
    return [(span.first or 0.0, span.output or 0.0)] if known else []


def get_held(span: Span, detailed: bool) -> float | None:
    """Give the tokens that a request frees at its end; None where it held none."""
    outputs = has_chunks(span) if detailed else bool(get_even_rises(span))
    if not outputs and not has_prefill(span):
        return None
    return (span.prompt or 0.0 if has_prefill(span) else 0.0) + (span.output or 0.0 if outputs else 0.0)


# STATISTICS


def summarise(pieces: Sequence[tuple[float, float]], total: float) -> dict[str, float]:
    """Summarise (duration, value) pieces, weighted by duration."""
    average = sum(value * duration for duration, value in pieces) / total
    spread = sum(duration * (value - average) ** 2 for duration, value in pieces) / total
    ordered = sorted(pieces, key=lambda piece: piece[1])
    upto = list(accumulate(duration for duration, _ in ordered))
    shares = [each / upto[-1] for each in upto]
    places = {name: min(bisect_left(shares, p), len(ordered) - 1) for name, p in QUANTILES.items()}
    ends = {"avg": average, "min": ordered[0][1], "max": ordered[-1][1], "std": math.sqrt(spread)}
    return ends | {name: ordered[place][1] for name, place in places.items()}


def get_effective(curve: Curve, start: float, end: float) -> dict[str, float]:
    """Summarise a curve over the whole window."""
    if not curve.times or end <= start:
        return dict.fromkeys(("avg", "min", "max", "std", *QUANTILES), 0.0)
    inside = [time for time in curve.times if start < time < end]
    edges = [start, *sorted(set(inside)), end]
    return summarise([(stop - begin, curve.at(begin)) for begin, stop in pairwise(edges)], end - start)


def get_active(curve: Curve, mask: Curve, start: float, end: float) -> dict[str, float]:
    """Summarise a curve over the part of the window in which the mask is above 0."""
    edges = sorted({start, end, *(time for time in (*curve.times, *mask.times) if start < time < end)})
    pieces = [(stop - begin, curve.at(begin)) for begin, stop in pairwise(edges) if mask.at(begin) > 0]
    if not pieces or not curve.times:
        return dict.fromkeys(("avg", "min", "max", "std", *QUANTILES), 0.0)
    return summarise(pieces, sum(duration for duration, _ in pieces))


def compute_swept(entries: Sequence[Entry], window: tuple[int, int]) -> Mapping[str, Mapping[str, float]]:
    """Compute every time-weighted metric over a window in nanoseconds, under the tool's names."""
    start, end = float(window[0]), float(window[1])
    swept = {}
    for name, (curve, mask) in make_curves(entries).items():
        scale = PER_SECOND if "throughput" in name else 1.0
        tag = name if name == "tokens_in_flight" else f"effective_{name}"
        swept[tag] = rescale(get_effective(curve, start, end), scale)
        if mask is not None:
            swept[f"active_{name}"] = rescale(get_active(curve, mask, start, end), scale)
    return swept


def rescale(statistics: Mapping[str, float], factor: float) -> dict[str, float]:
    """Turn rates per nanosecond into rates per second."""
    return {name: value * factor for name, value in statistics.items()}
