"""Each trap: a run in which it lies, and one in which it does not."""

from dataclasses import replace
from decimal import Decimal

from refsched.record import Delivery, Outcome, Record
from refsched.results.run import CUT, Finding, Reported, Run, Success
from refsched.results.traps import find_traps

S = 10**12


def make_record(number: int, ttft: float = 1.0, tokens: int = 3, **parts: object) -> Record:
    """Make a request of some tokens, one a chunk, 0.1 s apart, sent at second `number`."""
    sent = number * S
    times = [sent + round((ttft + 0.1 * each) * S) for each in range(tokens)]
    record = Record(
        id=str(number),
        prompt_tokens=1,
        outcome=Outcome.COMPLETED,
        sent=sent,
        deliveries=tuple(Delivery(at, None) for at in times),
        ended=times[-1],
        output_tokens=tokens,
        token_source="usage",
    )
    return replace(record, **parts)  # type: ignore[arg-type]


def make_run(*records: Record, tool: str = "vllm", **parts: object) -> Run:
    """Make a run of enough requests that only what is asked about is a trap."""
    success = Success(len(records), len(records), "all were whole")
    return replace(Run(tool, "run", ("file",), records, (), success), **parts)  # type: ignore[arg-type]


def found(run: Run) -> set[str]:
    """Name the traps of a run, leaving out that there are few requests."""
    return {trap.id for trap in find_traps(run)} - {"too-few-for-p99"}


def test_a_plain_run_has_no_traps() -> None:
    assert found(make_run(*map(make_record, range(20)))) == set()


def test_failures_are_in_no_statistic() -> None:
    failed = make_record(9, outcome=Outcome.ERROR, reason="overloaded")
    run = make_run(*map(make_record, range(8)), failed, failed)
    assert found(run) == {"failures-dropped"}
    (trap,) = [each for each in find_traps(run) if each.id == "failures-dropped"]
    assert "2 of 10" in trap.because and "p80" in trap.because


def test_cut_streams_are_counted_or_cannot_be_told() -> None:
    cut = make_record(9, outcome=Outcome.ERROR, reason=CUT)
    run = make_run(*map(make_record, range(8)), cut, success=Success(9, 8, "one has no usage"))
    assert {"truncated-counted", "failures-dropped"} == found(run)
    assert "truncated-unknown" in found(make_run(make_record(0), success=Success(1, None, "no mark")))


def test_one_token_outputs_are_named_with_the_tools_rule() -> None:
    for tool, rule in (("vllm", "passes"), ("aiperf", "fails"), ("guidellm", "is left out")):
        (trap,) = [t for t in find_traps(make_run(make_record(0, tokens=1), tool=tool)) if t.id == "one-token-outputs"]
        assert rule in trap.because


def test_several_tokens_in_a_chunk() -> None:
    assert "chunks-counted-as-tokens" in found(make_run(make_record(0, tokens=3, output_tokens=9)))
    asked = make_record(0, tokens=3, output_tokens=9, token_source="requested")
    assert found(make_run(asked)) == {"requested-length-counted"}


def test_a_first_request_that_hits_the_cache() -> None:
    slow = [make_record(number, ttft=4.0 + 0.1 * number) for number in range(1, 4)]
    assert "cache-warmed-ttft" in found(make_run(make_record(0, ttft=0.06), *slow))
    ramp = [make_record(number, ttft=0.5 * (number + 1)) for number in range(40)]  # a growing queue is none
    assert "cache-warmed-ttft" not in found(make_run(*ramp))


def test_waits_in_the_client() -> None:
    late = [make_record(number, planned=(number - 1) * S) for number in range(5)]
    prompt = [make_record(number, planned=number * S) for number in range(5)]
    claims = {"mean_e2e": Decimal("1.2")}
    assert found(make_run(*late, claims=claims)) == {"client-wait-hidden"}
    assert found(make_run(*prompt, claims=claims)) == set()
    capped = claims | {"rate": Decimal(16), "cap": Decimal(8)}
    assert found(make_run(make_record(0), claims=capped)) == {"client-wait-hidden"}


def test_latencies_right_at_a_timeout() -> None:
    cut = [make_record(number, ended=(number + 30) * S) for number in range(3)]
    assert "censored" in found(make_run(*cut))
    assert "censored" not in found(make_run(*cut[:2]))


def test_values_of_zero() -> None:
    zero = Reported("results_ttft_s_min", Decimal(0), "s", True, "any")
    assert found(make_run(make_record(0), reported=(zero,))) == {"zero-entries"}
    other = replace(zero, name="successes.count.min")
    assert found(make_run(make_record(0), reported=(other,))) == set()


def test_too_few_requests_for_a_p99() -> None:
    few, many = make_run(*map(make_record, range(298))), make_run(*map(make_record, range(299)))
    assert "too-few-for-p99" in {trap.id for trap in find_traps(few)}
    assert "too-few-for-p99" not in {trap.id for trap in find_traps(many)}


def test_a_trap_that_the_reader_named_is_named_once() -> None:
    run = make_run(make_record(0), success=Success(1, None, "no mark"), traps=(Finding("truncated-unknown", "mine"),))
    assert [trap.because for trap in find_traps(run) if trap.id == "truncated-unknown"] == ["mine"]
