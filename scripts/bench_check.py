"""Print how fast a recorded trace is judged, and an engine over a pipe and in process; nothing is asserted.

The trace is made while it is read: one small run of the reference engine, repeated until it has the iterations asked
for (default 1,000,000), with requests of the same ids, which is allowed once they have ended.
"""

import argparse
import json
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1]))

from refsched.conformance.choice import choose_dialect  # noqa: E402
from refsched.conformance.pipe import Pipe  # noqa: E402
from refsched.conformance.recording import Recording  # noqa: E402
from refsched.conformance.selftest import find_wrong_verdicts, list_right_engines  # noqa: E402
from refsched.conformance.vectors import select_scenarios  # noqa: E402
from refsched.conformance.verdict import judge  # noqa: E402
from refsched.dialect import get_dialect  # noqa: E402
from refsched.model import Limits, Request  # noqa: E402
from refsched.scheduling.engine import ReferenceEngine  # noqa: E402
from refsched.scheduling.progress import Progress  # noqa: E402

LIMITS = Limits(token_budget=64, max_seqs=8, chunk_cap=16, block_size=4, num_blocks=64, max_len=128)
DIALECT = "vllm-v1"
Exchange = tuple[dict[str, object], dict[str, object]]


def record_round(iterations: int = 400, seed: int = 1) -> Iterator[Exchange]:
    """Run the reference engine on random arrivals for some iterations and until it is empty; give each exchange."""
    engine, progress, rng, made = ReferenceEngine(get_dialect(DIALECT), LIMITS), Progress(LIMITS), Random(seed), 0
    for number in range(10 * iterations):
        if number < iterations and len(progress.live) < 10 and rng.random() < 0.6:
            request = Request(f"r{made}", rng.randint(1, 60), rng.randint(1, 20))
            made += 1
            engine.submit(request)
            progress.start(request)
            yield {"op": "submit", "id": request.id, "prompt": request.prompt, "output": request.output}, {"ok": True}
        if not progress.live:
            return
        yield from record_iteration(engine, progress)


def record_iteration(engine: ReferenceEngine, progress: Progress) -> Iterator[Exchange]:
    """Run one iteration and give its two exchanges."""
    plan = engine.plan()
    state = engine.state()
    held = {entry.id: (state.held or {}).get(entry.id, 0) for entry in plan.entries}
    page = {"entries": [list(entry) for entry in plan.entries], "preempted": list(plan.preempted), "rejected": []}
    told = {
        "kv": {"free": state.free, "held": held},
        "running": list(state.running or ()),
        "waiting": list(state.waiting or ()),
    }
    yield {"op": "plan"}, {"ok": True, "plan": page, **told}
    _, emitted, finished = progress.settle(plan)
    engine.complete(emitted, finished)
    yield (
        {"op": "complete", "emitted": list(emitted), "finished": list(finished)},
        {"ok": True, "kv": {"free": engine.state().free}},
    )
    for id in finished:
        progress.end(id)


def repeat(iterations: int) -> Iterator[str]:
    """Give the lines of a trace of at least so many iterations."""
    yield '{"format":"refsched-trace/1","name":"bench"}'
    yield '{"seq":0,"op":"hello","protocol":1}'
    yield json.dumps({"seq": 0, "ok": True, "dialect": {"name": DIALECT}})
    limits = {
        name: getattr(LIMITS, name)
        for name in ("token_budget", "max_seqs", "chunk_cap", "block_size", "num_blocks", "max_len")
    }
    yield json.dumps({"seq": 1, "op": "reset", "limits": limits})
    yield '{"seq":1,"ok":true}'
    exchanges = [tuple(json.dumps(part)[1:] for part in exchange) for exchange in record_round()]
    seq, planned = 2, 0
    while planned < iterations:
        for request, answer in exchanges:
            yield f'{{"seq":{seq},{request}'
            yield f'{{"seq":{seq},{answer}'
            seq += 1
            planned += request.startswith('"op": "plan"')
    yield f'{{"seq":{seq},"op":"bye"}}'
    yield f'{{"seq":{seq},"ok":true}}'


ECHO = """import sys
for line in sys.stdin.buffer:
    seq = line[7:].split(b",", 1)[0]
    sys.stdout.buffer.write(b'{"seq":' + seq + b',"ok":true}' + bytes([10]))
    sys.stdout.buffer.flush()
"""


def bench_pipe(trips: int = 20_000) -> None:
    """Ask a command that only answers, again and again, and print the round trips per second."""
    pipe = Pipe([sys.executable, "-c", ECHO], 10.0)
    pipe.ask({"op": "hello", "protocol": 1})
    start = time.perf_counter()
    for _ in range(trips):
        pipe.ask({"op": "cancel", "id": "r0"})
    seconds = time.perf_counter() - start
    pipe.close()
    print(f"{trips / seconds:,.0f} round trips/s over a pipe")


def bench_corpus() -> None:
    """Run the whole corpus in process through every right engine there is, and print the time."""
    scenarios, start = select_scenarios(), time.perf_counter()
    wrong, engines = len(list(find_wrong_verdicts(scenarios))), len(list(list_right_engines()))
    seconds = time.perf_counter() - start
    print(f"{len(scenarios)} vectors through {engines} engines in process: {seconds:.1f} s, {wrong} do not pass")


def main() -> None:
    """Print all rates."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("iterations", nargs="?", type=int, default=1_000_000, help="of the long trace (1000000)")
    iterations = parser.parse_args().iterations
    bench_pipe()
    bench_corpus()
    bench_trace(iterations)


def bench_trace(iterations: int) -> None:
    """Judge a long trace and print the rate."""
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    recording = Recording(repeat(iterations))
    choice = choose_dialect(recording.opening.dialect)
    verdict = judge(recording.opening, recording.events(), choice).conclude(recording.closed)
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    totals = verdict.totals
    print(f"{verdict.relation}, {verdict.liveness.kind}: {totals.iterations:,} iterations, {totals.entries:,} entries")
    print(f"{seconds:.1f} s, {totals.iterations / seconds:,.0f} iterations/s")
    print(f"memory: {before / 1024:.0f} MiB before, at most {after / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
