"""One page per published rule. Each takes the queues, moves requests in them, and returns the plan it made."""

from collections.abc import Callable, Mapping

from refsched.model import Plan
from refsched.scheduling.policies import document_a, static, vllm_v1
from refsched.scheduling.queues import Queues

Policy = Callable[[Queues], Plan]

POLICIES: Mapping[str, Policy] = {
    "document-a": document_a.select_iteration,
    "static": static.select_iteration,
    "vllm-v1": vllm_v1.select_iteration,
}
