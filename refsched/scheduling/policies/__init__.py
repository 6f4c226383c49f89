"""One page per published rule. Each takes the queues, moves requests in them, and returns the plan it made."""

from collections.abc import Callable, Mapping

from refsched.model import Plan, Request
from refsched.scheduling.policies import (
    document_a,
    no_evict,
    orca,
    prefill_first,
    sarathi,
    static,
    vllm_v0,
    vllm_v0_chunked,
    vllm_v1,
)
from refsched.scheduling.queues import Queues
from refsched.scheduling.steps import explain_whole_prompt

Policy = Callable[[Queues], Plan]
Refusal = Callable[[Queues, Request], str | None]

POLICIES: Mapping[str, Policy] = {
    "document-a": document_a.select_iteration,
    "static": static.select_iteration,
    "orca": orca.select_iteration,
    "prefill-first": prefill_first.select_iteration,
    "sarathi": sarathi.select_iteration,
    "no-evict": no_evict.select_iteration,
    "vllm-v0": vllm_v0.select_iteration,
    "vllm-v0-chunked": vllm_v0_chunked.select_iteration,
    "vllm-v1": vllm_v1.select_iteration,
}

# Why a rule of its own can never admit a request that would fit the pool.
REFUSALS: Mapping[str, Refusal] = {"orca": orca.explain_refusal, "vllm-v0": explain_whole_prompt}
