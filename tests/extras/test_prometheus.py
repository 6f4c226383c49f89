"""What a server exports: quantiles as bounds, an open overflow bucket, differences, and restarts between scrapes."""

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import pytest

from refsched.errors import InputError
from refsched.extras import MissingPackage, prometheus
from refsched.extras.prometheus import Histogram, Scrape, compute_shares, name_histograms, read_scrape, subtract
from tests.shared import SHARED, needs_shared

needs_client = pytest.mark.skipif(
    not __import__("importlib.util").util.find_spec("prometheus_client"), reason="prometheus-client is not installed"
)
LE = "le"


def histogram(name: str, buckets: Mapping[str, int], total: float, replica: str = "0") -> str:
    """Write one histogram in the text format."""
    lines = [f'{name}_bucket{{engine="{replica}",{LE}="{edge}"}} {count}' for edge, count in buckets.items()]
    count = list(buckets.values())[-1]
    return "\n".join(
        [
            f"# TYPE {name} histogram",
            *lines,
            f'{name}_sum{{engine="{replica}"}} {total}',
            f'{name}_count{{engine="{replica}"}} {count}',
            "",
        ]
    )


# 10 values up to 0.5, 60 up to 1, 98 up to 60, 100 in all: p99 lies in the overflow bucket.
CAPPED = {"0.3": 0, "0.5": 10, "1.0": 50, "60.0": 98, "+Inf": 100}
TTFT = "vllm:time_to_first_token_seconds"


def write(folder: Path, text: str, name: str = "a.prom") -> str:
    """Write a scrape."""
    path = folder / name
    path.write_text(text)
    return str(path)


def read_one(folder: Path, text: str, name: str = "a.prom") -> Scrape:
    """Write and read a scrape."""
    return read_scrape(write(folder, text, name))


@needs_client
def test_a_quantile_lies_between_two_edges_and_the_overflow_bucket_is_open(tmp_path: Path) -> None:
    ((name, ttft),) = name_histograms(read_one(tmp_path, histogram(TTFT, CAPPED, 700.0)))
    assert (name, ttft.n, ttft.mean()) == ("ttft", 100, 7)
    assert ttft.bound(Fraction(99, 100)) == (60, None)  # interpolation would say 60
    assert ttft.bound(Fraction(9, 10)) == (1, 60)
    assert ttft.bound(Fraction(1, 20)) == (Fraction(3, 10), Fraction(1, 2))
    assert ttft.share_above(Fraction(1)) == Fraction(1, 2)
    assert ttft.share_above(Fraction(2)) is None  # 2 s is no edge


