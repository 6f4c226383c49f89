"""How busy a device must at least be for a workload under a cost model, before anything is scheduled.

Every token is paid for, and the overhead of the fewest iterations that budget and places allow. No scheduler can do
with less, so above 1 there is no steady state: the queue grows as long as requests come.
"""

from collections.abc import Sequence
from fractions import Fraction

from refsched.model import Limits, Request, Work
from refsched.simulation.cost import CostModel
from refsched.units import Ticks, ceil_div


def compute_utilisation(requests: Sequence[Request], span: Ticks, limits: Limits, cost: CostModel) -> Fraction | None:
    """Compute the least share of `span` that the device is busy; None where the span is 0."""
    if not span:
        return None
    overhead = cost.duration(Work((), 0, 0))
    tokens = sum(request.prompt + request.output - 1 for request in requests)
    outputs = sum(request.output for request in requests)  # one place in one iteration each
    fewest = max(ceil_div(tokens, limits.token_budget or tokens), ceil_div(outputs, limits.max_seqs or outputs))
    work = sum((price_tokens(request, cost, overhead) for request in requests), Fraction(0))
    return (work + fewest * overhead) / span


def price_tokens(request: Request, cost: CostModel, overhead: Ticks) -> Fraction:
    """Price a request's prompt, computed at once, and its decodes; the overhead of iterations left out.

    Each decode reads one token more than the one before, and prices grow evenly: the first and the last give the sum.
    """
    prefill = cost.duration(Work(((0, request.prompt),), 0, 0)) - overhead
    decodes = request.output - 1
    ends = cost.duration(Work((), 1, request.prompt)) + cost.duration(Work((), 1, request.prompt + decodes - 1))
    return Fraction(prefill) + Fraction(decodes * (ends - 2 * overhead), 2)
