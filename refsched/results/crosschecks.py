"""Cross-checks that any summary must pass, whatever its definitions are: what fails one contradicts itself."""

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal

from refsched.results.run import Finding, Run, is_same

CLOSE = Decimal("1e-6")  # for identities of numbers that a tool has rounded for display
LOOSE = Decimal("0.25")  # for relations that hold for means only about
FAR = Decimal("1.5")
ASKED = "the average counts the length that was asked for, and "
Claims = Mapping[str, Decimal]
Number = Decimal | None


def find_contradictions(run: Run) -> list[Finding]:
    """Run every cross-check on a run; each that fails is named, with the numbers."""
    found = [finding for check in CHECKS for finding in check(run)]
    return [*run.contradictions, *check_reproduced(run), *found]


def check_reproduced(run: Run) -> Iterator[Finding]:
    """Each reported number must follow from the file's own data."""
    failed = [line for line in run.reported if line.reproduced is False]
    if failed:
        first = failed[0]
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        yield Finding("not-reproduced", f"{first.name}: {first.reason}{more}; taken as {first.definition}")


def has(claims: Claims, *names: str) -> bool:
    """Say whether all these numbers are known."""
    return all(name in claims for name in names)


def is_close(value: Decimal, other: Decimal, by: Decimal = CLOSE) -> bool:
    """Say whether two numbers are equal within a share of the larger."""
    return abs(value - other) <= by * max(abs(value), abs(other))


def check_rates(run: Run) -> Iterator[Finding]:
    """A rate is an amount by a duration [1]."""
    claims = run.claims
    amounts = {"request_throughput": "completed", "output_throughput": "output_tokens"}
    for rate, amount in amounts.items():
        if run.tool == "inference-perf" and rate == "output_throughput":
            continue  # its total is of another count of tokens; its reader says so
        if has(claims, rate, amount, "duration") and claims["duration"] > 0:
            again = claims[amount] / claims["duration"]
            if not is_close(claims[rate], again, phase_slack(run)):
                yield Finding(
                    "rate-does-not-fit",
                    f"{rate} is {claims[rate]:.6g}/s, but {amount} {claims[amount]} in {claims['duration']:.6g} s is "
                    f"{again:.6g}/s",
                )


def phase_slack(run: Run) -> Decimal:
    """Give how far rates may be off: AIPerf's and GenAI-Perf's stand on another duration than they report."""
    return Decimal("0.5") if run.tool == "aiperf" else Decimal("1e-4")


def check_totals(run: Run) -> Iterator[Finding]:
    """Input and output tokens together are at least the output tokens."""
    claims = run.claims
    if (
        has(claims, "total_throughput", "output_throughput")
        and claims["total_throughput"] < claims["output_throughput"]
    ):
        yield Finding(
            "total-below-output",
            f"total token throughput {claims['total_throughput']:.6g} is below that of output tokens "
            f"{claims['output_throughput']:.6g}",
        )


def check_peak_output(run: Run) -> Iterator[Finding]:
    """A peak is at least the average [2]."""
    claims = run.claims
    if has(claims, "peak_output", "output_throughput") and claims["peak_output"] < claims["output_throughput"]:
        yield Finding(
            "peak-below-average",
            f"peak output {claims['peak_output']:.6g}/s is below the average {claims['output_throughput']:.6g}/s: "
            + ASKED * any(record.token_source == "requested" for record in run.records)
            + "the peak counts chunks, not tokens",
        )


def check_peak_concurrency(run: Run) -> Iterator[Finding]:
    """A peak of concurrency is at most the cap and at least the mean [3]."""
    claims = run.claims
    if has(claims, "peak_concurrency", "cap") and claims["peak_concurrency"] > claims["cap"]:
        yield Finding(
            "peak-above-cap",
            f"peak concurrency {claims['peak_concurrency']:.6g} is above the cap {claims['cap']:.6g}: requests that "
            "touch the same second are counted as if they overlapped",
        )
    mean = get_mean_concurrency(claims)
    if has(claims, "peak_concurrency") and mean is not None and claims["peak_concurrency"] < mean * (1 - CLOSE):
        yield Finding(
            "peak-below-mean",
            f"peak concurrency {claims['peak_concurrency']:.6g} is below the mean {mean:.6g} that latencies imply",
        )


