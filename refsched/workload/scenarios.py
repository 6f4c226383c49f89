"""Built-in workloads, by name."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from refsched.errors import InputError
from refsched.model import Request
from refsched.units import TICKS_PER_SECOND
from refsched.workload.generate import generate
from refsched.workload.offer import Offer, Workload

DECODER_OUTPUT = 8192  # enough to decode throughout, even where the long prompt goes in one token at a time
REPORTS = "poisson:rate=0.06,n=18,prompt=uniform:4000:7000,output=uniform:400:900,group=report"
CHATS = "poisson:rate=1.2,n=360,prompt=lognormal:220:0.6,output=lognormal:150:0.6,group=chat"


@dataclass(frozen=True, slots=True)
class Scenario:
    """Say what a scenario shows, and make it from a seed (which only the drawn ones look at)."""

    about: str
    make: Callable[[int], tuple[Offer, ...]]


def make_four_requests(seed: int) -> tuple[Offer, ...]:
    """Make the four requests of the timetable [A6, decision 1]; its unit of time is one second."""
    rows = (("A", 0, 4), ("B", 0, 2), ("C", 1, 2), ("D", 2, 1))
    return tuple(Offer(at * TICKS_PER_SECOND, Request(name, 1, output)) for name, at, output in rows)


def make_long_prompt(seed: int) -> tuple[Offer, ...]:
    """Make two requests that decode throughout, and a long prompt that comes during their first iteration [B3]."""
    decoders = tuple(Offer(0, Request(name, 1, DECODER_OUTPUT), "decoder") for name in ("D1", "D2"))
    return (*decoders, Offer(1, Request("long", 4096, 1), "long"))


def make_research_assistant(seed: int) -> tuple[Offer, ...]:
    """Make about 300 s of few long reports beside many short chats, two groups with streams of their own [A13]."""
    parts = [name_by_group(generate(text, seed).offers) for text in (CHATS, REPORTS)]
    return tuple(sorted((offer for part in parts for offer in part), key=lambda offer: offer.at))


def name_by_group(offers: Iterable[Offer]) -> list[Offer]:
    """Rename r0, r1, … to chat-0, chat-1, … after the group."""
    return [
        replace(offer, request=replace(offer.request, id=f"{offer.group}-{k}")) for k, offer in enumerate(offers)
    ]


SCENARIOS: Mapping[str, Scenario] = {
    "four-requests": Scenario("four short requests for two places: the timetable", make_four_requests),
    "long-prompt": Scenario("a prompt of 4096 tokens arrives while two requests decode", make_long_prompt),
    "research-assistant": Scenario("few long reports beside many short chats, about 300 s", make_research_assistant),
}


def get_scenario(name: str, seed: int = 0) -> Workload:
    """Make a built-in workload; raise InputError for an unknown name."""
    if name not in SCENARIOS:
        raise InputError(f"{name!r} is not one of {', '.join(SCENARIOS)}")
    scenario = SCENARIOS[name]
    offers = scenario.make(seed)
    source: dict[str, str | int] = {"scenario": name, "rows": len(offers), "seed": seed}
    return Workload(name, "scenario", offers, (f"{scenario.about[0].upper()}{scenario.about[1:]}.",), source)
