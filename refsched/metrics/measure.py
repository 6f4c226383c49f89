"""One block of numbers for any set of Records, whoever made them.

Latency populations are taken over completed requests; all others are counted by outcome and stay visible [B11].
Where every record has a clock of its own, nothing is computed across requests.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from fractions import Fraction
from operator import mul

from refsched.errors import InputError
from refsched.metrics.block import QUANTILES, Across, Means, Measured, Settings, Summary, WholeRun
from refsched.metrics.collect import collect
from refsched.metrics.columns import OUTCOMES, Columns
from refsched.metrics.compact import MISSING
from refsched.metrics.confidence import compute_interval
from refsched.metrics.definitions import MEANINGS, OPTIONAL, RATIOS, list_definitions, list_ratios
from refsched.metrics.failures import WITHOUT_ANSWER, Bounds, censor
from refsched.metrics.fidelity import compute_fidelity
from refsched.metrics.gaps import make_gap_populations
from refsched.metrics.goodput import compute_goodput
from refsched.metrics.population import Population, sum_exactly
from refsched.metrics.quantile import DEFAULT_METHOD, compute_quantile, get_method
from refsched.metrics.stalls import count_all_deadlines, count_stalls, play_all
from refsched.metrics.steady import check_steadiness, look_into, move_edges, split_cold_start
from refsched.metrics.throughput import compute_backlog, compute_throughput
from refsched.metrics.window import Window, choose_window, count_tokens_in, find_edges, find_rows, get_window
from refsched.record import Record
from refsched.units import Tokens

__all__ = ["QUANTILES", "Across", "Means", "Measured", "Settings", "Summary", "WholeRun", "measure"]

BOUNDED = {
    "ttft.any": ("sent", "first"),
    "e2e.last_token": ("sent", "last"),
    "latency.from_schedule": ("planned", "last"),
}


def measure(records: Iterable[Record], method: str = DEFAULT_METHOD, settings: Settings | None = None) -> Measured:
    """Measure `records` and each of their groups; raise InputError for an unknown definition or mixed clocks.

    Every group is measured over the window of the whole run. `settings` replaces `method`.
    """
    chosen = Settings(method) if settings is None else settings
    get_method(chosen.method)
    columns = collect(records)
    if columns.clock != "run":
        return measure_apart(columns, chosen)
    whole = describe_run(columns)
    if chosen.window is None:
        window, part = get_window(columns), columns
    else:
        window = choose_window(columns, chosen.window)
        part = columns.select(find_rows(columns, window, chosen.window.rule))
    groups = {name: measure_part(each, chosen, window) for name, each in part.select_groups().items()}
    received = None if chosen.window is None else count_tokens_in(columns, window)
    return measure_part(part, chosen, window, received, groups, whole)


def measure_apart(columns: Columns, settings: Settings) -> Measured:
    """Measure records that each have a clock of their own; raise InputError where a window is asked for."""
    if settings.window is not None:
        raise InputError("every record has a clock of its own: there is no window", field="--window")
    groups = {name: measure_part(each, settings, None) for name, each in columns.select_groups().items()}
    return measure_part(columns, settings, None, groups=groups)


def measure_part(
    columns: Columns,
    settings: Settings,
    window: Window | None,
    received: Tokens | None = None,
    groups: Mapping[str, Measured] | None = None,
    run: WholeRun | None = None,
) -> Measured:
    """Measure some records over a given window."""
    completed = columns.select_completed()
    populations = summarise_all(completed, settings.method)
    seconds = window.seconds() if window else None
    return Measured(
        method=settings.method,
        clock=columns.clock,
        counts=count_outcomes(columns),
        populations=populations,
        means=compute_means(completed, populations),
        failures=bound_failures(columns),
        goodput=compute_goodput(columns, settings.slos, settings.policy, seconds) if settings.slos else None,
        stalls=None if settings.stall is None else count_stalls(completed, settings.stall),
        playback=None if settings.playback is None else play_all(completed, settings.playback),
        deadlines=None if settings.deadlines is None else count_all_deadlines(completed, *settings.deadlines),
        tokens=count_sources(columns),
        across=measure_across(columns, settings, window, received) if window else None,
        run=run,
        groups=groups or {},
    )


def measure_across(columns: Columns, settings: Settings, window: Window, received: Tokens | None) -> Across:
    """Measure what needs one clock for all requests."""
    rule = None if settings.window is None else settings.window.rule
    return Across(window, compute_throughput(columns, window, received), compute_backlog(columns), rule)


def describe_run(columns: Columns) -> WholeRun:
    """Say whether the plan was kept, and whether there was a steady state."""
    edges = find_edges(columns)
    steadiness = check_steadiness(edges)
    window = steadiness.window
    windows = {} if window is None else {"W_steady": window, "W_steady, edges moved in": move_edges(window)}
    return WholeRun(
        fidelity=compute_fidelity(columns, edges),
        steadiness=steadiness,
        cold_start=split_cold_start(columns, edges),
        windows={name: look_into(columns, edges, each) for name, each in windows.items()},
    )


def count_outcomes(columns: Columns) -> dict[str, int]:
    """Count what was offered and how each request ended."""
    codes = columns.outcomes
    return {"offered": len(codes)} | {outcome.value: codes.count(code) for code, outcome in enumerate(OUTCOMES)}


def count_sources(columns: Columns) -> dict[str, int]:
    """Count the requests whose tokens are not known, whose counts disagree, and where totals came from."""
    unknown = columns.get("tokens").count(MISSING)
    return {"unknown": unknown, "disagreeing": columns.disagreements, **columns.sources}


def summarise_all(completed: Columns, method: str) -> dict[str, Summary]:
    """Summarise every population of completed requests [A8, A9, A12, B13]; each shared one once, and one at a time."""
    found: dict[str, Summary] = {}
    for name, twin, make in list_definitions(completed):
        if twin is None:
            population = make()
            found[name] = summarise(population, len(completed) - population.n, method)
        else:
            found[name] = found[twin]
    if found["ttft.chunk"] is found["ttft.any"]:
        del found["ttft.chunk"]
    found |= summarise_gaps(completed, method)
    return {name: found[name] for name in MEANINGS if name in found and (name not in OPTIONAL or found[name].n)}


def summarise_gaps(completed: Columns, method: str) -> dict[str, Summary]:
    """Summarise the gaps under each reading; readings that agree once."""
    made: dict[int, Summary] = {}
    found: dict[str, Summary] = {}
    for name, (population, undefined) in make_gap_populations(completed).items():
        if id(population) not in made:
            made[id(population)] = summarise(population, undefined, method, False)
        found[name] = made[id(population)]
    return found


def summarise(population: Population, undefined: int, method: str, is_per_request: bool = True) -> Summary:
    """Summarise a population; an empty one has neither mean nor quantiles."""
    if population.n == 0:
        return Summary(0, undefined, None, dict.fromkeys(QUANTILES), None)
    quantiles = {name: compute_quantile(population, p, method) for name, p in QUANTILES.items()}
    intervals = {name: compute_interval(population, p) for name, p in QUANTILES.items()} if is_per_request else {}
    return Summary(population.n, undefined, population.mean(), quantiles, population.max(), intervals)


def compute_means(columns: Columns, populations: Mapping[str, Summary]) -> dict[str, Means]:
    """Compute three means of each time per token, by what each request counts as; where two are the same, once."""
    found: dict[str, Means] = {}
    for name in RATIOS:
        twin = next((other for other in found if populations[other] is populations[name]), None)
        found[name] = found[twin] if twin else compute_mean_of(columns, name, populations[name].mean)
    return found


def compute_mean_of(columns: Columns, name: str, mean: Fraction | None) -> Means:
    """Compute the means of one time per token, of which that over requests is known."""
    time = over = count = 0
    weighted: dict[int, int] = defaultdict(int)  # by divisor: times that are each multiplied by the request's tokens
    divides_by_tokens = RATIOS[name][2] == 0  # then weighing by tokens undoes the division
    for times, divisors, tokens in list_ratios(columns, *RATIOS[name]):
        time, over, count = time + sum(times), over + sum(divisors), count + sum(tokens)
        if not divides_by_tokens:
            for divisor, product in zip(divisors, map(mul, times, tokens), strict=True):
                weighted[divisor] += product
    if not count:
        return Means(None, None, None)
    total = sum_exactly([Fraction(product, divisor) for divisor, product in weighted.items()])
    ratio = Fraction(time, over)
    return Means(mean, ratio if divides_by_tokens else total / count, ratio)


def bound_failures(columns: Columns) -> dict[str, dict[str, Bounds]]:
    """Bound the quantiles with all that failed in view; nothing where nothing failed [B11]."""
    if not any(code in WITHOUT_ANSWER for code in set(columns.outcomes)):
        return {}
    found: dict[str, dict[str, Bounds]] = {}
    for name, (start, stop) in BOUNDED.items():
        censored = censor(columns, start, stop)
        bounds = {label: censored.compute_bounds(p) for label, p in QUANTILES.items()}
        known = {label: each for label, each in bounds.items() if each is not None}
        if known:
            found[name] = known
    return found
