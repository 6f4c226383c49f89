"""perf_analyzer's export and GenAI-Perf's summary of it, read together."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from refsched.errors import InputError
from refsched.record import Outcome, Record
from refsched.results.aiperf_records import MS, NS, to_deliveries
from refsched.results.fields import Fields
from refsched.results.goodput import count_good
from refsched.results.ledger import Ledger, get_statistic
from refsched.results.rows import to_ticks
from refsched.results.run import CUT, Finding, Run, Success, is_same
from refsched.results.sample import Sample, divide
from refsched.results.sse import Stream, make_stream

TOOL = "genai-perf"
DEFINITIONS = {
    "request_latency": "e2e.last_token: last response with text - send, of requests with text",
    "time_to_first_token": "ttft.content: first response with text - send, of requests with text",
    "time_to_second_token": "second response with text - first, of requests with two",
    "inter_token_latency": "tpot.decode/(n-1): round((latency - ttft) / (n - 1)) in ns, n the tokenizer's count",
    "output_token_throughput_per_user": "1 / inter_token_latency",
    "output_sequence_length": "the tokenizer's count of the joined text",
    "input_sequence_length": "the tokenizer's count of the prompt",
}
NO_TOKENS = "the file holds texts but no token counts and no tokenizer"
NO_EXPORT = "perf_analyzer's export (profile_export.json) is not there: only the summary is"
COUNTED = ("inter_token_latency", "output_token_throughput_per_user", "output_sequence_length")
TIMED = ("request_latency", "time_to_first_token", "time_to_second_token", *COUNTED)


@dataclass(frozen=True, slots=True)
class Reply:
    """Hold one request of the export; times are seconds since its send, those with text apart."""

    id: str
    sent: Decimal  # epoch seconds
    stream: Stream
    texts: tuple[Decimal, ...]  # when each response with text came; several events in one response count once

    def latency(self) -> Decimal:
        """Give the time to the last response with text."""
        return self.texts[-1]

    def itl(self) -> Decimal | None:
        """Give (latency - ttft) / (n - 1) rounded to a nanosecond, taking each response for one token."""
        if len(self.texts) < 2:
            return None
        return Decimal(round((self.texts[-1] - self.texts[0]) / (len(self.texts) - 1) / NS)) * NS


def is_export(data: Mapping[str, object]) -> bool:
    """Recognise perf_analyzer's export by its fields."""
    return "experiments" in data and "service_kind" in data


def is_summary(data: Mapping[str, object]) -> bool:
    """Recognise GenAI-Perf's summary by its fields."""
    latency = data.get("request_latency")
    return isinstance(latency, dict) and "request_throughput" in data and "aiperf_version" not in data


def read_experiments(export: Fields) -> list[list[Reply]]:
    """Read the requests of each experiment; raise InputError for an export without any."""
    experiments = [[read_reply(each) for each in part.rows("requests")] for part in export.rows("experiments")]
    if not any(experiments):
        raise InputError("holds no requests", file=export.file, field="experiments")
    return experiments


def read_reply(fields: Fields) -> Reply:
    """Read one request with its responses."""
    sent = fields.count("timestamp")
    times = fields.counts("response_timestamps")
    outputs = list(fields.rows("response_outputs"))
    if len(times) != len(outputs):
        fields.complain("response_outputs", f"has {len(outputs)} entries, response_timestamps has {len(times)}")
    early = [at for at in times if at < sent]
    if early or times != sorted(times):
        fields.complain("response_timestamps", "goes back in time" if not early else "is before the request")
    pieces = [((at - sent) * NS, output.text("response") or "") for at, output in zip(times, outputs, strict=True)]
    texts = tuple(at for at, text in pieces if make_stream([(at, text)]).texts_of("content"))
    return Reply(str(fields.row), sent * NS, make_stream(pieces), texts)


def read_run(replies: Sequence[Reply] | None, summary: Fields | None, files: tuple[str, ...], label: str) -> Run:
    """Read one run from the export, the summary, or both."""
    ledger = Ledger()
    if summary is not None:
        reproduce(ledger, summary, replies)
    chunks = Sample(Decimal(len(reply.texts)) for reply in replies or () if reply.texts)
    is_known = summary is not None and check_chunks(summary, chunks)
    return Run(
        tool=TOOL,
        label=label,
        files=files,
        records=tuple(make_records(replies or (), is_known)),
        reported=tuple(ledger.lines),
        success=judge_success(replies, summary),
        claims=get_claims(summary) if summary else {},
        limits=tuple(find_limits(replies)),
        traps=tuple(find_traps(replies or ())),
        slo=get_slo(summary) if summary else {},
    )


