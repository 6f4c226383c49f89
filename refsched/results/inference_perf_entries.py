"""inference-perf's per-request file: what one entry holds, and the numbers that the tool derives from it.

The tool subtracts times as binary doubles, which decides the last digits of gaps of a few microseconds; so do we.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

from refsched.record import Delivery, Outcome, Record
from refsched.results.fields import Fields
from refsched.results.fitting import Pair, fits
from refsched.results.rows import to_ticks
from refsched.results.run import CUT
from refsched.results.sample import to_binary
from refsched.results.sse import make_stream

DERIVED = ("request_latency", "time_to_first_token", "normalized_time_per_output_token", "time_per_output_token")
PROMPT_KEYS = ("prompt_tokens", "input_tokens")
OUTPUT_KEYS = ("completion_tokens", "output_tokens")
HTTP_LABELS = {
    "429": "Rate Limit",
    "500": "Internal Server Error",
    "502": "Bad Gateway",
    "503": "Service Unavailable",
    "504": "Gateway Timeout",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """Hold one request; times are seconds on the tool's monotonic clock."""

    id: str
    start: Decimal
    end: Decimal
    prompt: int
    client_output: int | None  # counted with the tool's own tokenizer
    usage: Mapping[str, object] | None
    token_times: Sequence[Decimal]
    chunk_times: Sequence[Decimal]
    streamed: bool
    error: tuple[str, str] | None  # its type and message
    request: str | None
    response: str | None
    media: Mapping[str, int]
    slo: Mapping[str, Decimal]
    written: Mapping[str, Decimal | None]  # the numbers that the tool derived and wrote beside the times

    def latency(self) -> Decimal:
        """Give the time from the send to the end, client work included."""
        return to_binary(self.end) - to_binary(self.start)

    def server_count(self, keys: Sequence[str]) -> int | None:
        """Give the server's own count of tokens."""
        usage = self.usage or {}
        found = (usage[key] for key in keys if usage.get(key) is not None)
        value = next(found, None)
        return int(value) if isinstance(value, int | Decimal) else None

    def output(self, by_server: bool) -> int:
        """Give the output tokens as the tool counts them, by its tokenizer or by the server."""
        counted = self.server_count(OUTPUT_KEYS) if by_server else None
        return counted if counted is not None else self.client_output or 0

    def has_times(self) -> bool:
        """Say whether there are token times enough for the tool: more than one."""
        return self.streamed and len(self.token_times) > 1

    def ttft(self) -> Decimal | None:
        """Give the time to the first token, for outputs of more than one token only."""
        return to_binary(self.token_times[0]) - to_binary(self.start) if self.has_times() else None

    def tpot(self, by_server: bool) -> Decimal | None:
        """Give (last token - first) / (n - 1)."""
        count = self.output(by_server)
        if not self.has_times() or count <= 1:
            return None
        return (to_binary(self.token_times[-1]) - to_binary(self.token_times[0])) / (count - 1)

    def gaps(self) -> list[Decimal]:
        """Give the gaps between tokens; all tokens of a chunk have its time, so gaps inside it are 0."""
        if not self.has_times():
            return []
        return [to_binary(after) - to_binary(before) for before, after in pairwise(self.token_times)]

    def normalised(self, by_server: bool) -> Decimal:
        """Give latency / n; 0 for an output of no tokens."""
        count = self.output(by_server)
        return self.latency() / count if count else Decimal(0)

    def cached(self) -> int:
        """Give the prompt tokens that the server took from its cache."""
        details = (self.usage or {}).get("prompt_tokens_details")
        value = details.get("cached_tokens") if isinstance(details, dict) else None
        return int(value) if isinstance(value, int | Decimal) else 0


def read_entry(fields: Fields) -> Entry:
    """Read one request; raise InputError where its times go backwards."""
    start, end = fields.number("start_time"), fields.number("end_time")
    if end < start:
        fields.complain("end_time", "is before start_time")
    info = fields.find_inside("info")
    response = info.find_inside("response_metrics") if info else None
    media, text = read_request(info)
    times = read_times(response, "output_token_times")
    chunks = read_times(response, "chunk_times")
    if any(after < before for before, after in pairwise(times)) or (times and times[0] < start):
        (response or fields).complain("output_token_times", "goes back in time")
    return Entry(
        id=str(fields.row),
        start=start,
        end=end,
        prompt=text,
        client_output=response.find_count("output_tokens") if response else None,
        usage=response.inside("server_usage").data if response and response.get("server_usage") else None,
        token_times=times,
        chunk_times=chunks,
        streamed=response is not None and response.has("chunk_times"),
        error=read_error(fields),
        request=fields.text("request"),
        response=fields.text("response"),
        media=media,
        slo=read_slo(fields),
        written=read_written(fields),
    )


def read_request(info: Fields | None) -> tuple[dict[str, int], int]:
    """Read the counts of images, videos and audios in a request, and its prompt tokens."""
    request = info.find_inside("request_metrics") if info else None
    media = {}
    for kind in ("image", "video", "audio"):
        part = request.find_inside(kind) if request else None
        media[kind] = (part.find_count("count") or 0) if part else 0
    text = request.find_inside("text") if request else None
    counted = text.find_count("input_tokens") if text else info.find_count("input_tokens") if info else None
    return media, counted or 0


