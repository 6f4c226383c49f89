"""Before and during a run under a fitted model: does it stay within what was measured?

A model refuses an iteration outside its ranges when it prices it. A leap prices few iterations, so how far a request's
context grows is looked at when the request is offered.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from refsched.model import Limits
from refsched.simulation.cost import CostModel
from refsched.simulation.cost_fitted import FittedCost, Validity, explain_outside
from refsched.units import UNLIMITED
from refsched.workload.offer import Offer


def extrapolate(cost: CostModel) -> CostModel:
    """Let a fitted model price iterations outside what was measured, and say so in its label; others stay."""
    if not isinstance(cost, FittedCost):
        return cost
    return replace(cost, validity=Validity(), label=f"{cost.label}; also used outside what was measured")


def list_warnings(cost: CostModel, limits: Limits) -> list[str]:
    """List the limits under which an iteration may leave what a fitted model was measured with; it is refused then."""
    if not isinstance(cost, FittedCost):
        return []
    pairs = (("token_budget", cost.validity.tokens), ("max_seqs", cost.validity.decode_batch))
    return [
        f"{name} {getattr(limits, name):,} lets iterations leave what was measured, at most {measured:,}"
        for name, measured in pairs
        if (getattr(limits, name) or 0) > measured
    ]


def check_offers(cost: CostModel, limits: Limits, offers: Iterable[Offer]) -> Iterator[Offer]:
    """Pass offers on; raise InputError at the first whose decodes must leave what a fitted model was measured with.

    The last decode of a request reads prompt + output - 2 cached tokens. A leap does not price every iteration, so
    waiting for one to be priced would not do. Other models are not checked.
    """
    measured = cost.validity.decode_context if isinstance(cost, FittedCost) else UNLIMITED
    for offer in offers:
        longest = offer.request.prompt + offer.request.output
        longest = min(longest, limits.max_len or longest) - 2
        if offer.request.output > 1 and longest > measured:
            raise explain_outside("decode_context", longest, measured)
        yield offer
