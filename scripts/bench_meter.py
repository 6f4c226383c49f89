#!/usr/bin/env python3
"""Print how long it takes to measure a file of records, from the file to the report, and the most memory it took.

    scripts/bench_meter.py [RECORDS | COUNT]

Without a file, COUNT records (a million) with ten gaps each are written to a temporary file first, which is not timed.
The numbers are for people to read; no test asserts them.
"""

import argparse
import platform
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from refsched.metrics.goodput import parse_slos  # noqa: E402
from refsched.metrics.measure import Settings, measure  # noqa: E402
from refsched.report.json_text import to_json_text  # noqa: E402
from refsched.report.measured import format_measured, to_json  # noqa: E402
from refsched.results.records import RecordsFile  # noqa: E402
from refsched.units import parse_time  # noqa: E402

GAPS = 10
SLOS = "ttft=1s,longest-gap=100ms"


def make_lines(count: int) -> Iterator[str]:
    """Make records with times in microseconds, as tools that read a clock write them."""
    source = random.Random(1)
    for number in range(count):
        planned = number * 3456
        sent = planned + source.randrange(200)
        at = sent + source.randrange(50_000, 900_000)
        deliveries = []
        for _ in range(GAPS + 1):
            deliveries.append(f"[{seconds(at)}, 1]")
            at += source.randrange(5_000, 60_000)
        yield (
            f'{{"id": "r{number}", "planned_s": {seconds(planned)}, "sent_s": {seconds(sent)}, '
            f'"prompt_tokens": {source.randrange(1, 4000)}, "outcome": "completed", '
            f'"deliveries": [{", ".join(deliveries)}], "ended_s": {seconds(at)}}}\n'
        )


def seconds(microseconds: int) -> str:
    """Write microseconds as seconds."""
    return f"{microseconds // 10**6}.{microseconds % 10**6:06d}"


def run(path: str) -> None:
    """Measure one file and print what it took."""
    began = time.process_time()
    records = RecordsFile(path)
    measured = measure(records, settings=Settings(slos=parse_slos(SLOS), stall=parse_time("200ms").ticks))
    done = time.process_time()
    text = to_json_text(to_json(measured)) + "\n".join(format_measured(measured))
    reported = time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    gaps = measured.populations["itl.chunk"].n
    print(f"{records.count:,} records, {gaps:,} gaps, {Path(path).stat().st_size / 1e6:,.0f} MB of text")
    print(
        f"read and measured in {done - began:.1f} CPU s, reported in {reported - done:.1f} s ({len(text):,} characters)"
    )
    print(f"peak memory {peak / 1e6:,.0f} MB; {platform.machine()}, Python {platform.python_version()}")


def main() -> int:
    """Run on the file given, or on one made for the purpose."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", default="1000000", metavar="RECORDS | COUNT")
    what = parser.parse_args().what
    if not what.isdigit():
        run(what)
        return 0
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(make_lines(int(what)))
        file.flush()
        run(file.name)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