def read_times(response: Fields | None, key: str) -> list[Decimal]:
    """Read a list of times; empty where there is none."""
    return response.times(key) if response is not None and response.get(key) is not None else []


def read_error(fields: Fields) -> tuple[str, str] | None:
    """Read how a request failed."""
    error = fields.find_inside("error")
    return None if error is None else (error.text("error_type") or "", error.text("error_msg") or "")


def read_written(fields: Fields) -> dict[str, Decimal | None]:
    """Read the numbers that the tool derived of a request, where it was told to write them."""
    computed = fields.find_inside("computed_metrics")
    return {name: computed.find(name) for name in DERIVED} if computed else {}


def list_derived(entry: Entry) -> tuple[str, dict[str, Pair]]:
    """Give each derived number as written and as it follows; those by tokens, by either count of them."""
    again: dict[str, tuple[Decimal | None, ...]] = {
        "request_latency": (entry.latency(),),
        "time_to_first_token": (entry.ttft(),),
        "normalized_time_per_output_token": (entry.normalised(False), entry.normalised(True)),
        "time_per_output_token": (entry.tpot(False), entry.tpot(True)),
    }
    return entry.id, {name: (value, choose(value, again[name])) for name, value in entry.written.items()}


def choose(written: Decimal | None, again: tuple[Decimal | None, ...]) -> Decimal | None:
    """Choose the value that fits, or else the first."""
    return next((value for value in again if fits(written, value)), again[0])


def read_slo(fields: Fields) -> dict[str, Decimal]:
    """Read the targets of a request of its own."""
    computed = fields.find_inside("computed_metrics")
    names = {"ttft": "ttft_slo_sec", "tpot": "tpot_slo_sec"}
    targets = {name: computed.find(key) for name, key in names.items()} if computed else {}
    return {name: value for name, value in targets.items() if value is not None}


def label_error(error: tuple[str, str]) -> str:
    """Name an error as the tool does, for the common kinds."""
    kind, message = error
    if kind.startswith("HTTP Error "):
        code = kind.split()[-1]
        return f"{code} - {HTTP_LABELS[code]}" if code in HTTP_LABELS else f"{code} - other"
    words = message.lower()
    if "timeout" in words or "timed out" in words:
        return "Timeout"
    return "Connection Error" if "connect" in words else kind.lower().strip()


def judge_whole(entries: Sequence[Entry]) -> dict[str, bool] | None:
    """Say of each success whether the server ended its stream; None where the file does not show it."""
    ok = [entry for entry in entries if entry.error is None]
    if ok and all(entry.response is not None and "data:" in entry.response for entry in ok):
        return {entry.id: make_stream([(Decimal(0), entry.response or "")]).is_whole() for entry in ok}
    told = [entry for entry in ok if entry.server_count(OUTPUT_KEYS) is not None]
    return {entry.id: entry.server_count(OUTPUT_KEYS) is not None for entry in ok} if told else None


def count_hidden(entries: Sequence[Entry]) -> int:
    """Count the successes in which the server counts more tokens than the content has, beyond one that ends it.

    The tool keeps times of content only: what is hidden is reasoning, or text that it did not understand.
    """
    ok = [entry for entry in entries if entry.error is None and entry.streamed]
    pairs = [(entry.server_count(OUTPUT_KEYS), entry.client_output or 0) for entry in ok]
    return sum(server is not None and server > client + 1 for server, client in pairs)


def make_records(entries: Sequence[Entry], whole: Mapping[str, bool] | None) -> Iterator[Record]:
    """Make Records; a chunk's tokens are those that the tool's tokenizer found in it."""
    origin = min((entry.start for entry in entries), default=Decimal(0))
    for entry in entries:
        good = entry.error is None and (whole is None or whole[entry.id])
        counted = entry.server_count(OUTPUT_KEYS)
        cut = entry.error is None and not good
        yield Record(
            id=entry.id,
            prompt_tokens=entry.prompt,
            outcome=Outcome.COMPLETED if good else get_outcome(entry),
            sent=to_ticks(entry.start - origin),
            deliveries=tuple(make_deliveries(entry, origin)),
            ended=to_ticks(entry.end - origin),
            reason=CUT if cut else describe(entry),
            output_tokens=counted if counted is not None else entry.client_output,
            token_source="usage" if counted is not None else "retokenised" if entry.client_output is not None else None,
        )


def get_outcome(entry: Entry) -> Outcome:
    """Say how a request failed."""
    return Outcome.TIMEOUT if entry.error and label_error(entry.error) == "Timeout" else Outcome.ERROR


def describe(entry: Entry) -> str | None:
    """Give the reason of a failure in one line."""
    return f"{entry.error[0]}: {entry.error[1]}"[:200] if entry.error else None


def make_deliveries(entry: Entry, origin: Decimal) -> Iterator[Delivery]:
    """Give the chunks with the tokens found in each."""
    tokens = Counter(entry.token_times)
    for at in dict.fromkeys([*entry.chunk_times, *entry.token_times]):
        count = tokens.get(at, 0)
        yield Delivery(to_ticks(at - origin) or 0, count, "content" if count else "empty")
