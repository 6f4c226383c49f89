#!/usr/bin/env python3
"""Write the vectors of spec/vectors from their sources; nothing else writes them.

scripts/vectors.py PLANS     write the recorded plans again; PLANS is a folder with vllm-0.29/, vllm-0.33/, …
scripts/vectors.py --check   say whether every vector stands in canonical form
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from refsched.conformance.corpus import format_vector, list_vectors, parse_vector  # noqa: E402
from refsched.conformance.protocol import read_trace  # noqa: E402
from refsched.model import Trace  # noqa: E402

VECTORS = ROOT / "spec" / "vectors"
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


def write_recorded(plans: Path) -> int:
    """Write the chosen recordings as vectors with their provenance; return how many."""
    written = 0
    for folder, names in RECORDED.items():
        for name in names:
            with open(plans / folder / f"{name}.jsonl", encoding="utf-8") as lines:
                trace = read_trace(lines)
            header = dict(trace.header) | {"provenance": f"recorded by us: {trace.header['recorded_from']}"}
            id = f"plans/{folder}/{name}"
            target = VECTORS / f"{id}.json"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(
                format_vector(id, Trace(trace.engine, trace.dialect, trace.limits, trace.events, header)),
                encoding="utf-8",
            )
            written += 1
    return written


def find_uncanonical() -> list[str]:
    """Find the vectors that would be written otherwise."""
    texts = {id: (VECTORS / f"{id}.json").read_text(encoding="utf-8") for id in list_vectors()}
    return [id for id, text in texts.items() if format_vector(id, parse_vector(text)) != text]


def main(arguments: list[str]) -> int:
    """Write or check, and say what was done."""
    if arguments == ["--check"]:
        wrong = find_uncanonical()
        print("\n".join(f"not canonical: {id}" for id in wrong) or f"{len(list_vectors())} vectors are canonical")
        return 1 if wrong else 0
    if len(arguments) != 1 or not Path(arguments[0]).is_dir():
        print((__doc__ or "").strip(), file=sys.stderr)
        return 2
    print(f"{write_recorded(Path(arguments[0]))} vectors written")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