# REPRODUCTION


def reproduce(ledger: Ledger, summary: Fields, replies: Sequence[Reply] | None) -> None:
    """Compute every number of the summary again."""
    with_text = [reply for reply in replies or () if reply.texts]
    samples = make_samples(with_text)
    chunks_are_tokens = replies is not None and check_chunks(summary, samples["output_sequence_length"])
    for key, value in summary.data.items():
        if not isinstance(value, dict) or "unit" not in value:
            continue
        metric = summary.inside(key)
        if key not in DEFINITIONS:
            reproduce_rate(ledger, summary, metric, key, replies)
        elif replies is not None and key in samples and (key not in COUNTED or chunks_are_tokens):
            reproduce_statistics(ledger, metric, key, samples[key])
        else:
            keys = [name for name in value if name != "unit"]
            reason = NO_EXPORT if replies is None else NO_TOKENS
            ledger.skip_all(metric, keys, metric.text("unit") or "", DEFINITIONS[key], reason)


def make_samples(replies: Sequence[Reply]) -> dict[str, Sample]:
    """Give the sample behind each metric, in its unit; token counts take each response with text for one token."""
    gaps = [gap for gap in map(Reply.itl, replies) if gap is not None]
    return {
        "request_latency": Sample(reply.latency() / MS for reply in replies),
        "time_to_first_token": Sample(reply.texts[0] / MS for reply in replies),
        "time_to_second_token": Sample((r.texts[1] - r.texts[0]) / MS for r in replies if len(r.texts) > 1),
        "inter_token_latency": Sample(gap / MS for gap in gaps),
        "output_token_throughput_per_user": Sample(1 / gap for gap in gaps if gap),
        "output_sequence_length": Sample(Decimal(len(reply.texts)) for reply in replies),
    }


def check_chunks(summary: Fields, chunks: Sample) -> bool:
    """Say whether the tokenizer's counts are those of responses with text: all their statistics agree."""
    metric = summary.find_inside("output_sequence_length")
    if metric is None:
        return False
    pairs = [(metric.find(name), statistic(chunks)) for name in metric.data if (statistic := get_statistic(name))]
    return all(value is not None and again is not None and is_same(value, again) for value, again in pairs)


def reproduce_statistics(ledger: Ledger, metric: Fields, key: str, sample: Sample) -> None:
    """Compute the statistics of one metric again."""
    note = "; here each response with text is one token" if key in COUNTED else ""
    definition = f"{DEFINITIONS[key]}{note}; standard deviation over n, quantiles linear between ranks"
    for name in metric.data:
        statistic = get_statistic(name)
        if statistic is not None:
            ledger.add(metric, name, metric.text("unit") or "", definition, statistic(sample))


def reproduce_rate(ledger: Ledger, summary: Fields, metric: Fields, key: str, replies: Sequence[Reply] | None) -> None:
    """Compute a count or a rate again."""
    unit = metric.text("unit") or ""
    with_text = [reply for reply in replies or () if reply.texts]
    span = find_span(with_text)
    tokens, counted = summary.find_inside("output_sequence_length"), Decimal(len(with_text))
    output = None if tokens is None or tokens.find("avg") is None else tokens.number("avg") * counted
    goods = count_goods(summary, with_text)
    rates = {
        "request_count": ("requests in the export", Decimal(len(replies or ()))),
        "request_throughput": ("requests, those without text included / span", divide(len(replies or ()), span)),
        "output_token_throughput": ("mean output_sequence_length * requests with text / span", divide(output, span)),
        "request_goodput": ("requests with text that meet every target / span", divide(goods, span)),
    }
    definition, again = rates.get(key, (key, None))
    if replies is None or again is None:
        keys = [name for name in metric.data if name != "unit"]
        ledger.skip_all(metric, keys, unit, definition, NO_EXPORT if replies is None else NO_TOKENS)
    else:
        ledger.add(metric, "avg", unit, definition, again)


def find_span(replies: Sequence[Reply]) -> Decimal | None:
    """Give the time from the first send to the last response with text."""
    if not replies:
        return None
    return max(reply.sent + reply.latency() for reply in replies) - min(reply.sent for reply in replies)


