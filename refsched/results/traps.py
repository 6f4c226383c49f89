"""Traps: what makes a correct number say something else than its reader thinks."""

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal

from refsched.record import Outcome, Record
from refsched.results.run import CUT, Finding, Run

LOW = Decimal("0.3")  # a TTFT below this share of the median is far below it
NEXT = Decimal("0.6")  # and alone there, where the next is above this
NEEDED = 299  # values for the largest to be at or above the 99th percentile with 95 % confidence
WAIT = Decimal("0.05")  # a wait in the client of this share of the latency is worth saying
TIMEOUTS = tuple(map(Decimal, (10, 30, 60, 120, 180, 300, 600, 900, 1800, 3600)))
SECOND = Decimal(10**12)


def find_traps(run: Run) -> list[Finding]:
    """List the traps that apply to a run, those of its tool first; each name once."""
    found = [*run.traps, *(trap for check in CHECKS for trap in check(run))]
    return list({trap.id: trap for trap in reversed(found)}.values())[::-1]


def list_counted(run: Run) -> list[Record]:
    """List what the tool counts as success."""
    return [r for r in run.records if r.outcome is Outcome.COMPLETED or r.reason == CUT]


def find_ttft(record: Record) -> Decimal | None:
    """Give the time to the first delivery with text, in seconds."""
    first = next((each.at for each in record.deliveries if each.kind in ("content", "reasoning")), None)
    return None if first is None or record.sent is None else Decimal(first - record.sent) / SECOND


def check_truncated(run: Run) -> Iterator[Finding]:
    """Streams that were cut, or hold an error, are counted as success; or nothing shows it."""
    success = run.success
    if success.shown is None:
        yield Finding(
            "truncated-unknown",
            f"{success.counted} successes are counted, but how many streams were whole cannot be known from this file: "
            f"{success.because}",
        )
    elif success.shown < success.counted:
        yield Finding(
            "truncated-counted",
            f"{success.counted} successes are counted, but only {success.shown} streams were whole: {success.because}",
        )


def check_failures(run: Run) -> Iterator[Finding]:
    """Failures are in no latency statistic, so these describe survivors."""
    failed = sum(record.outcome is not Outcome.COMPLETED for record in run.records)
    failed = failed or int(run.claims.get("failed", 0))
    total = len(run.records) or int(run.claims.get("completed", 0)) + failed
    if failed and total:
        share = Decimal(failed * 100) / total
        yield Finding(
            "failures-dropped",
            f"{failed} of {total} requests ({share:.3g} %) did not end well and are in no latency statistic: with "
            f"them as infinite, every quantile above p{100 - share:.3g} is infinite",
        )


def check_single(run: Run) -> Iterator[Finding]:
    """One-token outputs have no TPOT; tools let them pass a target, fail it, or leave them out."""
    single = sum(record.output_tokens == 1 for record in list_counted(run))
    if single:
        rules = {
            "vllm": "passes",
            "sglang": "passes",
            "aiperf": "fails",
            "inference-perf": "fails",
            "guidellm": "is left out",
        }
        rule = f"; under a TPOT target each {rules[run.tool]}" if run.tool in rules else ""
        yield Finding("one-token-outputs", f"{single} outputs of one token have a TTFT and no TPOT{rule}")


def check_chunks(run: Run) -> Iterator[Finding]:
    """Several tokens come in one chunk, so gaps between chunks are not gaps between tokens."""
    rows = [r for r in list_counted(run) if r.output_tokens and len(r.deliveries) > 1 and r.token_source != "requested"]
    if run.without & {"itl.chunk"} or not rows:
        return
    chunks = sum(each.kind in ("content", "reasoning") for record in rows for each in record.deliveries)
    tokens = sum(record.output_tokens or 0 for record in rows)
    if chunks and Decimal(tokens) / chunks > Decimal("1.02") and run.tool != "inference-perf":
        yield Finding(
            "chunks-counted-as-tokens",
            f"{tokens} tokens came in {chunks} chunks: gaps between chunks are {Decimal(tokens) / chunks:.3g} times as "
            "long as gaps between tokens, and a peak that counts chunks is too low",
        )


