"""Tables in plain text: columns as wide as they need, numbers to the right."""

from collections.abc import Sequence


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out rows under a header; the first column is aligned left, all others right."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    lines = [format_row(header, widths), "  ".join("-" * width for width in widths)]
    return "\n".join(lines + [format_row(row, widths) for row in rows])


def format_row(row: Sequence[str], widths: Sequence[int]) -> str:
    """Lay out one row."""
    first, *others = (
        cell.ljust(width) if not place else cell.rjust(width)
        for place, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join([first, *others]).rstrip()
