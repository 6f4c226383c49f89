"""Reading one workload file, from its first line to its provenance."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import PurePath

from refsched.errors import InputError
from refsched.model import check_count
from refsched.units import Tokens
from refsched.workload.formats import azure, burstgpt, mooncake, own, plain
from refsched.workload.formats.build import Builder, take_offers
from refsched.workload.formats.layout import Layout, Row
from refsched.workload.formats.lines import Lines, open_lines
from refsched.workload.formats.recognise import choose_layout, is_window, read_first_fields
from refsched.workload.formats.rows import Line, find_first, read_rows
from refsched.workload.formats.tally import Tally
from refsched.workload.formats.ties import TIES
from refsched.workload.offer import Offer, Workload

LAYOUTS: tuple[Layout, ...] = (*own.LAYOUTS, *azure.LAYOUTS, *mooncake.LAYOUTS, *burstgpt.LAYOUTS, *plain.LAYOUTS)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Choose how many requests to read (None: all) and what equal times become: `raw`, `spread` or `scatter`."""

    first: int | None = None
    ties: str = "raw"
    seed: int = 0  # only `scatter` looks at it

    def __post_init__(self) -> None:
        if self.first is not None:
            check_count(self.first, "first")
        if self.ties not in TIES:
            raise InputError(f"{self.ties!r} is not one of {', '.join(TIES)}", field="ties")


def read_workload(path: str, options: ReadOptions = ReadOptions()) -> Workload:
    """Read the requests of a workload file; raise InputError naming file, row and field."""
    reading = Reading(path, options)
    offers = TIES[options.ties](list(reading), options.seed)
    return replace(reading.describe(), offers=offers)


class Reading:
    """Read the offers of a file one at a time, times as they are; what was read can be described afterwards."""

    def __init__(self, path: str, options: ReadOptions):
        self.path, self.options = path, options
        self.described: Workload | None = None
        self.lines: Lines | None = None
        self.given = 0

    def __iter__(self) -> Iterator[Offer]:
        options = self.options
        with open_lines(self.path) as lines:
            self.lines = lines
            first = find_first(iter(lines))
            layout = choose(first)
            if not layout.time:
                raise InputError("has lengths but no arrival times; combine it: poisson:rate=4,n=1000,lengths=FILE")
            builder = Builder(layout.time, Tally())
            for offer in take_offers(read_rows(layout, first, iter(lines), builder.tally), builder, options.first):
                self.given += 1
                yield offer
            source = _describe(layout, builder, lines, options)
        notes = _write_notes(layout, builder, options, self.given)
        self.described = Workload(PurePath(self.path).name, layout.name, (), notes, source)

    def estimate_total(self) -> int | None:
        """Estimate how many requests there are from how far the file was read; None before that can be told."""
        share = None if self.lines is None else self.lines.get_share()
        total = round(self.given / share) if share else None
        return self.options.first if total is None else min(total, self.options.first or total)

    def describe(self) -> Workload:
        """Say what was read, offers apart; the file must have been read to its end."""
        assert self.described is not None, "the file was not read to its end"
        return self.described


def read_lengths(path: str) -> tuple[tuple[Tokens, Tokens], ...]:
    """Read the (prompt, output) pairs of a file with or without times; raise InputError naming file, row and field."""
    with open_lines(path) as lines:
        first = find_first(iter(lines))
        rows = read_rows(choose(first), first, iter(lines), Tally())
        lengths = tuple((row.prompt, row.output) for _, row in rows if isinstance(row, Row))
        if not lengths:
            raise InputError("has no rows")
    return lengths


def choose(first: Line) -> Layout:
    """Choose the format that the first line shows; raise InputError naming its row."""
    try:
        if is_window(first[1]):
            raise InputError("has rates, not requests; draw some: servegen:trace=FILE")
        return choose_layout(*read_first_fields(first[1]), LAYOUTS)
    except InputError as error:
        raise error.at(row=first[0]) from None


def _describe(layout: Layout, builder: Builder, lines: Lines, options: ReadOptions) -> dict[str, str | int]:
    source: dict[str, str | int] = {"format": layout.name, "sha256": lines.compute_sha256(), "rows": builder.rows}
    if options.first is not None:
        source["first"] = options.first
    source["ties"] = options.ties
    if options.ties == "scatter":
        source["seed"] = options.seed
    if builder.block_tokens:
        source["block_tokens"] = builder.block_tokens
        source["hash_ids"], source["hash_ids_reused"] = builder.chain.ids, builder.chain.reused
    return source


def _write_notes(layout: Layout, builder: Builder, options: ReadOptions, given: int) -> tuple[str, ...]:
    notes = [layout.note] if layout.note else []
    if builder.ties:
        notes.append(f"Requests with the same time as the one before: {builder.ties}; {_TIES_NOTES[options.ties]}.")
    if options.first is not None and given == options.first:
        notes.append(f"Only the first {options.first} requests were read.")
    return (*notes, *builder.tally.write_notes())


_TIES_NOTES = {
    "raw": "all of an instant are offered at once (ties=raw)",
    "spread": "each instant's were put at even steps in its tick (ties=spread)",
    "scatter": "each instant's were put at random places in its tick (ties=scatter)",
}