def check_cache(run: Run) -> Iterator[Finding]:
    """A few first tokens far earlier than all others point to a warm prefix cache."""
    values = sorted(value for record in list_counted(run) if (value := find_ttft(record)) is not None)
    if len(values) < 4:
        return
    median = values[len(values) // 2]
    low = [value for value in values if value < LOW * median]
    if low and len(low) <= max(1, len(values) // 20) and values[len(low)] > NEXT * median:
        yield Finding(
            "cache-warmed-ttft",
            f"{len(low)} of {len(values)} TTFTs are below {LOW} of the median ({low[0]:.4g} s against {median:.4g} s): "
            "a warm prefix cache, most likely from warm-up or a prompt sent before",
        )


def check_sample(run: Run) -> Iterator[Finding]:
    """Too few requests for a p99 to say more than the maximum does."""
    count = int(run.claims.get("completed", len(list_counted(run))))
    if 0 < count < NEEDED:
        yield Finding(
            "too-few-for-p99",
            f"p99 of {count} requests is hardly more than the largest value: {NEEDED} are needed for the largest to "
            "bound it with 95 % confidence, 368 for an interval",
        )


def check_waits(run: Run) -> Iterator[Finding]:
    """Requests wait in the client, outside every latency; or could, and nothing shows it."""
    waits = [r.sent - r.planned for r in run.records if r.sent is not None and r.planned is not None]
    mean = Decimal(sum(waits)) / len(waits) / SECOND if waits else run.claims.get("mean_wait", Decimal(0))
    latency = run.claims.get("mean_e2e")
    if latency and mean > WAIT * latency:
        yield Finding(
            "client-wait-hidden",
            f"requests waited {mean:.4g} s in the client on average, beside a latency of {latency:.4g} s that does not "
            "contain it",
        )
    elif not waits and "mean_wait" not in run.claims and "rate" in run.claims and "cap" in run.claims:
        yield Finding(
            "client-wait-hidden",
            f"a rate of {run.claims['rate']:.4g}/s with at most {run.claims['cap']:.4g} at once may have made requests "
            "wait in the client, and this file cannot show it",
        )


def check_timeouts(run: Run) -> Iterator[Finding]:
    """Several latencies right at a round number of seconds are a timeout, not a latency."""
    ended = [Decimal(r.ended - r.sent) / SECOND for r in run.records if r.ended is not None and r.sent is not None]
    for limit in TIMEOUTS:
        near = sum(abs(value - limit) < Decimal("0.01") for value in ended)
        if near >= 3:
            yield Finding("censored", f"{near} requests ended within 10 ms of {limit} s: a timeout cut them off")


def check_zeros(run: Run) -> Iterator[Finding]:
    """Values of exactly 0 stand for what is not known."""
    zeros = [line.name for line in run.reported if line.value == 0 and is_least_latency(line.name)]
    if zeros and run.success.counted:
        yield Finding("zero-entries", f"{zeros[0]} is exactly 0: a value that is not known was entered as 0")


def is_least_latency(name: str) -> bool:
    """Say whether a reported number is the least TTFT, TPOT or latency of successes."""
    words = ("first_token", "ttft", "tpot", "per_output_token", "request_latency", "e2e_latency", "end_to_end")
    least = name.endswith((".min", "_min")) and ".errored." not in name and ".incomplete." not in name
    return least and any(word in name for word in words)


def check_unknown_tokens(run: Run) -> Iterator[Finding]:
    """The length that was asked for is counted as output."""
    asked = sum(record.token_source == "requested" for record in run.records)
    if asked:
        yield Finding(
            "requested-length-counted",
            f"the output of {asked} requests is the length that was asked for, not what came",
        )


CHECKS: Sequence[Callable[[Run], Iterator[Finding]]] = (
    check_truncated,
    check_failures,
    check_single,
    check_chunks,
    check_cache,
    check_sample,
    check_waits,
    check_timeouts,
    check_zeros,
    check_unknown_tokens,
)
