"""Write spec/clauses.json and the table of labels in spec/00-reading.md from the chapters; --check only compares.

A clause is a heading `### ID — title`, a sentence with exactly one word of RFC 2119 in capitals (perhaps after a line
"Holds for"), a line "Covers", and what explains it.
"""

import json
import re
import sys
from collections import defaultdict
from pathlib import Path

SPEC = Path(__file__).parents[1] / "spec"
EDITION = 1
HEADING = re.compile(r"^### ([A-Z]+-[A-Z0-9]+-\d+) — (.+)$")
EXECUTED = "trace|scenario|measure|quantile|interval|playback|deadlines"  # kinds of fenced examples
WORDS = re.compile(r"\b(MUST NOT|MUST|SHALL NOT|SHALL|SHOULD NOT|SHOULD|MAY)\b")
MARKS = ("<!-- labels: written by scripts/clauses.py -->", "<!-- end of labels -->")
CHAPTERS = re.compile(r"^[1-9]\d-.*\.md$")


def split_clauses(text: str) -> list[tuple[str, str, str]]:
    """Split a chapter into (id, title, body)."""
    found: list[tuple[str, str, list[str]]] = []
    for line in text.splitlines():
        heading = HEADING.match(line)
        if heading:
            found.append((heading[1], heading[2], []))
        elif line.startswith("#") and found:
            found.append(("", "", []))
        elif found:
            found[-1][2].append(line)
    return [(id, title, "\n".join(body).strip()) for id, title, body in found if id]


def read_clause(id: str, title: str, body: str, chapter: str) -> dict[str, object]:
    """Read one clause; exit with a message where its form is wrong."""
    examples = re.findall(rf"```json (?:{EXECUTED})\n.*?```", body, re.DOTALL)
    paragraphs = [
        part.strip() for part in re.sub(r"```.*?```", "", body, flags=re.DOTALL).split("\n\n") if part.strip()
    ]
    holds_for = (
        paragraphs.pop(0).removeprefix("*Holds for:* ").rstrip(".")
        if paragraphs[0].startswith("*Holds for:*")
        else "every engine"
    )
    sentence = " ".join(paragraphs[0].split())
    words = WORDS.findall(sentence)
    if len(words) != 1 or sentence.count(". ") or not sentence.endswith("."):
        sys.exit(f"{chapter}: {id}: not one sentence with exactly one word of RFC 2119: {sentence}")
    if not paragraphs[1].startswith("*Covers:*"):
        sys.exit(f"{chapter}: {id}: the line *Covers:* is missing")
    covers = [label.strip() for label in paragraphs[1].removeprefix("*Covers:*").rstrip(".").split(",")]
    rationale = "\n\n".join(" ".join(part.split()) for part in paragraphs[2:])
    page: dict[str, object] = {
        "id": id,
        "title": title,
        "level": words[0],
        "text": sentence,
        "chapter": chapter,
        "holds_for": holds_for,
    }
    return page | {
        "covers": covers,
        "rationale": rationale,
        "examples": [example.split("\n", 1)[1][:-3].strip() for example in examples],
    }


def read_chapters() -> list[dict[str, object]]:
    """Read the clauses of all chapters; exit where an id stands twice."""
    clauses = [
        read_clause(id, title, body, path.name)
        for path in sorted(SPEC.iterdir())
        if CHAPTERS.match(path.name)
        for id, title, body in split_clauses(path.read_text(encoding="utf-8"))
    ]
    ids = [clause["id"] for clause in clauses]
    if len(set(ids)) < len(ids):
        sys.exit(f"{max(ids, key=ids.count)} stands twice")
    return clauses


def sort_label(label: str) -> tuple[str, int, str]:
    """Order labels by their letters, then by their number."""
    parts = re.fullmatch(r"(\D*?)\s*(\d+)(.*)", label)
    return (parts[1], int(parts[2]), parts[3]) if parts else (label, 0, "")


def write_labels(clauses: list[dict[str, object]], reading: str) -> str:
    """Put the table of labels into the reading guide."""
    table: dict[str, list[str]] = defaultdict(list)
    for clause in clauses:
        for label in clause["covers"]:  # type: ignore[attr-defined]
            table[label].append(f"`{clause['id']}`")
    rows = [f"| {label} | {', '.join(table[label])} |" for label in sorted(table, key=sort_label)]
    before, rest = reading.split(MARKS[0])
    return (
        before
        + "\n".join([MARKS[0], "| label | clauses |", "| --- | --- |", *rows, MARKS[1]])
        + rest.split(MARKS[1])[1]
    )


def main() -> None:
    """Write both files, or compare them with what would be written."""
    clauses = read_chapters()
    reading = SPEC / "00-reading.md"
    wanted = {
        SPEC / "clauses.json": json.dumps({"edition": EDITION, "clauses": clauses}, indent=1, ensure_ascii=False)
        + "\n",
        reading: write_labels(clauses, reading.read_text(encoding="utf-8")),
    }
    for path, text in wanted.items():
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            sys.exit(f"spec/{path.name} is stale: run scripts/clauses.py")
    print(f"{len(clauses)} clauses")


if __name__ == "__main__":
    main()
