"""Measure how long the functions and modules are; print the long ones and fail on those past the limits of the house.

A function's size is the number of lines of its body that hold code: docstrings, comments and blank lines do not count.
A module's size is its number of lines.
"""

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

FOLDERS = ("refsched", "gpu", "scripts")
AIM = {"function": 30, "module": 300}  # longer ones are printed
LIMIT = {"function": 40, "module": 400}  # longer ones fail

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
WITHOUT_CODE = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}


@dataclass(frozen=True, slots=True)
class Size:
    """Hold the size of one function or module, in lines."""

    lines: int
    kind: str
    place: str


def find_code_lines(source: str, tree: ast.AST) -> set[int]:
    """Number the lines that hold code, from 1; a docstring is none."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in WITHOUT_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and ast.get_docstring(node) is not None:
            docstring = node.body[0]
            lines.difference_update(range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1))
    return lines


def measure_source(source: str, place: str) -> Iterator[Size]:
    """Measure one module and each function in it."""
    tree = ast.parse(source, place)
    code = find_code_lines(source, tree)
    yield Size(len(source.splitlines()), "module", place)
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS):
            body = range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1)
            yield Size(len(code.intersection(body)), "function", f"{place}:{node.lineno} {node.name}")


def measure_folders(root: Path) -> list[Size]:
    """Measure every module of the folders, and each function in it."""
    paths = sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.py"))
    return [
        size
        for path in paths
        for size in measure_source(path.read_text(encoding="utf-8"), path.relative_to(root).as_posix())
    ]


def summarise(kind: str, sizes: list[int]) -> str:
    """Say how many there are, and their median, 90th percentile (nearest rank) and maximum."""
    ordered = sorted(sizes)
    p90 = ordered[-(-9 * len(ordered) // 10) - 1]
    return f"{kind}s: {len(ordered)}, median {median(ordered):g}, p90 {p90}, max {ordered[-1]} lines"


def main() -> int:
    """Print the summary and the long ones; return 1 where one is past its limit."""
    sizes = measure_folders(Path(__file__).resolve().parents[1])
    for kind in AIM:
        print(summarise(kind, [size.lines for size in sizes if size.kind == kind]))
    for size in sorted(sizes, key=lambda size: (size.kind, -size.lines)):
        if size.lines > AIM[size.kind]:
            too_long = f", past the limit of {LIMIT[size.kind]}" if size.lines > LIMIT[size.kind] else ""
            print(f"  {size.kind} of {size.lines} lines: {size.place}{too_long}")
    return 1 if any(size.lines > LIMIT[size.kind] for size in sizes) else 0


if __name__ == "__main__":
    sys.exit(main())
