"""The corpus as scenarios: what is kept under `spec/vectors`, whatever form it is kept in.

Hand-written and shrunk scenarios stand there as such; recorded plans and public bugs stand as traces, and what was
offered in them is the scenario. A manifest names every vector with its sha256.
"""

import json
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from hashlib import sha256

from refsched import spec
from refsched.conformance.corpus import list_vectors, parse_vector
from refsched.conformance.scenario_file import SCENARIO_FORMAT, Arrival, Cancel, Scenario, parse_scenario
from refsched.errors import InputError
from refsched.model import Cancelled, Completed, Event, Limits, Planned, Submitted

MANIFEST = "vectors/MANIFEST.json"


def read_manifest() -> Mapping[str, object]:
    """Read the manifest: the edition, and the sha256 of each vector."""
    page: Mapping[str, object] = json.loads(spec.read_text(MANIFEST))
    return page


def make_manifest(texts: Mapping[str, str], edition: int) -> str:
    """Write the manifest of some vectors."""
    sums = {id: sha256(texts[id].encode()).hexdigest() for id in sorted(texts)}
    return json.dumps({"format": "refsched-manifest/1", "edition": edition, "vectors": sums}, indent=1) + "\n"


def read_vector_text(id: str) -> str:
    """Read the file of a vector; raise InputError naming the nearest ones if there is none."""
    ids = list_vectors()
    if id not in ids:
        folder = id.partition("/")[0] + "/"
        near = [each for each in ids if each.startswith(folder)] or sorted({each.split("/")[0] for each in ids})
        raise InputError(f"no vector named {id!r}; there are {', '.join(near[:8])}{', …' if len(near) > 8 else ''}")
    return spec.read_text(f"vectors/{id}.json")


def get_scenario(id: str) -> Scenario:
    """Read a vector as a scenario."""
    return read_any(id, read_vector_text(id))


def read_any(id: str, text: str) -> Scenario:
    """Read a scenario from either form."""
    if json.loads(text).get("format") == SCENARIO_FORMAT:
        return parse_scenario(text, f"spec/vectors/{id}.json")
    trace = parse_vector(text)
    origin = str(trace.header.get("provenance", ""))
    return derive(trace.events, trace.limits, id, str(trace.header.get("about", "")), origin)


def derive(events: Iterable[Event], limits: Limits, id: str, about: str, origin: str) -> Scenario:
    """Take from a trace what was offered and when."""
    arrivals, cancels, planned, inside = list[Arrival](), list[Cancel](), 0, False
    for event in events:
        if isinstance(event, Planned):
            planned, inside = planned + 1, True
        elif isinstance(event, Completed):
            inside = False
        elif isinstance(event, Submitted):
            arrivals.append(Arrival(planned - inside, event.request, inside))
        elif isinstance(event, Cancelled):
            cancels.append(Cancel(planned - inside, event.id, inside))
    return Scenario(limits, tuple(arrivals), tuple(cancels), id, about, origin, ("CNF-EXA-1",))


def select_scenarios(pattern: str = "*") -> tuple[Scenario, ...]:
    """Read all vectors whose ids match a pattern with wildcards."""
    ids = [id for id in list_vectors() if fnmatchcase(id, pattern)]
    return tuple(read_any(id, spec.read_text(f"vectors/{id}.json")) for id in ids)
