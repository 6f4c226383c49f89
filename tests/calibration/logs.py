"""Logs of iterations with known coefficients, for the fit to find again."""

import random
from pathlib import Path

from refsched.model import Work


def draw_works(count: int, seed: int) -> list[Work]:
    """Draw iterations: a third with decodes only, a third with a chunk only, a third with both."""
    draw = random.Random(seed)
    works = []
    for place in range(count):
        decodes = 0 if place % 3 == 1 else draw.randint(1, 64)
        chunks = ((draw.choice((0, 512, 4096)), draw.randint(16, 1024)),) if place % 3 else ()
        works.append(Work(chunks, decodes, decodes * draw.randint(50, 3000)))
    return works


def price(work: Work) -> float:
    """Price in milliseconds: 5 + 0.02 a decode + 0.0001 a read; with a chunk 6 + 0.05 a token past 128, more a read."""
    if not work.chunks:
        return 5 + 0.02 * work.decodes + 0.0001 * work.context
    tokens = work.decodes + sum(count for _, count in work.chunks)
    pairs = sum(count * start + count * (count + 1) / 2 for start, count in work.chunks)
    return 6 + 0.05 * max(0, tokens - 128) + 0.0002 * work.context + 2e-6 * pairs


def write_log(path: Path, works: list[Work], noise: float = 0.0, seed: int = 0) -> None:
    """Write a step log with one chunk a row at most."""
    draw = random.Random(seed)
    lines = ["tokens,decodes,kv,history,time_ms"]
    for work in works:
        start, count = work.chunks[0] if work.chunks else (0, 0)
        time = price(work) * draw.uniform(1 - noise, 1 + noise)
        lines.append(f"{count + work.decodes},{work.decodes},{work.context},{start},{time:.9f}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