def get_slo(summary: Fields) -> dict[str, Decimal]:
    """Take the targets out of the configuration, in seconds."""
    config = summary.find_inside("input_config")
    inside = config.find_inside("input") if config else None
    goodput = inside.get("goodput") if inside else None
    names = {"time_to_first_token": "ttft", "inter_token_latency": "tpot", "request_latency": "e2e"}
    if not isinstance(goodput, dict) or inside is None:
        return {}
    targets = inside.inside("goodput")
    return {names.get(key, key): targets.number(key) * MS for key in targets.data}


def count_goods(summary: Fields, replies: Sequence[Reply]) -> int | None:
    """Count the requests that meet every target; None where a target needs token counts."""
    slo = get_slo(summary)
    if not slo or set(slo) - {"ttft", "e2e"}:
        return None
    return count_good(({"ttft": reply.texts[0], "e2e": reply.latency()} for reply in replies), slo, "fail")


# WHAT ELSE THE FILES SAY


def make_records(replies: Sequence[Reply], is_known: bool) -> Iterator[Record]:
    """Make Records; times count from the first send. `is_known` says that each chunk with content is one token."""
    origin = min((reply.sent for reply in replies), default=Decimal(0))
    for reply in replies:
        start = reply.sent - origin
        usage = reply.stream.completion_tokens()
        last = reply.stream.events[-1][0] if reply.stream.events else None
        whole = reply.stream.is_whole() and bool(reply.texts)
        yield Record(
            id=reply.id,
            prompt_tokens=None,
            outcome=Outcome.COMPLETED if whole else Outcome.ERROR,
            sent=to_ticks(start),
            deliveries=to_deliveries(reply.stream, start),
            ended=None if last is None else to_ticks(start + last),
            reason=None if whole else CUT if reply.texts else "no text came",
            output_tokens=usage if usage is not None else len(reply.stream.texts()) if is_known else None,
            token_source="usage" if usage is not None else "chunks" if is_known else None,
        )


CLAIMS = {
    "completed": "request_count",
    "request_throughput": "request_throughput",
    "output_throughput": "output_token_throughput",
}
LATENCIES = {"time_to_first_token": "ttft", "inter_token_latency": "tpot", "request_latency": "e2e"}
STATISTICS = {"avg": "mean", "p50": "median", "p99": "p99", "max": "max", "min": "min"}


def get_claims(summary: Fields) -> dict[str, Decimal]:
    """Give the summary under shared names; latencies in seconds."""
    claims: dict[str, Decimal | None] = {}
    for name, key in CLAIMS.items():
        metric = summary.find_inside(key)
        claims[name] = metric.find("avg") if metric else None
    for key, name in LATENCIES.items():
        metric = summary.find_inside(key)
        for statistic, shared in STATISTICS.items() if metric else ():
            value = metric.find(statistic) if metric else None
            claims[f"{shared}_{name}"] = None if value is None else value * MS
    return {name: value for name, value in claims.items() if value is not None}


def judge_success(replies: Sequence[Reply] | None, summary: Fields | None) -> Success:
    """Count the streams that the server ended, which the export shows."""
    if replies is None:
        count = summary.find_inside("request_count") if summary else None
        counted = int(count.number("avg")) if count else 0
        return Success(counted, None, "only the summary is there")
    whole = sum(reply.stream.is_whole() and bool(reply.texts) for reply in replies)
    counted = sum(bool(reply.texts) for reply in replies)
    return Success(counted, whole, "the export holds every event: finish reasons, [DONE] and errors inside the stream")


def find_limits(replies: Sequence[Reply] | None) -> Iterator[str]:
    """Say what these files cannot support."""
    if replies is None:
        yield "no export: per-request values, gaps and the longest gap are unknown"
        return
    if not any(reply.stream.usage() for reply in replies):
        yield "no usage from the server and no tokenizer: output tokens are known only where each chunk is one token"
    yield "no intended sends: how well the schedule was kept is unknown"


def find_traps(replies: Sequence[Reply]) -> Iterator[Finding]:
    """Find what applies to this tool only."""
    reasoning = sum(bool(reply.stream.texts_of("reasoning")) for reply in replies)
    if reasoning:
        yield Finding(
            "reasoning-ignored",
            f"{reasoning} requests have reasoning text, which this tool neither times nor counts: its TTFT is "
            "ttft.content and its token counts leave the reasoning out",
        )
    empty = sum(not reply.texts for reply in replies)
    if empty:
        yield Finding("empty-counted", f"{empty} requests without text are in the request rate and in no latency")
    inside = sum(bool(reply.texts) and reply.stream.has_error() for reply in replies)
    if inside:
        yield Finding("error-inside-counted", f"{inside} streams hold a server error and are counted as success")
