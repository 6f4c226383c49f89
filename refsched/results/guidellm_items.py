"""GuideLLM's requests: what one holds, and the numbers that the tool derives from it, in its binary doubles."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from refsched.results.fields import Fields

TIMES = (
    "targeted_start",
    "predecessor_completed",
    "resolve_start",
    "request_start",
    "first_token_iteration",
    "first_output_token_iteration",
    "last_token_iteration",
    "request_end",
    "resolve_end",
    "last_request_sent",
)


MOST = 10**7  # updates of one request
DERIVED = ("request_latency", "time_to_first_token_ms", "time_per_output_token_ms", "inter_token_latency_ms")


@dataclass(frozen=True, slots=True)
class Item:
    """Hold one request; times are epoch seconds, exact as written."""

    id: str
    status: str
    exact: Mapping[str, Decimal | None]
    iterations: int
    token_iterations: int
    prompt: int | None
    output: int | None
    inputs: Mapping[str, object]
    outputs: Mapping[str, object]
    root: bool
    reasoning: bool
    error: str | None
    written: Mapping[str, Decimal | None]  # the numbers that the tool derived and wrote beside the times

    def time(self, name: str) -> float | None:
        """Give a time as the double that the tool worked with."""
        value = self.exact.get(name)
        return None if value is None else float(value)

    def start(self) -> float | None:
        """Give when the request was sent, or else when it was taken up."""
        sent = self.time("request_start")
        return self.time("resolve_start") if sent is None else sent

    def end(self) -> float | None:
        """Give when the response ended, or else when the request was done with."""
        ended = self.time("request_end")
        return self.time("resolve_end") if ended is None else ended

    def between(self, start: str, end: str) -> float | None:
        """Give the seconds between two of its times."""
        first, last = self.time(start), self.time(end)
        return None if first is None or last is None else last - first

    def tokens(self) -> int | None:
        """Give the output tokens: as the response says, or else the number of updates with text."""
        return self.output if self.output is not None else self.token_iterations or None

    def total(self) -> int | None:
        """Give input and output tokens together."""
        output = self.tokens()
        return None if self.prompt is None and output is None else (self.prompt or 0) + (output or 0)

    def ttft(self) -> float | None:
        """Give the time to the first token of any kind, in ms."""
        return scale(self.between("request_start", "first_token_iteration"))

    def latency(self) -> float | None:
        """Give the time to the end of the stream, in s."""
        return self.between("request_start", "request_end")

    def derive(self) -> tuple[str, dict[str, tuple[Decimal | None, Decimal | None]]]:
        """Give each derived number as written and as it follows from the times."""
        again = (self.latency(), self.ttft(), self.per_output_token(), self.inter_token())
        exact = (None if value is None else Decimal(value) for value in again)
        return self.id, {name: (self.written[name], value) for name, value in zip(DERIVED, exact, strict=True)}

    def per_output_token(self) -> float | None:
        """Give (last token - send) / n in ms, the time to first token included."""
        tokens, start, last = self.tokens(), self.time("request_start"), self.time("last_token_iteration")
        last = last or self.end()
        return None if start is None or last is None or not tokens else 1000 * (last - start) / tokens

    def inter_token(self) -> float | None:
        """Give (last token - first) / (n - 1) in ms."""
        tokens, span = self.tokens(), self.between("first_token_iteration", "last_token_iteration")
        return None if span is None or tokens is None or tokens <= 1 else 1000 * span / (tokens - 1)

    def per_iteration(self) -> float | None:
        """Give the tokens of each update after the first, evenly."""
        tokens = self.tokens()
        if tokens is None or tokens <= 1 or self.token_iterations <= 1:
            return None
        return (tokens - 1.0) / (self.token_iterations - 1.0)

    def prompt_timing(self) -> tuple[float, float]:
        """Give when the prompt counts as read: at the first token."""
        first = self.time("first_token_iteration")
        return (first if first is not None else self.end() or 0.0, float(self.prompt or 0))

    def later_timings(self) -> list[tuple[float, float]]:
        """Give when the tokens after the first count, spread evenly up to the last."""
        first, last = self.time("first_token_iteration"), self.time("last_token_iteration")
        share = self.per_iteration()
        if first is None or last is None or share is None:
            return []
        steps = self.token_iterations - 1
        return [(last if i == steps else first + i * ((last - first) / steps), share) for i in range(1, steps + 1)]

    def output_timings(self) -> list[tuple[float, float]]:
        """Give when the output tokens count."""
        first, last, tokens = self.time("first_token_iteration"), self.time("last_token_iteration"), self.tokens()
        if first is None or last is None or self.token_iterations <= 1:
            return [(last if last is not None else self.end() or 0.0, float(tokens or 0))]
        return [(first, 1.0 if tokens else 0.0), *self.later_timings()]


def scale(seconds: float | None) -> float | None:
    """Turn seconds into milliseconds as the tool does."""
    return None if seconds is None else 1000 * seconds


def read_item(fields: Fields, status: str) -> Item:
    """Read one request; raise InputError where its times go backwards."""
    info = fields.inside("info")
    timings = info.inside("timings")
    exact = {name: timings.find(name) for name in TIMES}
    inputs, outputs = fields.find_inside("input_metrics"), fields.find_inside("output_metrics")
    check_order(timings, exact)
    return Item(
        id=fields.text("request_id") or str(fields.row),
        status=status,
        exact=exact,
        iterations=timings.find_count("request_iterations") or 0,
        token_iterations=read_iterations(timings),
        prompt=inputs.find_count("total_tokens") if inputs else None,
        output=outputs.find_count("total_tokens") if outputs else None,
        inputs=inputs.data if inputs else {},
        outputs=outputs.data if outputs else {},
        root=not info.get("preceding_nodes"),
        reasoning=bool(fields.get("reasoning_output")),
        error=info.text("error"),
        written={name: fields.find(name) for name in DERIVED},
    )


def read_iterations(timings: Fields) -> int:
    """Read the number of updates with text, each of which the tool gives a time."""
    count = timings.find_count("token_iterations") or 0
    return count if count <= MOST else timings.complain("token_iterations", "is too large")


def check_order(timings: Fields, exact: Mapping[str, Decimal | None]) -> None:
    """Refuse times that go backwards."""
    names = ("request_start", "first_token_iteration", "last_token_iteration")
    known = [(name, value) for name in names if (value := exact[name]) is not None]
    for (_, before), (name, after) in zip(known, known[1:], strict=False):
        if after < before:
            timings.complain(name, "goes back in time")