def test_the_bound_holds_for_values_put_into_buckets() -> None:
    edges = (Fraction(1, 4), Fraction(1), Fraction(4), None)
    values = sorted(Fraction(number * number, 100) for number in range(1, 31))  # 0.01 … 9
    upto = tuple(sum(edge is None or value <= edge for value in values) for edge in edges)
    made = Histogram(edges, upto, sum(values, Fraction(0)))
    for percent in range(1, 101):
        p = Fraction(percent, 100)
        value = values[max(1, -(-len(values) * percent // 100)) - 1]
        bound = made.bound(p)
        assert bound is not None and bound[0] <= value and (bound[1] is None or value <= bound[1])


@needs_client
def test_replicas_are_added_up(tmp_path: Path) -> None:
    both = histogram(TTFT, CAPPED, 700.0) + histogram(TTFT, CAPPED, 300.0, "1").partition("\n")[2]
    ((_, ttft),) = name_histograms(read_one(tmp_path, both))
    assert (ttft.n, ttft.total) == (200, 1000)


@needs_client
def test_two_scrapes_are_subtracted(tmp_path: Path) -> None:
    early = histogram(TTFT, {"0.3": 0, "0.5": 10, "1.0": 20, "60.0": 20, "+Inf": 20}, 15.0)
    before, after = read_one(tmp_path, early, "a"), read_one(tmp_path, histogram(TTFT, CAPPED, 700.0), "b")
    ((_, ttft),) = name_histograms(subtract(after, before))
    assert (ttft.upto, ttft.total) == ((0, 0, 30, 78, 80), 685)
    assert subtract(after, before).resets == ()


@needs_client
def test_a_restart_between_scrapes_is_detected(tmp_path: Path) -> None:
    early = histogram(TTFT, {"0.3": 0, "0.5": 10, "1.0": 20, "60.0": 150, "+Inf": 150}, 900.0)
    counter = "# TYPE vllm:generation_tokens_total counter\nvllm:generation_tokens_total 900\n"
    before = read_one(tmp_path, early + counter, "a")
    after = read_one(tmp_path, histogram(TTFT, CAPPED, 700.0) + counter.replace("900", "70"), "b")
    since = subtract(after, before)
    assert set(since.resets) == {"time_to_first_token_seconds", "generation_tokens"}
    assert dict(name_histograms(since))["ttft"].n == 100 and since.counters["generation_tokens"] == 70


@needs_client
def test_sglang_is_read_under_the_same_names(tmp_path: Path) -> None:
    text = histogram("sglang:time_to_first_token_seconds", {"0.1": 3, "0.2": 4, "+Inf": 4}, 0.5)
    text += "# TYPE sglang:token_usage gauge\nsglang:token_usage 0.25\n"
    scrape = read_one(tmp_path, text)
    assert dict(name_histograms(scrape))["ttft"].bound(Fraction(1, 2)) == (0, Fraction(1, 10))
    assert prometheus.get_kv_usage(scrape) == Fraction(1, 4)


@needs_client
def test_shares_are_of_the_time_at_the_server(tmp_path: Path) -> None:
    times = {"queue": 4.0, "prefill": 1.0, "decode": 5.0}
    buckets = {"1.0": 10, "+Inf": 10}
    text = "".join(histogram(f"vllm:request_{name}_time_seconds", buckets, total) for name, total in times.items())
    assert compute_shares(read_one(tmp_path, text)) == {}  # of what is not known without the whole
    text += histogram("vllm:e2e_request_latency_seconds", buckets, 10.0)
    assert compute_shares(read_one(tmp_path, text, "b")) == {
        "queue": Fraction(2, 5),
        "prefill": Fraction(1, 10),
        "decode": Fraction(1, 2),
    }


@needs_client
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "has no metric"),
        ("# TYPE up gauge\nup 1\n", "has no metric"),
        ("{not prometheus", "is not in the Prometheus text format"),
        (histogram(TTFT, {"0.3": 5, "0.5": 2, "+Inf": 5}, 1.0), "counts that fall"),
        (histogram(TTFT, {"0.3": 5, "0.5": 5}, 1.0), "no +Inf bucket"),
        ("# TYPE vllm:kv_cache_usage_perc gauge\nvllm:kv_cache_usage_perc NaN\n", "is nan"),
    ],
)
def test_what_is_no_scrape_is_refused(text: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=problem.replace("+", r"\+")):
        read_one(tmp_path, text)


@needs_client
def test_other_buckets_in_the_second_scrape_are_refused(tmp_path: Path) -> None:
    before = read_one(tmp_path, histogram(TTFT, {"0.3": 1, "+Inf": 1}, 0.1), "a")
    after = read_one(tmp_path, histogram(TTFT, {"0.4": 1, "+Inf": 2}, 0.2), "b")
    with pytest.raises(InputError, match="other buckets"):
        subtract(after, before)


def test_without_the_package_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "prometheus_client.parser", None)
    with pytest.raises(MissingPackage, match="prometheus-client is needed to read server metrics"):
        prometheus.get_parser()


@needs_client
@needs_shared("data", "tool_results")
def test_recorded_scrapes_bound_what_the_server_logged() -> None:
    import gzip
    import json

    folder = SHARED / "data" / "tool_results" / "vllm_bench_serve" / "f_overload_slots4_maxconc8"
    found = dict(name_histograms(read_scrape(str(folder / "server_metrics_end.prom.gz"))))
    with gzip.open(folder / "ground_truth.jsonl.gz", "rt") as file:
        log = [json.loads(line) for line in file]
    ttfts = sorted(
        next(at for kind, _, at, *_ in each["chunks"] if kind in "tR") / 1e6 for each in log if "chunks" in each
    )
    assert found["ttft"].n == len(ttfts) == 80
    for percent in (50, 90, 99):
        bound = found["ttft"].bound(Fraction(percent, 100))
        value = ttfts[-(-80 * percent // 100) - 1]
        assert bound is not None and bound[1] is not None
        assert float(bound[0]) - 0.005 <= value <= float(bound[1]) + 0.005
