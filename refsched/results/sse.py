"""Server-sent events of the OpenAI-compatible protocols: what one event carries."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from refsched.results.load import DECODER

DONE = "[DONE]"
REASONING = ("reasoning_content", "reasoning")


@dataclass(frozen=True, slots=True)
class Event:
    """Hold what one event carries: its kind, its text, and what it says about the end of the stream."""

    kind: str  # content | reasoning | empty | usage | end | error | other
    text: str = ""
    finish: str | None = None
    usage: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Stream:
    """Hold the events of one response with the times at which they came, in seconds."""

    events: tuple[tuple[Decimal, Event], ...]

    def texts(self) -> list[tuple[Decimal, Event]]:
        """Give the events with text: content or reasoning."""
        return [(at, event) for at, event in self.events if event.kind in ("content", "reasoning")]

    def texts_of(self, kind: str) -> list[tuple[Decimal, Event]]:
        """Give the events with text of one kind."""
        return [(at, event) for at, event in self.events if event.kind == kind]

    def has_error(self) -> bool:
        """Say whether an error came inside the stream."""
        return any(event.kind == "error" for _, event in self.events)

    def is_whole(self) -> bool:
        """Say whether the stream was ended by the server: a finish reason or [DONE], and no error inside."""
        ended = any(event.kind == "end" or event.finish for _, event in self.events)
        return ended and not self.has_error()

    def usage(self) -> Mapping[str, object] | None:
        """Give the last usage that the server reported."""
        found = [event.usage for _, event in self.events if event.usage]
        return found[-1] if found else None

    def completion_tokens(self) -> int | None:
        """Give the server's count of output tokens."""
        count = (self.usage() or {}).get("completion_tokens")
        return count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else None


def parse_event(payload: str) -> Event:
    """Say what the payload of one event carries; what is no JSON object is "other"."""
    payload = payload.strip()
    if payload == DONE:
        return Event("end")
    try:
        data = DECODER.decode(payload)
    except (json.JSONDecodeError, RecursionError, ValueError):
        return Event("other")
    return parse_object(data) if isinstance(data, dict) else Event("other")


def parse_object(data: Mapping[str, object]) -> Event:
    """Say what one JSON event carries."""
    usage = data.get("usage")
    usage = usage if isinstance(usage, dict) else None
    if data.get("error"):
        return Event("error", str(data["error"])[:200])
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return Event("usage" if usage else "empty", usage=usage)
    choice = choices[0]
    kind, text = get_text(choice)
    finish = choice.get("finish_reason")
    return Event(kind, text, finish if isinstance(finish, str) else None, usage)


def get_text(choice: Mapping[str, object]) -> tuple[str, str]:
    """Find the text of a choice: a delta's content or reasoning, a message, or plain text."""
    for name in ("delta", "message"):
        part = choice.get(name)
        if isinstance(part, dict):
            return get_delta_text(part)
    text = choice.get("text")
    return ("content", text) if isinstance(text, str) and text else ("empty", "")


def get_delta_text(delta: Mapping[str, object]) -> tuple[str, str]:
    """Find the text of a delta."""
    content = delta.get("content")
    if isinstance(content, str) and content:
        return "content", content
    for name in REASONING:
        text = delta.get(name)
        if isinstance(text, str) and text:
            return "reasoning", text
    return "empty", ""


def split_events(text: str) -> Iterator[str]:
    """Split the text of a response into the payloads of its events."""
    for line in text.splitlines():
        if line.startswith("data:"):
            yield line.removeprefix("data:").strip()
        elif line.startswith("{"):
            yield line


def make_stream(parts: Iterable[tuple[Decimal, str]]) -> Stream:
    """Make a stream from pieces of text with the times at which they came."""
    return Stream(tuple((at, parse_event(payload)) for at, text in parts for payload in split_events(text)))