def get_mean_concurrency(claims: Claims) -> Number:
    """Give the sum of latencies by the duration."""
    if not has(claims, "completed", "mean_e2e", "duration") or claims["duration"] <= 0:
        return None
    return claims["completed"] * claims["mean_e2e"] / claims["duration"]


def check_little(run: Run) -> Iterator[Finding]:
    """Mean concurrency is the request rate times the mean latency [4]."""
    claims = run.claims
    if has(claims, "request_throughput", "mean_e2e", "mean_concurrency") and claims["mean_concurrency"] > 0:
        implied = claims["request_throughput"] * claims["mean_e2e"]
        if not is_close(implied, claims["mean_concurrency"], LOOSE):
            yield Finding(
                "little-does-not-hold",
                f"{claims['request_throughput']:.6g} requests/s of {claims['mean_e2e']:.6g} s make {implied:.6g} at "
                f"once, but mean concurrency is {claims['mean_concurrency']:.6g}",
            )


def check_decode(run: Run) -> Iterator[Finding]:
    """Mean latency is about mean TTFT and (n - 1) times TPOT [5]."""
    claims = run.claims
    if not has(claims, "mean_e2e", "mean_ttft", "mean_tpot", "output_tokens", "completed") or not claims["completed"]:
        return
    tokens = claims["output_tokens"] / claims["completed"]
    decode = claims["mean_e2e"] - claims["mean_ttft"]
    if tokens <= 2 or decode <= 0 or claims["mean_tpot"] <= 0:
        return
    implied = decode / (tokens - 1)
    ratio = max(implied / claims["mean_tpot"], claims["mean_tpot"] / implied)
    if ratio > FAR:
        yield Finding(
            "tpot-does-not-fit",
            f"mean TPOT is {claims['mean_tpot'] * 1000:.6g} ms, but (mean latency - mean TTFT) / (mean tokens - 1) is "
            f"{implied * 1000:.6g} ms",
        )


def check_all_gaps(run: Run) -> Iterator[Finding]:
    """All gaps together are the decode time of all requests [8]."""
    claims = run.claims
    if has(claims, "total_itl", "total_e2e", "total_ttft"):
        decode = claims["total_e2e"] - claims["total_ttft"]
        if not is_close(claims["total_itl"], decode):
            yield Finding(
                "decode-does-not-fit",
                f"all gaps together are {claims['total_itl']:.6g} s, but from first token to end it is {decode:.6g} s",
            )


def check_counts(run: Run) -> Iterator[Finding]:
    """Completed and failed requests are all that were sent [9]."""
    claims = run.claims
    for whole in ("planned", "total"):
        if has(claims, whole, "completed"):
            known = claims["completed"] + claims.get("failed", Decimal(0))
            if known > claims[whole] or (has(claims, "failed") and known != claims[whole] and run.tool != "guidellm"):
                yield Finding(
                    "counts-do-not-add-up",
                    f"{claims['completed']} completed and {claims.get('failed', 0)} failed are not the {claims[whole]} "
                    f"{whole}",
                )


def check_schedule(run: Run) -> Iterator[Finding]:
    """N sends at a rate take (N - 1) / rate [10]."""
    claims = run.claims
    sent = sorted(record.sent for record in run.records if record.sent is not None and record.clock == "run")
    if run.trim:
        yield from check_least_span(claims)
    if not has(claims, "rate") or len(sent) < 20 or claims["rate"] <= 0 or run.trim:
        return
    span, due = Decimal(sent[-1] - sent[0]) / 10**12, (len(sent) - 1) / claims["rate"]
    slack = max(Decimal("0.2"), 4 / Decimal(len(sent)).sqrt())
    if abs(span - due) > slack * due:
        yield Finding(
            "rate-not-kept",
            f"{len(sent)} sends at {claims['rate']:.6g}/s should take {due:.4g} s and took {span:.4g} s: the load that "
            "was asked for is not the load that was offered",
        )


