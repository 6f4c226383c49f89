"""A decoder layer in float64, whole sequences at once: no chunks, no cache, no tiles, no batch."""

from typing import Any

import numpy as np

from refsched.calibration.shapes import Shape
from refsched_gpu.layer import Weights

ROPE_BASE = 500000.0


def forward(shape: Shape, weights: Weights, to_host: Any, x: Any) -> Any:
    """Run one layer over one sequence, [token][hidden]."""
    w = {name: to_host(getattr(weights, name)) for name in weights.__slots__}
    x = np.asarray(x, np.float64)
    x = x + attend(shape, normalise(x, w["norm_in"]) @ w["qkv"]) @ w["out"]
    gate, up = np.split(normalise(x, w["norm_ffn"]) @ w["gate_up"], 2, axis=1)
    return x + (gate / (1 + np.exp(-gate)) * up) @ w["down"]


def normalise(x: Any, weight: Any) -> Any:
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * weight


def rotate(heads: Any, positions: Any) -> Any:
    """Rotate [token][head][dim] as complex numbers, pair (d, d + half)."""
    half = heads.shape[-1] // 2
    turn = np.exp(1j * np.asarray(positions)[:, None] * ROPE_BASE ** (-np.arange(half) / half))[:, None]
    turned = (heads[..., :half] + 1j * heads[..., half:]) * turn
    return np.concatenate([turned.real, turned.imag], axis=-1)


def attend(shape: Shape, qkv: Any) -> Any:
    tokens = len(qkv)
    heads = qkv.reshape(tokens, shape.heads + 2 * shape.kv_heads, shape.head_dim)
    query = rotate(heads[:, : shape.heads], range(tokens))
    key = rotate(heads[:, shape.heads : shape.heads + shape.kv_heads], range(tokens))
    value = heads[:, shape.heads + shape.kv_heads :]
    out = np.empty_like(query)
    for token in range(tokens):
        for head in range(shape.heads):
            shared = head // shape.group
            scores = key[: token + 1, shared] @ query[token, head] / np.sqrt(shape.head_dim)
            share = np.exp(scores - scores.max())
            out[token, head] = share / share.sum() @ value[: token + 1, shared]
    return out.reshape(tokens, -1)
