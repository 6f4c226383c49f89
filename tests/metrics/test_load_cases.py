"""Runs that public reports describe, made anew from their arithmetic, and what the meter says of them."""

from fractions import Fraction

from refsched.metrics.confidence import count_for_verdict
from refsched.metrics.measure import Measured, measure
from refsched.record import Delivery, Outcome, Record
from refsched.units import TICKS_PER_SECOND as S

MS = S // 1000


def serve(planned: list[int], sent: list[int], first_after: int, service: int, places: int) -> list[Record]:
    """Serve requests in order, each in one of some places; `first_after` is the wait for a first token once served."""
    free, records = [0] * places, []
    for number, (due, at) in enumerate(zip(planned, sent, strict=True)):
        free.sort()
        begun = max(at, free[0])
        free[0] = ended = begun + service
        deliveries = (Delivery(begun + first_after), Delivery(ended))
        records.append(Record(f"r{number}", 1, Outcome.COMPLETED, due, at, deliveries, ended))
    return records


def gate(planned: list[int], first_after: int, service: int, places: int) -> list[Record]:
    """Send each request only when one of some places is free: a client's cap on concurrency."""
    free, sent = [0] * places, []
    for due in planned:
        free.sort()
        sent.append(max(due, free[0]))
        free[0] = sent[-1] + service
    return serve(planned, sent, first_after, service, len(planned))


def mean_s(measured: Measured, name: str) -> Fraction:
    """Give a mean in seconds."""
    mean = measured.populations[name].mean
    assert mean is not None
    return mean / S


def test_more_is_sent_than_served() -> None:
    """vllm#3096: 1,000 requests at 3/s to a server of 2.3/s: the last waits 101.4 s; at 200/s, 429.8 s."""
    for rate, last_wait, least in ((3, Fraction("101.4"), Fraction("1.3")), (200, Fraction("429.8"), 50)):
        service = round(S / Fraction("2.3"))
        sent = [number * S // rate for number in range(1000)]
        measured = measure(serve(sent, sent, 0, service, 1))
        longest = measured.populations["ttft.any"].max
        assert longest is not None and abs(longest / S - last_wait) < Fraction(1, 2)
        assert abs(mean_s(measured, "ttft.any") - longest / S / 2) < Fraction(1, 10**9)
        assert measured.run is not None and measured.run.steadiness.verdict == "growing"
        assert (measured.run.steadiness.utilisation or 0) > least


def test_a_load_that_is_served_is_steady() -> None:
    sent = [number * S for number in range(200)]
    measured = measure(serve(sent, sent, 0, 9 * S // 10, 1))
    assert measured.run is not None and measured.run.steadiness.verdict == "steady"
    assert measured.run.fidelity.verdict == "kept"


def test_a_client_that_waits_for_a_place() -> None:
    """Twenty at once, 4 places, 16 s each: first tokens 33.0 s after the schedule, 1.0 s after the send."""
    measured = measure(gate([0] * 20, S, 16 * S, 4))
    assert mean_s(measured, "ttft.from_schedule") == 33 and mean_s(measured, "ttft.any") == 1
    assert measured.run is not None and (measured.run.fidelity.verdict, measured.run.fidelity.cap) == ("capped", 4)


def test_all_at_once_with_one_place() -> None:
    """vllm#4252: ten at 0, 1.0 s each, first token after 0.1: mean first wait 4.6 s."""
    assert mean_s(measure(serve([0] * 10, [0] * 10, S // 10, S, 1)), "ttft.any") == Fraction("4.6")


def test_coordinated_omission() -> None:
    """guidellm#1048: 190 ms each, 10/s, one place, 100 requests: from the schedule mean 4.645, p99 9.010, max 9.100."""
    measured = measure(gate([number * 100 * MS for number in range(100)], 0, 190 * MS, 1))
    late, sent = measured.populations["latency.from_schedule"], measured.populations["latency.from_send"]
    assert (late.mean, late.quantiles["p99"], late.max) == (4645 * MS, 9010 * MS, 9100 * MS)
    assert sent.quantiles["p99"] == 190 * MS


def test_sleeps_that_drift() -> None:
    """vllm#21104: 5 ms between sends and 0.449 ms lost at each: 200/s asked, 183.52 sent, 4.5 s late at the end."""
    planned = [number * 5 * MS for number in range(10_000)]
    sent = [at + number * 449 * MS // 1000 for number, at in enumerate(planned)]
    measured = measure(serve(planned, sent, 0, MS, 10_000))
    assert measured.run is not None
    fidelity = measured.run.fidelity
    assert fidelity.verdict == "drifting" and fidelity.cap is None
    assert fidelity.achieved_rate is not None and round(fidelity.achieved_rate, 2) == Fraction("183.52")
    assert fidelity.lag.max() == 9_999 * 449 * MS // 1000 and fidelity.trend == Fraction(449, 5000)


def test_one_late_send_is_no_drift() -> None:
    planned = [number * S for number in range(20)]
    sent = [at + (S // 2 if number == 3 else 0) for number, at in enumerate(planned)]
    measured = measure(serve(planned, sent, 0, MS, 20))
    assert measured.run is not None and (measured.run.fidelity.verdict, measured.run.fidelity.late) == ("late", 1)


def test_early_stopping_of_mlperf() -> None:
    """mlcommons/inference#1593: of 33 queries two were late; p99 at 99 % needs 805 more."""
    assert count_for_verdict(Fraction(99, 100), Fraction(99, 100), 2) - 33 == 805
    assert count_for_verdict(Fraction(99, 100), Fraction(95, 100), 0) == 299
