"""What was odd about a file: how often, and in which row first."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Tally:
    """Count oddities, each under the words that a note will use."""

    counts: dict[str, int] = field(default_factory=dict)
    first: dict[str, int] = field(default_factory=dict)

    def add(self, what: str, row: int) -> None:
        """Count one more row of this kind."""
        self.counts[what] = self.counts.get(what, 0) + 1
        self.first.setdefault(what, row)

    def write_notes(self) -> tuple[str, ...]:
        """Write one sentence for each kind, in the order of first sight."""
        return tuple(
            f"{what[0].upper()}{what[1:]}: {count} (first: row {self.first[what]})."
            for what, count in self.counts.items()
        )
