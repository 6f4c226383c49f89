#!/usr/bin/env python3
"""Write the vectors of spec/vectors from their sources, and their manifest; nothing else writes them.

scripts/vectors.py           write those that are new: by hand, from witnesses, public bugs, planted faults, drawn
scripts/vectors.py PLANS     write the recorded plans again; PLANS is a folder with vllm-0.29/, vllm-0.33/, …
scripts/vectors.py --check   say whether every vector stands in canonical form, and as the manifest says

A vector that is published is never changed: what an id names must stay the same for those who quote it.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from refsched.conformance.corpus import format_vector, list_vectors, parse_vector  # noqa: E402
from refsched.conformance.faults import FAULTS  # noqa: E402
from refsched.conformance.fuzz import draw_scenarios  # noqa: E402
from refsched.conformance.protocol import read_trace  # noqa: E402
from refsched.conformance.recording import Recording  # noqa: E402
from refsched.conformance.scenario_file import (  # noqa: E402
    EDITION,
    SCENARIO_FORMAT,
    Scenario,
    check_scenario,
    format_scenario,
    parse_scenario,
)
from refsched.conformance.search import search  # noqa: E402
from refsched.conformance.selftest import plant  # noqa: E402
from refsched.conformance.vectors import derive, make_manifest, read_manifest  # noqa: E402
from refsched.conformance.witness import Page, expand, get_witnesses, list_witnesses  # noqa: E402
from refsched.errors import InputError  # noqa: E402
from refsched.model import Trace  # noqa: E402
from scripts.corpus_cover import choose_drawn  # noqa: E402
from scripts.corpus_sources import read_rows  # noqa: E402

SPEC = ROOT / "spec"
VECTORS = SPEC / "vectors"
NEEDED = ("policy", "prefix_cache")  # options of a dialect without which a scenario shows nothing
SEED, CASES = 1, 5000
RECORDED = {
    "vllm-0.29": (
        "exact_fit_minus_one_block",
        "last_token_needs_no_slot",
        "overadmission_despite_reserve",
        "preempt_many_for_one",
        "preempted_before_new_arrivals",
        "prompt_over_kv_no_reserve",
        "random_09",
        "threshold_lone_request",
        "threshold_prefill_ahead_of_decodes",
        "watermark_10pct",
    ),
    "vllm-0.33": (
        "arrival_each_iteration",
        "head_of_line",
        "long_vs_decodes_b33",
        "max_model_len_stops",
        "max_seqs_partial_prefill_takes_seat",
        "output_over_kv_no_reserve",
        "output_over_kv_reserve",
        "overadmission_no_reserve",
        "preempt_basic",
        "preempt_self",
        "preempt_victim_is_prefilling",
        "prefill_chunk_not_shrunk",
        "prompt_over_kv_reserve",
        "prompt_over_max_model_len_one_chunk",
        "random_14",
        "threshold_lone_request",
        "threshold_with_decodes",
        "watermark_first_request_exempt",
    ),
}


# SOURCES


def record(plans: Path) -> Iterator[tuple[str, str]]:
    """Give the chosen recordings as vectors with their provenance."""
    for folder, names in RECORDED.items():
        for name in names:
            with open(plans / folder / f"{name}.jsonl", encoding="utf-8") as lines:
                trace = read_trace(lines)
            header = dict(trace.header) | {"provenance": f"recorded by us: {trace.header['recorded_from']}"}
            id = f"plans/{folder}/{name}"
            yield id, format_vector(id, Trace(trace.engine, trace.dialect, trace.limits, trace.events, header))


def derive_page(page: Page, id: str, origin: str, clauses: tuple[str, ...]) -> Scenario | None:
    """Take from a page of the spec what was offered in it, or None where that was nothing."""
    recording = Recording(expand(page))
    events = tuple(told.event for told in recording.events())
    scenario = derive(events, recording.opening.limits, id, page.get("about", ""), origin)
    dialect = page.get("dialect", {})
    requires: dict[str, Any] = {option: dialect[option] for option in NEEDED if option in dialect}
    requires |= {"prefix_cache": True} if scenario.needs_prefixes() else {}
    try:
        check_scenario(scenario)
    except InputError:
        return None
    return replace(scenario, clauses=clauses, requires=requires)


def read_witness_scenarios() -> Iterator[Scenario]:
    """Give what was offered in each witness of each clause, equal ones once."""
    for clause in list_witnesses():
        seen = set[str]()
        page = get_witnesses(clause)
        for kind in ("pass", "reject"):
            for number, each in enumerate(page[kind]):
                origin = f"what was offered in a witness of {clause}"
                scenario = derive_page(each, f"clauses/{clause}/{kind}-{number}", origin, (clause,))
                if scenario is not None:
                    text = format_scenario(replace(scenario, id="", about=""))
                    yield from [scenario] if text not in seen else []
                    seen.add(text)


def read_bug_scenarios() -> Iterator[Scenario]:
    """Give what was offered in each public bug."""
    for path in sorted((SPEC / "bugs").glob("*.json")):
        page = json.loads(path.read_text(encoding="utf-8"))
        id, clauses = f"bugs/{path.stem}", (page["clause"], *page["also"])
        scenario = derive_page(page, id, f"public bug {page['thread']}", clauses)
        yield from [scenario] if scenario is not None else []


def find_fault_scenarios() -> Iterator[Scenario]:
    """Give for each planted fault that has none the smallest scenario found that shows it."""
    for fault in FAULTS:
        id = f"found/{fault.name}"
        if is_published(id):
            continue
        found = next(search(plant(fault), draw_scenarios(SEED, CASES), 1, fault.clause))
        requires = {option: (fault.claim or {})[option] for option in NEEDED if option in (fault.claim or {})}
        origin = f"found by drawing: seed {SEED}, case {found.case}; shrunk"
        yield replace(
            found.result.scenario,
            id=id,
            about=f"a scheduler that {fault.about}",
            origin=origin,
            clauses=(fault.clause,),
            requires=requires,  # type: ignore[arg-type]
        )


def list_sources() -> Iterator[Scenario]:
    """Give all scenarios that are not recorded."""
    yield from read_rows()
    for derived in (read_witness_scenarios(), read_bug_scenarios(), find_fault_scenarios()):
        yield from (each for each in derived if not is_published(each.id))
    yield from () if (VECTORS / "drawn").exists() else choose_drawn(SEED, CASES)


def is_published(id: str) -> bool:
    """Tell whether a vector of this id is there; what it was derived from may have changed since."""
    return (VECTORS / f"{id}.json").exists()


# WRITING


def write(id: str, text: str) -> bool:
    """Write a vector that is new; leave one that is there, and exit where it would be changed."""
    target = VECTORS / f"{id}.json"
    if target.exists():
        if target.read_text(encoding="utf-8") != text:
            sys.exit(f"{id} is published and would be changed; give what is new another id")
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    return True


def write_manifest() -> None:
    """Write the manifest of all vectors there are."""
    texts = {id: (VECTORS / f"{id}.json").read_text(encoding="utf-8") for id in list_vectors()}
    (VECTORS / "MANIFEST.json").write_text(make_manifest(texts, EDITION), encoding="utf-8")


def find_wrong() -> Iterator[str]:
    """Find the vectors that would be written otherwise, and those that the manifest does not name as they are."""
    texts = {id: (VECTORS / f"{id}.json").read_text(encoding="utf-8") for id in list_vectors()}
    for id, text in texts.items():
        if canonise(id, text) != text:
            yield f"not canonical: {id}"
    if make_manifest(texts, EDITION) != (VECTORS / "MANIFEST.json").read_text(encoding="utf-8"):
        named = read_manifest()["vectors"]
        assert isinstance(named, dict)
        gone = sorted(named.keys() - texts.keys())
        yield f"the manifest is stale; gone: {', '.join(gone) or 'none'}"


def canonise(id: str, text: str) -> str:
    """Write a vector anew from what was read."""
    if json.loads(text).get("format") != SCENARIO_FORMAT:
        return format_vector(id, parse_vector(text))
    return format_scenario(replace(parse_scenario(text, id), id=id))


def main(arguments: list[str]) -> int:
    """Write or check, and say what was done."""
    if arguments == ["--check"]:
        wrong = list(find_wrong())
        print("\n".join(wrong) or f"{len(list_vectors())} vectors are canonical")
        return 1 if wrong else 0
    if len(arguments) > 1 or arguments and not Path(arguments[0]).is_dir():
        print((__doc__ or "").strip(), file=sys.stderr)
        return 2
    sources = record(Path(arguments[0])) if arguments else ((each.id, format_scenario(each)) for each in list_sources())
    written = sum(write(id, text) for id, text in sources)
    write_manifest()
    print(f"{written} vectors written, {len(list_vectors())} there are")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
