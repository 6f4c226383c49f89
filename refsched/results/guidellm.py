"""GuideLLM's benchmarks.json: several benchmarks in a file, each with its requests or a sample of them."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from refsched.record import Delivery, Outcome, Record
from refsched.results.fields import Fields
from refsched.results.fitting import check_requests
from refsched.results.guidellm_items import Item, read_item
from refsched.results.guidellm_numbers import STATUSES, Bench, Window, get_slo, is_all, reproduce, since
from refsched.results.ledger import Ledger
from refsched.results.run import GAPS, Finding, Run, Success

TOOL = "guidellm"
DAY = 86400  # seconds; an intended send further off than this is of another clock


def is_report(data: Mapping[str, object]) -> bool:
    """Recognise a report by its fields."""
    benchmarks = data.get("benchmarks")
    return isinstance(benchmarks, list) and "metadata" in data


def read_runs(report: Fields, label: str) -> list[Run]:
    """Read every benchmark of a report; raise InputError where there is none."""
    runs = [read_bench(fields, f"{label} {fields.path}[{fields.row}]") for fields in report.rows("benchmarks")]
    return runs or report.complain("benchmarks", "is empty")


def read_bench(fields: Fields, label: str) -> Run:
    """Read one benchmark."""
    prefixed = Fields(fields.data, fields.file, None, f"benchmarks[{fields.row}]")
    requests = prefixed.inside("requests")
    items = {status: [read_item(row, status) for row in list_rows(requests, status)] for status in STATUSES}
    bench = Bench(prefixed, items, find_whole(prefixed, items), find_window(prefixed))
    ledger = Ledger()
    reproduce(ledger, bench)
    return Run(
        tool=TOOL,
        label=label,
        files=(fields.file,),
        records=tuple(make_records(bench)),
        reported=tuple(ledger.lines),
        success=judge_success(bench),
        claims=get_claims(prefixed),
        limits=tuple(find_limits(bench)),
        traps=tuple(find_traps(bench)),
        contradictions=tuple(find_contradictions(bench)),
        slo=get_slo(prefixed),
        without=GAPS,
        trim="" if all(bench.whole.values()) else "a sample of the requests",
    )


def list_rows(requests: Fields, status: str) -> list[Fields]:
    """List the requests of one status; none where the file has null."""
    return list(requests.rows(status)) if requests.get(status) is not None else []


def find_window(bench: Fields) -> Window:
    """Give the start and end of what is measured, warm-up and cool-down left out."""
    metrics = bench.find_inside("scheduler_metrics")
    inside = metrics if metrics is not None and metrics.has("measure_start_time", "measure_end_time") else None
    if inside is not None:
        return float(inside.number("measure_start_time")), float(inside.number("measure_end_time"))
    return float(bench.find("start_time") or 0), float(bench.find("end_time") or 0)


def is_inside(item: Item, window: Window) -> bool:
    """Say whether a request overlaps the window."""
    end = item.end()
    start = item.start() if item.start() is not None else end
    return end is not None and start is not None and end >= window[0] and start <= window[1]


def find_whole(bench: Fields, items: Mapping[str, Sequence[Item]]) -> dict[str, bool]:
    """Say for each status whether the file keeps every request, by the tool's own totals."""
    window = find_window(bench)
    metrics = bench.find_inside("metrics")
    totals = metrics.find_inside("request_totals") if metrics else None
    inside = {status: sum(is_inside(item, window) for item in each) for status, each in items.items()}
    if totals is None:
        return dict.fromkeys(STATUSES, True)
    return {status: totals.find_count(status) in (inside[status], len(items[status])) for status in STATUSES}


def make_records(bench: Bench) -> Iterator[Record]:
    """Make Records; only the first and the last token have times."""
    every = [item for status in STATUSES for item in bench.items[status]]
    starts = [at for item in every if (at := item.exact["request_start"]) is not None]
    origin = min(starts, default=Decimal(0))
    for item in every:
        ended = item.exact["request_end"] if item.exact["request_end"] is not None else item.exact["resolve_end"]
        usage = item.output is not None
        yield Record(
            id=item.id,
            prompt_tokens=item.prompt,
            outcome={"successful": Outcome.COMPLETED, "incomplete": Outcome.CANCELLED}.get(item.status, Outcome.ERROR),
            planned=since(find_planned(item, bench), origin),
            sent=since(item.exact["request_start"], origin),
            deliveries=tuple(make_deliveries(item, origin)),
            ended=since(ended, origin),
            reason=item.error,
            output_tokens=item.tokens(),
            token_source="usage" if usage else "chunks" if item.tokens() else None,
        )


def find_planned(item: Item, bench: Bench) -> Decimal | None:
    """Give the intended send; None where it cannot be of this run's clock."""
    planned = item.exact["targeted_start"]
    return None if planned is None or abs(float(planned) - bench.window[0]) > DAY else planned


