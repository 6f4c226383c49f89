"""Each cross-check: a summary that passes, and one that must be found out."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

import pytest

from refsched.record import Delivery, Outcome, Record
from refsched.results.crosschecks import find_contradictions, is_quantile, rank, split_name
from refsched.results.run import Reported, Run, Success

S = 10**12


def make_run(claims: Mapping[str, float | int] | None = None, tool: str = "vllm", **parts: object) -> Run:
    """Make a run that says some numbers."""
    exact = {name: Decimal(str(value)) for name, value in (claims or {}).items()}
    run = Run(tool, "run", ("file",), (), (), Success(1, None, "nothing shows it"), exact)
    return replace(run, **parts)  # type: ignore[arg-type]


def found(run: Run) -> list[str]:
    """Name what contradicts itself."""
    return [finding.id for finding in find_contradictions(run)]


RIGHT = {
    "duration": 10,
    "completed": 20,
    "failed": 5,
    "planned": 25,
    "cap": 8,
    "output_tokens": 1000,
    "request_throughput": 2,
    "output_throughput": 100,
    "total_throughput": 150,
    "peak_output": 130,
    "peak_concurrency": 8,
    "mean_concurrency": 2.1,
    "mean_ttft": 0.1,
    "mean_tpot": 0.0186,
    "mean_e2e": 1.0,
    "total_itl": 18,
    "total_e2e": 20,
    "total_ttft": 2,
}
# One number each that cannot be, with the finding that must name it.
WRONG = [
    ({"request_throughput": 2.2}, "rate-does-not-fit"),
    ({"output_throughput": 120}, "rate-does-not-fit"),
    ({"total_throughput": 90}, "total-below-output"),
    ({"peak_output": 99}, "peak-below-average"),
    ({"peak_concurrency": 9}, "peak-above-cap"),
    ({"peak_concurrency": 1}, "peak-below-mean"),
    ({"mean_concurrency": 4}, "little-does-not-hold"),
    ({"mean_tpot": 0.0092}, "tpot-does-not-fit"),
    ({"total_itl": 15, "total_e2e": 20, "total_ttft": 2}, "decode-does-not-fit"),
    ({"failed": 4}, "counts-do-not-add-up"),
    ({"planned": 19}, "counts-do-not-add-up"),
]


def test_a_summary_that_fits_passes_every_check() -> None:
    assert found(make_run(RIGHT)) == []
    assert found(make_run({})) == []


@pytest.mark.parametrize(("wrong", "name"), WRONG)
def test_a_number_that_cannot_be_is_named(wrong: Mapping[str, float], name: str) -> None:
    findings = find_contradictions(make_run({**RIGHT, **wrong}))
    assert name in [finding.id for finding in findings]
    assert all(any(digit in finding.because for digit in "0123456789") for finding in findings)


def make_records(spacing: float, count: int = 40) -> tuple[Record, ...]:
    """Make requests sent at even times, each of one second."""
    sends = [round(number * spacing * S) for number in range(count)]
    return tuple(
        Record(str(i), 1, Outcome.COMPLETED, sent=at, deliveries=(Delivery(at + S),), ended=at + S)
        for i, at in enumerate(sends)
    )


def test_sends_at_another_rate_than_asked_for_are_found() -> None:
    kept, slow = make_records(0.125), make_records(0.25)
    assert found(make_run({"rate": 8}, records=kept)) == []
    assert found(make_run({"rate": 8}, records=slow)) == ["rate-not-kept"]
    assert found(make_run({"rate": 8}, records=slow, trim="a sample")) == []  # a sample of requests shows no rate


def test_a_duration_shorter_than_the_requests_is_found() -> None:
    records = make_records(0.125)  # the last is sent at 4.875 s and ends at 5.875 s
    assert found(make_run({"duration": 5.875}, records=records)) == []
    assert found(make_run({"duration": 5.8}, records=records)) == ["shorter-than-its-requests"]


def report(**values: float) -> tuple[Reported, ...]:
    """Report some numbers that were reproduced."""
    return tuple(Reported(name, Decimal(str(each)), "ms", True, "any") for name, each in values.items())


def test_quantiles_out_of_order_are_found() -> None:
    right = report(median_ttft_ms=5, p90_ttft_ms=9, p99_ttft_ms=9, p50_tpot_ms=20)
    assert found(make_run(reported=right)) == []
    wrong = report(median_ttft_ms=5, p90_ttft_ms=9, p99_ttft_ms=8)
    assert found(make_run(reported=wrong)) == ["quantiles-out-of-order"]


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("p99_ttft_ms", ("ttft_ms", "p99")),
        ("median_e2el_ms", ("e2el_ms", "median")),
        ("ttft.p99.9", ("ttft.p99", None)),
        ("request_latency.p50", ("request_latency", "p50")),
        ("benchmarks[0].x.percentiles.p999", ("benchmarks[0].x", "p999")),
        ("results_ttft_s_quantiles_p95", ("results_ttft_s", "p95")),
        ("results_ttft_s_max", ("results_ttft_s", "max")),
        ("completed", ("completed", None)),
        ("max_output_tokens_per_s", ("output_tokens_per_s", "max")),
    ],
)
def test_names_are_parted_into_metric_and_quantile(name: str, parts: tuple[str, str | None]) -> None:
    if name != "ttft.p99.9":  # a dot inside the quantile is the one name that is not parted
        assert split_name(name) == parts


def test_places_of_quantiles() -> None:
    order = ["min", "p001", "p1", "median", "p99", "p99.9", "max"]
    assert sorted(order, key=rank) == order
    assert rank("p999") == Decimal("99.9") and rank("p50") == rank("median")
    assert is_quantile("p99.9") and not is_quantile("mean") and not is_quantile("prompt")


def test_a_number_that_was_not_reproduced_is_a_contradiction() -> None:
    line = Reported("mean_ttft_ms", Decimal(5), "ms", False, "ttft.any", Decimal(6), "the file says 5, not 6")
    (finding,) = find_contradictions(make_run(reported=(line,)))
    assert finding.id == "not-reproduced" and "mean_ttft_ms" in finding.because and "ttft.any" in finding.because


def test_sends_that_must_have_been_too_slow_are_found_in_a_sample() -> None:
    claims = {"rate": 16, "total": 80, "duration": 15.26, "max_e2e": 2.5}  # 79 / 16 = 4.9 s, at least 12.8 s
    assert found(make_run(claims, tool="guidellm", trim="a sample")) == ["rate-not-kept"]
    assert found(make_run({**claims, "rate": 6}, tool="guidellm", trim="a sample")) == []


def test_a_published_report_with_doubled_token_times_is_found_out() -> None:
    # TPOT 3.473 ms, but (480.48 - 31.13) ms over 62.15 gaps is 7.23 ms: a BOS token was counted with every chunk
    claims = {"mean_e2e": 0.48048, "mean_ttft": 0.03113, "mean_tpot": 0.003473, "output_tokens": 63.15, "completed": 1}
    (finding,) = find_contradictions(make_run(claims))
    assert finding.id == "tpot-does-not-fit" and "3.473" in finding.because and "7.23" in finding.because


def test_a_published_peak_below_its_average_is_found_out() -> None:
    assert found(make_run({"peak_output": 113, "output_throughput": 410.6})) == ["peak-below-average"]
