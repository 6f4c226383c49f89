"""Floors: what no kernel can beat, from the operations and the bytes of an iteration [A25].

Operators of a layer run one after another, so a floor is the sum over groups of operators of the larger of
operations / peak and bytes / bandwidth: token-wise matrix products, prefill attention, decode attention. Bytes are
the least possible: every input is read once and every output written once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from refsched.calibration.forms import Fit, Regime
from refsched.calibration.samples import count_tokens
from refsched.calibration.shapes import Shape
from refsched.model import Work
from refsched.units import Tokens

GROUPS = ("matrices", "prefill attention", "decode attention")
LIMITS = ("arithmetic", "memory")


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Hold the fastest that a device was seen to be: operations and bytes per second."""

    flops: float
    bandwidth: float


@dataclass(frozen=True, slots=True)
class Need:
    """Count the operations and the least bytes of one group of operators."""

    flops: int
    bytes: int

    def floor(self, ceilings: Ceilings) -> float:
        """Give the fewest seconds."""
        return max(self.times(ceilings))

    def times(self, ceilings: Ceilings) -> tuple[float, float]:
        """Give the seconds that arithmetic and memory take at least."""
        return self.flops / ceilings.flops, self.bytes / ceilings.bandwidth


def count_layer(shape: Shape, work: Work, element_bytes: int) -> dict[str, Need]:
    """Count what one layer needs, by group; element sizes in bytes."""
    tokens = count_tokens(work)
    read = work.context + work.decodes  # a decode reads its own token's keys and values too
    pairs = sum(count * start + count * (count + 1) // 2 for start, count in work.chunks)
    covered = sum(start + count for start, count in work.chunks)
    per_pair, per_token = 4 * shape.heads * shape.head_dim, 2 * shape.kv_heads * shape.head_dim * element_bytes
    return {
        "matrices": count_matrices(shape, tokens, element_bytes),
        "prefill attention": Need(per_pair * pairs, per_token * covered),
        "decode attention": Need(per_pair * read, per_token * read),
    }


def count_matrices(shape: Shape, tokens: Tokens, element_bytes: int) -> Need:
    """Count what a layer's token-wise operators need: weights once, activations in and out of each product."""
    widths = 3 * shape.hidden + shape.qkv_width + 2 * shape.heads * shape.head_dim + 3 * shape.ffn
    moved = shape.layer_parameters + 2 * tokens * widths
    return Need(2 * tokens * shape.layer_parameters, element_bytes * moved)


def get_floor(shape: Shape, work: Work, element_bytes: int, ceilings: Ceilings) -> float:
    """Give the fewest seconds that one layer of an iteration can take."""
    return sum(need.floor(ceilings) for need in count_layer(shape, work, element_bytes).values())


def explain_floor(shape: Shape, work: Work, element_bytes: int, ceilings: Ceilings) -> tuple[str, str]:
    """Name the group of operators with the largest floor, and what binds it: arithmetic or memory [A25]."""
    needs = count_layer(shape, work, element_bytes)
    group = max(needs, key=lambda name: needs[name].floor(ceilings))
    times = needs[group].times(ceilings)
    return group, LIMITS[times.index(max(times))]


def get_knee(shape: Shape, element_bytes: int, ceilings: Ceilings) -> float:
    """Give the tokens from which arithmetic, not reading the weights, binds the matrix products; activations apart."""
    return element_bytes * ceilings.flops / (2 * ceilings.bandwidth)


# NOTHING FASTER THAN PHYSICS


def raise_to_floor(fit: Fit, shape: Shape, element_bytes: int, ceilings: Ceilings) -> tuple[Fit, list[str]]:
    """Raise what is below its floor, so that no prediction is; also name what was raised.

    The table is raised knot by knot; kv to the cost of reading it; pair to its arithmetic, and pair + chunk_token and
    pair + history to the cost of reading keys and values, which bounds prefill attention from below for every chunk.
    """
    raised: dict[str, None] = {}
    parts = {
        name: raise_regime(getattr(fit, name), name, shape, element_bytes, ceilings, raised)
        for name in ("decode_only", "with_prefill")
    }
    return replace(fit, decode_only=parts["decode_only"], with_prefill=parts["with_prefill"]), list(raised)


def raise_regime(
    regime: Regime, name: str, shape: Shape, element_bytes: int, ceilings: Ceilings, raised: dict[str, None]
) -> Regime:
    """Raise one regime's table and coefficients."""
    per_pair = Need(4 * shape.heads * shape.head_dim, 0).floor(ceilings)
    per_token = Need(0, 2 * shape.kv_heads * shape.head_dim * element_bytes).floor(ceilings)
    old = regime.coefficients
    least = {"kv": max(per_pair, per_token), "decode": max(per_pair, per_token)}
    if name == "with_prefill":
        pair = max(old.get("pair", 0.0), per_pair)
        least |= {"pair": per_pair, "chunk_token": per_token - pair, "history": per_token - pair}
    floors = [count_matrices(shape, tokens, element_bytes).floor(ceilings) for tokens, _ in regime.table]
    new = {term: max(old.get(term, 0.0), least.get(term, 0.0)) for term in {**old, **least}}
    table = tuple((knot, max(value, floor)) for (knot, value), floor in zip(regime.table, floors, strict=True))
    raised |= {f"{name}.{term}": None for term, value in new.items() if value > old.get(term, 0.0)}
    if table != regime.table:
        raised[f"{name}.token_table"] = None
    return replace(regime, table=table, coefficients=new)


def get_implied(fit: Fit, shape: Shape, element_bytes: int) -> Mapping[str, float | None]:
    """Give the speeds that a fit implies, to compare with the ceilings; None where a coefficient is 0."""
    table, terms = fit.decode_only.table, fit.decode_only.coefficients
    (first, least), (last, most) = table[0], table[-1]
    pair = fit.with_prefill.coefficients.get("pair", 0.0)
    kv_bytes = 2 * shape.kv_heads * shape.head_dim * element_bytes
    return {
        "matrix_flops_at_largest_tokens": 2 * last * shape.layer_parameters / most if most else None,
        "weight_bandwidth_at_fewest_tokens": shape.layer_parameters * element_bytes / least
        if least and first
        else None,
        "kv_bandwidth": kv_bytes / terms["kv"] if terms.get("kv") else None,
        "prefill_attention_flops": 4 * shape.heads * shape.head_dim / pair if pair else None,
    }