def check_least_span(claims: Claims) -> Iterator[Finding]:
    """Find sends that must have been slower than asked for: all but the last latency of the duration was for them."""
    if not has(claims, "rate", "total", "duration", "max_e2e") or claims["total"] < 20 or claims["rate"] <= 0:
        return
    least, due = claims["duration"] - claims["max_e2e"], (claims["total"] - 1) / claims["rate"]
    if least > due * (1 + max(Decimal("0.2"), 4 / claims["total"].sqrt())):
        yield Finding(
            "rate-not-kept",
            f"{claims['total']} sends at {claims['rate']:.6g}/s should take {due:.4g} s and took at least {least:.4g} s"
            ": the load that was asked for is not the load that was offered",
        )


def check_order(run: Run) -> Iterator[Finding]:
    """Within one metric, min <= p1 <= … <= p99 <= max, and the mean lies inside."""
    groups: dict[str, dict[str, Decimal]] = {}
    for line in run.reported:
        family, key = split_name(line.name)
        if line.value is not None and key is not None:
            groups.setdefault(family, {})[key] = line.value
    for family, values in groups.items():
        ordered = sorted(values.items(), key=lambda pair: rank(pair[0]))
        wrong = next(
            (b for (_, a), b in zip(ordered, ordered[1:], strict=False) if b[1] < a and not is_same(a, b[1])), None
        )
        if wrong is not None:
            yield Finding("quantiles-out-of-order", f"{family}: {wrong[0]} is {wrong[1]}, below a lower quantile")


PLACES = {"min": Decimal(-1), "median": Decimal(50), "max": Decimal(101)}


def split_name(name: str) -> tuple[str, str | None]:
    """Split a reported name into its metric and its quantile; None where it is no quantile."""
    for separator, at_end in ((".", True), ("_", False), ("_quantiles_", True), ("_", True)):
        head, found, tail = name.rpartition(separator) if at_end else reversed_partition(name, separator)
        if found and is_quantile(tail):
            return head.removesuffix(".percentiles"), tail
    return name, None


def is_quantile(key: str) -> bool:
    """Say whether a name is that of a quantile: min, median, max, p99 or p99.9."""
    digits = key.removeprefix("p")
    return key in PLACES or (key.startswith("p") and digits.replace(".", "", 1).isdigit())


def reversed_partition(name: str, separator: str) -> tuple[str, str, str]:
    """Split at the first separator, giving the rest first: p99_ttft_ms is p99 of ttft_ms."""
    tail, found, head = name.partition(separator)
    return head, found, tail


def rank(key: str) -> Decimal:
    """Give the place of a quantile's name on a scale from 0 to 100; GuideLLM's p999 is 99.9."""
    if key in PLACES:
        return PLACES[key]
    digits = key.removeprefix("p")
    return {"001": Decimal("0.1"), "999": Decimal("99.9")}.get(digits, Decimal(digits))


def check_span(run: Run) -> Iterator[Finding]:
    """A run is at least as long as from its first send to its last end."""
    claims = run.claims
    sent = [record.sent for record in run.records if record.sent is not None and record.clock == "run"]
    ended = [
        r.ended for r in run.records if r.ended is not None and r.clock == "run" and r.outcome.value == "completed"
    ]
    if not has(claims, "duration") or not sent or not ended or run.tool in ("guidellm", "aiperf", "genai-perf"):
        return
    span = Decimal(max(ended) - min(sent)) / 10**12
    if claims["duration"] < span * (1 - CLOSE):
        yield Finding("shorter-than-its-requests", f"duration {claims['duration']} s, but its requests take {span} s")


CHECKS: tuple[Callable[[Run], Iterator[Finding]], ...] = (
    check_rates,
    check_totals,
    check_peak_output,
    check_peak_concurrency,
    check_little,
    check_decode,
    check_all_gaps,
    check_counts,
    check_schedule,
    check_order,
    check_span,
)