def make_deliveries(item: Item, origin: Decimal) -> Iterator[Delivery]:
    """Give the deliveries whose times are known: the first, the first of the answer, and the last."""
    names = ("first_token_iteration", "first_output_token_iteration", "last_token_iteration")
    first, answer, last = (since(item.exact[name], origin) for name in names)
    if first is not None:
        yield Delivery(first, None, "reasoning" if answer is None or answer > first else "content")
    if answer is not None and first is not None and answer > first:
        yield Delivery(answer, None)
    if last is not None and last not in (first, answer):
        yield Delivery(last, None)


CLAIMS = {"requests_per_second": "request_throughput", "request_concurrency": "mean_concurrency"}
LATENCIES = {"time_to_first_token_ms": "ttft", "inter_token_latency_ms": "tpot"}


def get_claims(bench: Fields) -> dict[str, Decimal]:
    """Give the summary of successes under shared names; latencies in seconds."""
    metrics = bench.inside("metrics")
    claims: dict[str, Decimal | None] = {"duration": bench.find("duration")}
    totals = metrics.find_inside("request_totals")
    if totals is not None:
        claims |= {
            "completed": totals.find("successful"),
            "failed": totals.find("errored"),
            "total": totals.find("total"),
        }
    for key, name in LATENCIES.items():
        claims |= read_latency(metrics, key, name, Decimal(1000))
    claims |= read_latency(metrics, "request_latency", "e2e", Decimal(1))
    config = bench.find_inside("config")
    strategy = config.find_inside("strategy") if config else None
    if strategy is not None:
        claims |= {"rate": strategy.find("rate"), "cap": strategy.find("streams") or strategy.find("max_concurrency")}
    return {name: value for name, value in claims.items() if value is not None}


def read_latency(metrics: Fields, key: str, name: str, divisor: Decimal) -> dict[str, Decimal | None]:
    """Take mean, median, p99 and the ends of one latency."""
    part = metrics.find_inside(key)
    inside = part.find_inside("successful") if part else None
    if inside is None or not inside.find("count"):
        return {}
    names = {"mean": "mean", "median": "median", "min": "min", "max": "max"}
    found = {f"{shared}_{name}": inside.find(own) for own, shared in names.items()}
    percentiles = inside.find_inside("percentiles")
    found[f"p99_{name}"] = percentiles.find("p99") if percentiles else None
    return {shared: None if value is None else value / divisor for shared, value in found.items()}


def judge_success(bench: Bench) -> Success:
    """Say what is known of true success."""
    totals = bench.fields.inside("metrics").find_inside("request_totals")
    counted = totals.count("successful") if totals else len(bench.items["successful"])
    because = "errors inside a stream are found, but a stream cut without an error keeps no mark in this file"
    return Success(counted, None, because)


def find_limits(bench: Bench) -> Iterator[str]:
    """Say what this file cannot support."""
    yield "no per-chunk times: longest gap unknown (only the first and the last token have times)"
    if not is_all(bench):
        kept = sum(map(len, bench.items.values()))
        yield f"the file keeps a sample of {kept} requests (sample_size): statistics over all cannot be computed again"
    yield "all times are wall-clock seconds in binary doubles: steps of 0.24 µs, and a stepped clock would go unseen"


def find_traps(bench: Bench) -> Iterator[Finding]:
    """Find what applies to this tool only."""
    yield Finding(
        "tpot-includes-ttft",
        "time_per_output_token_ms is (last token - send) / n: it contains the time to first token; "
        "what others call TPOT is inter_token_latency_ms",
    )
    yield Finding("weighted-by-tokens", "TPOT and ITL are weighted by tokens here, so long answers count more")
    zero = [item for item in bench.items["successful"] if item.inter_token() is None or item.ttft() is None]
    if zero:
        yield Finding(
            "zero-entries", f"{len(zero)} kept successes lack a TTFT or ITL, which enters as 0 (weight n - 1)"
        )
    chunks = [i for i in bench.items["successful"] if i.output is not None and 0 < i.token_iterations < i.output]
    if chunks:
        yield Finding(
            "tokens-spread-evenly",
            f"{len(chunks)} kept requests have fewer updates than tokens, and their token times are spread evenly",
        )


def find_contradictions(bench: Bench) -> Iterator[Finding]:
    """Find intended sends that cannot be of this run's clock."""
    yield from check_requests(item.derive() for status in STATUSES for item in bench.items[status])
    start = bench.window[0]
    odd = [
        item
        for status in STATUSES
        for item in bench.items[status]
        if (at := item.time("targeted_start")) is not None and abs(at - start) > DAY
    ]
    if odd:
        yield Finding(
            "mixed-clocks",
            f"{len(odd)} intended sends are more than a day from the run: they count from another origin, so the "
            "schedule was not kept",
        )
