"""GuideLLM's numbers, each computed again from the requests of a benchmark."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from refsched.results.fields import Fields
from refsched.results.guidellm_distribution import Distribution, summarise, summarise_concurrency, summarise_rate
from refsched.results.guidellm_items import Item
from refsched.results.guidellm_ledger import SAMPLED, add_float, enter, enter_intervals
from refsched.results.ledger import Ledger
from refsched.results.rows import to_ticks

STATUSES = ("successful", "incomplete", "errored")
DEFINITIONS = {
    "request_latency": "e2e.stream_end: request_end - request_start, s; missing counts as 0",
    "time_to_first_token_ms": "ttft.any: first token of any kind - request_start",
    "time_to_first_output_token_ms": "ttft.content: first token that is not reasoning - request_start",
    "time_per_output_token_ms": "tpot.e2e/n: (last token - request_start) / n, TTFT included, weighted by n",
    "inter_token_latency_ms": "tpot.decode/(n-1): (last - first) / (n - 1), weighted by n - 1",
    "requests_per_second": "rate of request ends: each over the time from midway before it to midway after it",
    "output_tokens_per_second": "rate of tokens, spread evenly between first and last token of each request",
}
Pairs = Sequence[tuple[float, float]]
Window = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Bench:
    """Hold one benchmark: its fields, its requests by status, and the window that is measured."""

    fields: Fields
    items: Mapping[str, Sequence[Item]]
    whole: Mapping[str, bool]
    window: Window


def select(bench: Bench, status: str, start: str = "", end: str = "") -> list[Item]:
    """List the requests that overlap the window, from one of their times (the send) to another (the end)."""
    first, last = bench.window
    kept = []
    for item in bench.items[status]:
        until = item.time(end) if end else item.end()
        since = item.time(start) if start else item.start()
        since = until if since is None else since
        if until is not None and since is not None and until >= first and since <= last:
            kept.append(item)
    return kept


def weigh(value: float | None, weight: float = 1.0) -> Pairs:
    """Give a value with its weight; a missing one counts as 0, as this tool does."""
    return [(value or 0.0, weight)]


def only(value: float | None) -> Pairs:
    """Give a value, or nothing where it is missing."""
    return [] if value is None else [(value, 1.0)]


VALUES: Mapping[str, Callable[[Item], Pairs]] = {
    "request_latency": lambda item: weigh(item.latency()),
    "request_dispatch_delay": lambda item: only(item.between("targeted_start", "request_start")),
    "request_scheduled_latency": lambda item: only(item.between("targeted_start", "request_end")),
    "turn_predecessor_delay": lambda item: only(get_predecessor_delay(item)),
    "turn_scheduling_delay": lambda item: only(get_scheduling_delay(item)),
    "request_streaming_iterations_count": lambda item: weigh(float(item.iterations)),
    "prompt_token_count": lambda item: weigh(float(item.prompt or 0)),
    "output_token_count": lambda item: weigh(float(item.tokens() or 0)),
    "total_token_count": lambda item: weigh(float(item.total() or 0)),
    "time_to_first_token_ms": lambda item: weigh(item.ttft()),
    "time_to_first_output_token_ms": lambda item: weigh(
        None if (s := item.between("request_start", "first_output_token_iteration")) is None else 1000 * s
    ),
    "time_per_output_token_ms": lambda item: weigh(item.per_output_token(), float(item.tokens() or 0)),
    "inter_token_latency_ms": lambda item: weigh(item.inter_token(), float(item.tokens() or 1) - 1.0),
    "time_to_last_round_trip_ms": lambda item: weigh(
        None if (s := item.between("last_request_sent", "last_token_iteration")) is None else 1000 * s
    ),
    "output_tokens_per_iteration": lambda item: [(tokens, 1.0) for _, tokens in item.output_timings()],
    "iter_tokens_per_iteration": lambda item: [(tokens, 1.0) for _, tokens in item.later_timings()],
}
FROM_FIRST = {"inter_token_latency_ms": "first_token_iteration"}
UNTIL = {
    "time_to_first_token_ms": "first_token_iteration",
    "time_to_first_output_token_ms": "first_output_token_iteration",
}
RATES: Mapping[str, Callable[[Item], Pairs]] = {
    "requests_per_second": lambda item: [(item.end() or 0.0, 1.0)],
    "prompt_tokens_per_second": lambda item: [item.prompt_timing()],
    "output_tokens_per_second": lambda item: item.output_timings(),
    "tokens_per_second": lambda item: [item.prompt_timing(), *item.output_timings()],
}


def get_predecessor_delay(item: Item) -> float | None:
    """Give how long a turn waited for the one before it."""
    targeted, start, before = (item.time(n) for n in ("targeted_start", "request_start", "predecessor_completed"))
    if targeted is None or start is None:
        return None
    return 0.0 if before is None else max(0.0, min(start, before) - targeted)


def get_scheduling_delay(item: Item) -> float | None:
    """Give how long a turn waited beyond that."""
    delay, before = item.between("targeted_start", "request_start"), get_predecessor_delay(item)
    return None if delay is None or before is None else delay - before


def reproduce(ledger: Ledger, bench: Bench) -> None:
    """Compute every number of the metrics again."""
    metrics = bench.fields.inside("metrics")
    reproduce_totals(ledger, bench, metrics)
    for key in metrics.data:
        made = make_maker(bench, key)
        part = metrics.find_inside(key) if made is not None else None
        if made is not None and part is not None:
            reproduce_statuses(ledger, bench, part, key, made)
    root = metrics.find_inside("root_dispatch_delay")
    if root is not None:
        every = [item for status in STATUSES for item in select(bench, status) if item.root]
        pairs = [pair for item in every for pair in VALUES["request_dispatch_delay"](item)]
        enter(ledger, root, "request_start - targeted_start of first turns, s", summarise(pairs), is_all(bench))
    reproduce_text(ledger, bench, metrics)
    reproduce_goodput(ledger, bench, metrics)


Maker = Callable[[Sequence[str]], Distribution]


def make_maker(bench: Bench, key: str) -> Maker | None:
    """Find how one metric is computed from the requests of some statuses."""
    if key in VALUES:
        start, end = FROM_FIRST.get(key, ""), UNTIL.get(key, "")
        return lambda statuses: summarise(
            [pair for status in statuses for item in select(bench, status, start, end) for pair in VALUES[key](item)]
        )
    if key in RATES:
        return lambda statuses: summarise_rate(
            [pair for status in statuses for item in select(bench, status) for pair in RATES[key](item)], *bench.window
        )
    if key == "request_concurrency":
        return lambda statuses: summarise_concurrency(list(list_spans(bench, statuses)), *bench.window)
    return None


def list_spans(bench: Bench, statuses: Sequence[str]) -> Iterator[tuple[float, float, float]]:
    """List when requests were under way."""
    for status in statuses:
        for item in select(bench, status):
            start, end = item.start(), item.end()
            if start is not None and end is not None:
                yield start, end, 1.0


def is_all(bench: Bench) -> bool:
    """Say whether the file keeps every request of every status."""
    return all(bench.whole.values())


def reproduce_statuses(ledger: Ledger, bench: Bench, part: Fields, key: str, made: Maker) -> None:
    """Compute one metric again for each status and for all."""
    definition = DEFINITIONS.get(key, key.replace("_", " "))
    for status in (*STATUSES, "total"):
        inside = part.find_inside(status)
        if inside is not None:
            statuses = STATUSES if status == "total" else (status,)
            known = is_all(bench) if status == "total" else bench.whole[status]
            again = made(statuses)
            enter(ledger, inside, definition, again, known)
            enter_intervals(ledger, inside, again, get_confidence(bench), known)


def get_confidence(bench: Bench) -> float:
    """Give the level of the intervals that the tool was asked for."""
    config = bench.fields.find_inside("config")
    return float(config.find("confidence") or 0) if config else 0.0


def reproduce_totals(ledger: Ledger, bench: Bench, metrics: Fields) -> None:
    """Count the requests again, from the requests or from what the scheduler counted."""
    totals, scheduler = metrics.find_inside("request_totals"), bench.fields.find_inside("scheduler_metrics")
    made = scheduler.find_inside("requests_made") if scheduler else None
    for status in (*STATUSES, "total") if totals else ():
        known = is_all(bench) if status == "total" else bench.whole[status]
        statuses = STATUSES if status == "total" else (status,)
        if totals is None:
            continue
        if known:
            again = sum(len(select(bench, each)) for each in statuses)
            ledger.add(totals, status, "requests", "requests that overlap the window", again)
        elif made is not None and not bench.fields.find("warmup_duration"):
            again = int(made.number(status))
            ledger.add(totals, status, "requests", "requests that the scheduler counted, none trimmed", again)
        else:
            ledger.skip(totals, status, "requests", "requests that overlap the window", SAMPLED)
    duration = find_duration(bench)
    ledger.add(bench.fields, "duration", "s", "end of the window - its start", duration)


def find_duration(bench: Bench) -> Decimal:
    """Give the length of the window."""
    return Decimal(bench.window[1] - bench.window[0])


TEXTS = {"tokens": "text_tokens", "words": "text_words", "characters": "text_characters"}


def reproduce_text(ledger: Ledger, bench: Bench, metrics: Fields) -> None:
    """Compute the counts of tokens, words and characters again, and their rates and concurrencies."""
    text = metrics.find_inside("text")
    for name, key in TEXTS.items():
        part = text.find_inside(name) if text else None
        for side in ("input", "output", "total") if part else ():
            for suffix in ("", "_per_second", "_concurrency"):
                inside = part.find_inside(side + suffix) if part else None
                if inside is not None:
                    made = make_text_maker(bench, key, side, suffix)
                    reproduce_statuses(ledger, bench, inside, f"{key} of {side}{suffix}", made)


def make_text_maker(bench: Bench, key: str, side: str, suffix: str) -> Maker:
    """Make what computes one text metric from the requests of some statuses; rates have no window here."""

    def make(statuses: Sequence[str]) -> Distribution:
        rows = [row for one in sides(side) for row in list_texts(bench, statuses, key, one)]
        if suffix == "_per_second":
            return summarise_rate([(end, value or 0.0) for _, end, value in rows], None, None)
        if suffix == "_concurrency":
            return summarise_concurrency([(start, end, value or 0.0) for start, end, value in rows], None, None)
        return summarise([(value, 1.0) for _, _, value in rows if value is not None])

    return make


def sides(side: str) -> tuple[str, ...]:
    """Name the sides that a total is made of."""
    return ("input", "output") if side == "total" else (side,)


def list_texts(
    bench: Bench, statuses: Sequence[str], key: str, side: str
) -> Iterator[tuple[float, float, float | None]]:
    """List start, end and count of each request that has this count on one side at least."""
    for status in statuses:
        for item in select(bench, status):
            start, end = item.start(), item.end()
            both = (item.inputs.get(key), item.outputs.get(key))
            value = both[0] if side == "input" else both[1]
            if start and end and both != (None, None):
                yield start, end, float(value) if isinstance(value, int | Decimal) else None


def get_slo(bench: Fields) -> dict[str, Decimal]:
    """Take the targets out of the configuration, in seconds."""
    config = bench.find_inside("config")
    slo = config.find_inside("slo") if config else None
    names = {"ttft_ms": "ttft", "tpot_ms": "tpot", "e2el_ms": "e2e"}
    targets = {name: slo.find(key) for key, name in names.items()} if slo else {}
    return {name: value / 1000 for name, value in targets.items() if value is not None}


def judge(item: Item, slo: Mapping[str, Decimal]) -> bool | None:
    """Say whether a request meets every target; None where it misses none but has no value for one."""
    values = {"ttft": item.ttft(), "tpot": item.inter_token(), "e2e": item.latency()}
    scaled = {"ttft": 1000.0, "tpot": 1000.0, "e2e": 1.0}
    verdicts = [
        None if (value := values[name]) is None else value <= float(target) * scaled[name]
        for name, target in slo.items()
    ]
    return False if False in verdicts else None if None in verdicts else True


def reproduce_goodput(ledger: Ledger, bench: Bench, metrics: Fields) -> None:
    """Count conforming requests again; those without a value for a target are left out, errors count as bad."""
    slo = get_slo(bench.fields)
    if not slo or metrics.get("slo_attainment") is None:
        return
    verdicts = [(item, judge(item, slo)) for item in select(bench, "successful")]
    good = [item for item, verdict in verdicts if verdict]
    determined = sum(verdict is not None for _, verdict in verdicts) + len(select(bench, "errored"))
    known = bench.whole["successful"] and bench.whole["errored"]
    share = len(good) / determined if known and determined else None
    add_float(ledger, metrics, "slo_attainment", "share", "conforming / (determined successes + errors)", share)
    count = float(determined) if known else None
    add_float(ledger, metrics, "slo_determined_requests", "requests", "determined successes + errors", count)
    part = metrics.find_inside("request_goodput")
    rate = summarise_rate([(item.end() or 0.0, 1.0) for item in good], *bench.window)
    for status in ("successful", "total"):
        inside = part.find_inside(status) if part else None
        if inside is not None:
            enter(ledger, inside, "rate of ends of conforming requests", rate, known)


def since(time: Decimal | None, origin: Decimal) -> int | None:
    """Give a time on the run's clock, in ticks."""
    return None if time is None else to_ticks(time - origin)
