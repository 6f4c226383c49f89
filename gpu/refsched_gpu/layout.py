"""The layout of an iteration: everything the host decides before the device starts.

Rows of the iteration are the tokens of its chunks, then one per decode. Attention runs per query tile of a chunk, and
ragged over all decodes: one work item is a part of one sequence's keys for one KV head. The cache is contiguous for
each sequence, [KV head][capacity][head dim], its capacity rounded up to 16 tokens; every sequence has its own.
"""

from dataclasses import dataclass, field

from refsched.calibration.samples import Step
from refsched.calibration.shapes import Shape

ROUND = 16  # tokens to which a sequence's cache is rounded up
LEAST_KEYS, MOST_KEYS = 64, 1024  # of one work item
BLOCKS = 1056  # work items that fill a large chip: 8 for each of 132 multiprocessors


@dataclass(frozen=True, slots=True)
class Tile:
    """Place some queries of one chunk: rows of the iteration, keys before and up to them, the sequence's cache."""

    row: int
    rows: int
    query: int  # element offset of its block of queries, [KV head][group][rows][head dim]
    history: int  # keys before its first row
    cache: int  # element offset of the sequence's cache
    capacity: int  # tokens that fit there

    @property
    def keys(self) -> int:
        """Count the keys that its last row attends to."""
        return self.history + self.rows


@dataclass(frozen=True, slots=True)
class Layout:
    """Hold the tables that the operators read; one entry per row, per decode, or per work item."""

    tiles: tuple[Tile, ...]
    query: tuple[int, ...]  # by row: element offset of its query
    query_stride: tuple[int, ...]  # by row: rows of its block of queries
    cache: tuple[int, ...]  # by row
    capacity: tuple[int, ...]  # by row
    position: tuple[int, ...]  # by row
    first_decode: int  # row of the first decode
    keys: tuple[int, ...]  # by decode: keys it attends to, its own included
    items: tuple[tuple[int, int, int, int], ...]  # (decode, KV head, first key, last key + 1)
    ranges: tuple[tuple[int, int], ...]  # by decode and KV head: its items
    cache_elements: int
    score_elements: int
    kv_heads: int
    head_dim: int

    @property
    def rows(self) -> int:
        """Count the tokens of the iteration."""
        return len(self.position)

    @property
    def decode_rows(self) -> range:
        """Give the rows of the decodes."""
        return range(self.first_decode, self.rows)


@dataclass(slots=True)
class Draft:
    """Collect a layout row by row."""

    shape: Shape
    tiles: list[Tile] = field(default_factory=list)
    query: list[int] = field(default_factory=list)
    query_stride: list[int] = field(default_factory=list)
    cache: list[int] = field(default_factory=list)
    capacity: list[int] = field(default_factory=list)
    position: list[int] = field(default_factory=list)
    cache_elements: int = 0

    def take_cache(self, tokens: int) -> tuple[int, int]:
        """Take a cache for a sequence of this many tokens; give its offset and capacity."""
        capacity = -(-tokens // ROUND) * ROUND
        offset = self.cache_elements
        self.cache_elements += self.shape.kv_heads * capacity * self.shape.head_dim
        return offset, capacity

    def add_rows(self, rows: int, first_position: int, cache: int, capacity: int) -> int:
        """Add rows that share a block of queries; give the block's offset."""
        offset = len(self.position) * self.shape.heads * self.shape.head_dim
        self.query += [offset + row * self.shape.head_dim for row in range(rows)]
        self.query_stride += [rows] * rows
        self.cache += [cache] * rows
        self.capacity += [capacity] * rows
        self.position += range(first_position, first_position + rows)
        return offset


def lay_out(shape: Shape, step: Step, tile: int) -> Layout:
    """Lay an iteration out, its chunks in query tiles of at most `tile` rows."""
    draft = Draft(shape)
    for start, count in step.chunks:
        add_chunk(draft, start, count, tile)
    first_decode = len(draft.position)
    for context in step.contexts:
        draft.add_rows(1, context, *draft.take_cache(context + 1))
    keys = tuple(context + 1 for context in step.contexts)
    items, ranges = split_keys(keys, shape.kv_heads)
    return Layout(
        tiles=tuple(draft.tiles),
        query=tuple(draft.query),
        query_stride=tuple(draft.query_stride),
        cache=tuple(draft.cache),
        capacity=tuple(draft.capacity),
        position=tuple(draft.position),
        first_decode=first_decode,
        keys=keys,
        items=items,
        ranges=ranges,
        cache_elements=draft.cache_elements,
        score_elements=max((shape.heads * each.rows * each.keys for each in draft.tiles), default=0),
        kv_heads=shape.kv_heads,
        head_dim=shape.head_dim,
    )


def add_chunk(draft: Draft, start: int, count: int, tile: int) -> None:
    """Add a chunk, tile by tile; all its tiles share its sequence's cache."""
    cache, capacity = draft.take_cache(start + count)
    for done in range(0, count, tile):
        rows, row = min(tile, count - done), len(draft.position)
        query = draft.add_rows(rows, start + done, cache, capacity)
        draft.tiles.append(Tile(row, rows, query, start + done, cache, capacity))


def split_keys(
    keys: tuple[int, ...], kv_heads: int
) -> tuple[tuple[tuple[int, int, int, int], ...], tuple[tuple[int, int], ...]]:
    """Split all decodes' keys into work items: enough to fill a chip, none of them tiny or huge."""
    size = min(MOST_KEYS, max(LEAST_KEYS, sum(keys) * kv_heads // BLOCKS // LEAST_KEYS * LEAST_KEYS + LEAST_KEYS))
    items: list[tuple[int, int, int, int]] = []
    ranges: list[tuple[int, int]] = []
    for decode, count in enumerate(keys):
        for head in range(kv_heads):
            first = len(items)
            items += [(decode, head, key, min(key + size, count)) for key in range(0, count, size)]
            ranges.append((first, len(items)))
    return tuple(items), tuple(ranges)
