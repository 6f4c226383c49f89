"""The server's own histograms beside the client's view."""

from collections.abc import Iterator
from fractions import Fraction

from refsched.report.json_text import get_exact
from refsched.report.table import format_table
from refsched.results.reference import SHARED, Reference
from refsched.units import TICKS_PER_SECOND, round_decimal

Json = dict[str, object]
QUANTILES = {"p50": Fraction(1, 2), "p90": Fraction(9, 10), "p95": Fraction(19, 20), "p99": Fraction(99, 100)}


def read_server(paths: list[str]) -> Json:
    """Read one scrape, or two and what happened between them; raise MissingPackage without prometheus-client."""
    from refsched.extras import prometheus

    scrapes = [prometheus.read_scrape(path) for path in paths]
    scrape = scrapes[0] if len(scrapes) == 1 else prometheus.subtract(scrapes[1], scrapes[0])
    latencies = {}
    for name, histogram in prometheus.name_histograms(scrape):
        bounds = {label: histogram.bound(p) for label, p in QUANTILES.items()}
        mean = histogram.mean()
        latencies[name] = {
            "n": histogram.n,
            "meaning": prometheus.MEANINGS[name],
            "mean": mean,
            "exact": get_exact({"mean": mean}),
            "bounds": {label: None if pair is None else list(pair) for label, pair in bounds.items()},
        }
    return {
        "files": paths,
        "since": "the server's start" if len(paths) == 1 else "the first scrape",
        "resets": list(scrape.resets),
        "latencies_s": latencies,
        "shares": prometheus.compute_shares(scrape),
        "kv_usage": prometheus.get_kv_usage(scrape),
        "counters": dict(scrape.counters),
    }


def format_server(server: Json, reference: Reference | None) -> Iterator[str]:
    """Lay out the server's bounds beside the client's quantiles."""
    yield ""
    yield f"server, since {server['since']}: quantiles lie between two bucket edges, in ms"
    latencies = server["latencies_s"]
    rows = (
        [row for name, each in latencies.items() for row in format_latency(name, each, reference)]
        if isinstance(latencies, dict)
        else []
    )
    yield format_table(("latency", "n", "quantile", "above", "at most", "client"), rows)
    for key in ("shares", "kv_usage", "resets"):
        if server[key]:
            yield f"{key}: {format_plain(server[key])}"


def format_latency(name: str, each: Json, reference: Reference | None) -> Iterator[tuple[str, ...]]:
    """Lay out the bounds of one latency."""
    bounds = each["bounds"]
    for label, pair in bounds.items() if isinstance(bounds, dict) else ():
        if pair is not None:
            client = find_client(name, label, reference)
            yield name, str(each["n"]), label, in_ms(pair[0]), in_ms(pair[1]), in_ms(client) if client else "-"


def find_client(name: str, label: str, reference: Reference | None) -> Fraction | None:
    """Find the client's value of the same quantile."""
    population = reference.populations.get(SHARED.get(name, "")) if reference else None
    value = population.quantiles[label] if population else None
    return None if value is None else value / TICKS_PER_SECOND


def in_ms(seconds: Fraction | None) -> str:
    """Round a time for reading; None is the overflow bucket's edge."""
    return "+inf" if seconds is None else round_decimal(seconds * 1000, 3)


def format_plain(value: object) -> str:
    """Write shares, a share or a list of names."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {round_decimal(share * 100, 1)} %" for name, share in value.items())
    if isinstance(value, Fraction):
        return f"{round_decimal(value * 100, 1)} %"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
