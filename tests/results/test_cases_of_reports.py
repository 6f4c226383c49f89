"""Numeric cases of public reports that are decided by cross-checks, histograms and windows."""

from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from refsched.extras.prometheus import Histogram
from refsched.results.crosschecks import check_decode, check_peak_output
from refsched.results.run import Run, Success
from tests.cli.conftest import shell  # noqa: F401
from tests.cli.running import Shell


def make_run(**claims: str) -> Run:
    """Make a run that only a tool's summary is known of."""
    numbers = {name: Decimal(text) for name, text in claims.items()}
    return Run("inference-perf", "case", (), (), (), Success(100, None, "it is a summary only"), numbers)


@pytest.mark.parametrize(("mean_tpot", "found"), [("0.003473", True), ("0.00723", False)])
def test_a_token_counted_twice_halves_tpot(mean_tpot: str, found: bool) -> None:
    """kubernetes-sigs/inference-perf#564: TPOT 3.473 ms is told where latency and tokens say 7.23."""
    claims = {"mean_e2e": "0.48048", "mean_ttft": "0.03113", "output_tokens": "6315", "completed": "100"}
    assert round((Fraction("0.48048") - Fraction("0.03113")) / (Fraction("63.15") - 1) * 1000, 2) == Fraction("7.23")
    findings = list(check_decode(make_run(mean_tpot=mean_tpot, **claims)))
    assert [finding.id for finding in findings] == ["tpot-does-not-fit"] * found
    assert all("7.23" in finding.because for finding in findings)


@pytest.mark.parametrize(("peak", "found"), [("113", True), ("410.6", False), ("640", False)])
def test_a_peak_of_chunks_can_lie_below_the_average_of_tokens(peak: str, found: bool) -> None:
    """vllm-project/vllm#50677: a peak of 113/s beside a mean of 410.6/s counts chunks and cannot be of tokens."""
    findings = list(check_peak_output(make_run(peak_output=peak, output_throughput="410.6")))
    assert [finding.id for finding in findings] == ["peak-below-average"] * found


def test_a_quantile_of_a_histogram_is_an_interval_and_open_at_the_top() -> None:
    """vllm-project/vllm#15167: p99 is above 60, not 60; p90 lies in (1, 60], of which 50.17 is one guess."""
    edges = (*map(Fraction, ("0.3", "0.5", "1", "60")), None)
    histogram = Histogram(edges, (0, 10, 50, 98, 100), Fraction(0))
    assert histogram.bound(Fraction(99, 100)) == (60, None)
    assert histogram.bound(Fraction(9, 10)) == (1, 60)
    interpolated = 1 + Fraction(90 - 50, 98 - 50) * (60 - 1)
    assert round(interpolated, 2) == Fraction("50.17")  # what histogram_quantile says, to no such precision


def test_a_warm_up_names_its_unit(shell: Shell, tmp_path: Path) -> None:  # noqa: F811
    """gpustack/gpustack#6211: of 20 requests a warm-up of "10" left out 10 where 2 were meant; here "10" is refused."""
    rows = (
        f'{{"id": "r{k}", "planned_s": {k}, "sent_s": {k}, "prompt_tokens": 1, "outcome": "completed", '
        f'"deliveries": [[{k}.25, 1], [{k}.5, 1]], "ended_s": {k}.5}}\n'
        for k in range(20)
    )
    path = tmp_path / "records.jsonl"
    path.write_text("".join(rows))
    left = {
        window: shell.json("measure", str(path), "--window", window)["populations"]["ttft.any"]["n"]
        for window in ("2s..20s", "10s..20s")
    }
    assert left == {"2s..20s": 18, "10s..20s": 10}
    for ambiguous in ("10", ".9"):
        assert "--window" in shell.refuse("measure", str(path), "--window", ambiguous)
