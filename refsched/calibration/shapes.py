"""Shapes of models: what a layer's work and a KV cache's size follow from."""

from collections.abc import Mapping
from dataclasses import dataclass

from refsched.errors import InputError
from refsched.units import Tokens


@dataclass(frozen=True, slots=True)
class Shape:
    """Hold the shape of a decoder: grouped queries and a gated feed-forward layer, of `experts` if any."""

    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    layers: int
    vocab: int
    experts: int = 1
    experts_per_token: int = 1

    @property
    def group(self) -> int:
        """Count the query heads that share a KV head."""
        return self.heads // self.kv_heads

    @property
    def qkv_width(self) -> int:
        """Count the columns of the projection to queries, keys and values."""
        return (self.heads + 2 * self.kv_heads) * self.head_dim

    @property
    def layer_parameters(self) -> int:
        """Count the weights of one layer's matrices."""
        attention = self.hidden * self.qkv_width + self.heads * self.head_dim * self.hidden
        return attention + 3 * self.hidden * self.ffn * self.experts

    @property
    def parameters(self) -> int:
        """Count the weights of the whole model, embedding and logits apart."""
        return self.layers * self.layer_parameters + 2 * self.hidden * self.vocab

    def kv_bytes(self, element_bytes: int = 2) -> int:
        """Count the bytes that one token's keys and values take in all layers."""
        return 2 * self.layers * self.kv_heads * self.head_dim * element_bytes


SHAPES: Mapping[str, Shape] = {
    "cpu-small": Shape(512, 8, 2, 64, 1792, 8, 8192),  # small enough to measure on a CPU in a minute
    "tiny": Shape(96, 4, 2, 32, 160, 1, 64),  # for tests
    "llama-3-8b": Shape(4096, 32, 8, 128, 14336, 32, 128256),
    "llama-3-70b": Shape(8192, 64, 8, 128, 28672, 80, 128256),
    "llama-3.2-1b": Shape(2048, 32, 8, 64, 8192, 16, 128256),
    "llama-3.2-3b": Shape(3072, 24, 8, 128, 8192, 28, 128256),
    "qwen3-8b": Shape(4096, 32, 8, 128, 12288, 36, 151936),
    "qwen3-14b": Shape(5120, 40, 8, 128, 17408, 40, 151936),
    "qwen3-32b": Shape(5120, 64, 8, 128, 25600, 64, 151936),
    "qwen3-30b-a3b": Shape(2048, 32, 4, 128, 768, 48, 151936, 128, 8),
}
SAME_SHAPE = {"llama-3.1-8b": "llama-3-8b", "llama-3.1-70b": "llama-3-70b", "llama-3.3-70b": "llama-3-70b"}


def get_shape(name: str) -> Shape:
    """Find a shape by a model's name, without publisher or an ending like "-Instruct"; raise InputError otherwise."""
    short = name.rpartition("/")[2].lower()
    for known in sorted((*SHAPES, *SAME_SHAPE), key=len, reverse=True):
        if short == known or short.startswith(f"{known}-"):
            return SHAPES[SAME_SHAPE.get(known, known)]
    raise InputError(f"{name!r} is no model whose shape is known ({', '.join(SHAPES)})", field="model")


def estimate_kv_tokens(shape: Shape, memory_bytes: int, element_bytes: int = 2, devices: int = 1) -> Tokens:
    """Estimate the KV tokens that fit beside the weights in the memory an engine may use."""
    left = memory_bytes * devices - shape.parameters * element_bytes
    return max(0, left // shape.kv_bytes(element_bytes))
