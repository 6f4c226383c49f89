"""Which iterations are measured: a table over tokens, chunks crossed with histories, batches crossed with contexts,
mixes, and held-out ones: random, ragged, sometimes with two chunks.

Matrix products climb a staircase, on a GPU of tiles of 128 tokens, so its table has a knot at both sides of every step:
128 k and 128 k + 16. On a CPU, round counts cost less than others and are rare in use, so there are few of them. Chunks
and histories are crossed because their terms cannot be told apart otherwise.
"""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

from refsched.calibration.samples import Step

TILE_TOKENS, AFTER = 128, 16
HELD_OUT = {"prefill": 12, "decode": 12, "mixed": 16}


@dataclass(frozen=True, slots=True)
class Design:
    """Hold the grid for one kind of machine."""

    table: tuple[int, ...]
    chunks: tuple[int, ...]
    histories: tuple[int, ...]
    batches: tuple[int, ...]
    contexts: tuple[int, ...]
    long: tuple[tuple[int, int], ...]  # (decodes, context): beyond the crossed grid
    mixes: tuple[tuple[int, int, int, int], ...]  # (chunk, history, decodes, context)
    logits: tuple[int, ...]  # sequences that sample
    depth: int  # layers measured together
    tile: int  # queries of a prefill tile
    repeats: int  # in a pass
    matmul: int  # edge of the matrices for the ceiling
    copied: int  # elements copied for the ceiling


GPU = Design(
    table=tuple(sorted({1, 8, 16, 32, 48, 64, 96, *range(128, 2049, 128), *range(144, 2049, 128)})),
    chunks=(16, 128, 256, 512, 1024, 2048),
    histories=(0, 512, 2048, 8192, 16384, 30720),
    batches=(1, 4, 16, 64, 256),
    contexts=(16, 256, 1024, 4096, 8192),
    long=((1, 32768), (4, 32768), (16, 32768)),
    mixes=(
        (512, 0, 64, 1024),
        (256, 4096, 128, 2048),
        (1024, 8192, 32, 512),
        (128, 512, 256, 1024),
        (1792, 0, 128, 256),
        (64, 16384, 16, 8192),
    ),
    logits=(1, 16, 64, 128, 256),
    depth=8,
    tile=256,
    repeats=3,
    matmul=8192,
    copied=1 << 31,
)
CPU = Design(
    table=(1, 2, 3, 4, 5, 7, 9, 11, 15, 21, 29, 37, 49, 61, 75, 93, 123, 143, 187, 251, 277, 379, 427, 512),
    chunks=(15, 61, 123, 251, 509),
    histories=(0, 500, 2048),
    batches=(1, 4, 15, 61),
    contexts=(61, 250, 1021, 2048),
    long=(),
    mixes=(
        (29, 0, 8, 500),
        (123, 1021, 4, 2048),
        (251, 0, 30, 250),
        (61, 2000, 15, 1021),
        (15, 500, 2, 1021),
        (251, 1500, 8, 61),
    ),
    logits=(1, 4, 15, 61),
    depth=2,
    tile=64,
    repeats=2,
    matmul=1024,
    copied=1 << 17,  # fits a core's cache, as the small shape's weights do
)
TINY = Design(
    (1, 8, 16, 32, 48), (8, 16, 32), (0, 64), (1, 8), (16, 64), (), ((8, 16, 4, 16), (16, 0, 8, 32)),
    (1, 8), 1, 16, 1, 64, 1 << 12,
)  # fmt: skip


def list_steps(design: Design, seed: int) -> Iterator[tuple[str, Step]]:
    """Give every iteration with its use: table, train or held_out."""
    yield from (("table", Step((), (0,) * tokens)) for tokens in design.table)
    yield from (("train", Step(((start, count),))) for count in design.chunks for start in design.histories)
    crossed = [(batch, context) for batch in design.batches for context in design.contexts]
    yield from (("train", Step((), (context,) * batch)) for batch, context in (*crossed, *design.long))
    for count, start, batch, context in design.mixes:
        yield "train", Step(((start, count),), (context,) * batch)
    draw = random.Random(seed)
    for kind, times in HELD_OUT.items():
        yield from (("held_out", draw_step(design, kind, draw)) for _ in range(times))


def draw_step(design: Design, kind: str, draw: random.Random) -> Step:
    """Draw a ragged iteration inside the grid; a third of those with prefill have two chunks, half as long."""
    chunks: list[tuple[int, int]] = []
    if kind != "decode":
        parts = 1 if draw.random() < 2 / 3 else 2
        most = design.table[-1] // 2 // parts
        chunks = [(draw_start(design, draw), draw_log(draw, 8, most)) for _ in range(parts)]
    if kind == "prefill":
        return Step(tuple(chunks))
    batch, top = (
        draw_log(draw, 1, min(design.batches[-1], design.table[-1] // 2)),
        draw_log(draw, 16, design.contexts[-1]),
    )
    return Step(tuple(chunks), tuple(draw_log(draw, 8, top) for _ in range(batch)))


def draw_start(design: Design, draw: random.Random) -> int:
    """Draw a history, none for a third of the chunks."""
    return 0 if draw.random() < 1 / 3 else draw_log(draw, 1, design.histories[-1])


def draw_log(draw: random.Random, least: int, most: int) -> int:
    """Draw evenly over orders of magnitude."""
    return round(math.exp(draw.uniform(math.log(least), math.log(max(least, most)))))
