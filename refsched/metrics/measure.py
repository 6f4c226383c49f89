"""One block of numbers for any set of Records, whoever made them.

Latency populations are taken over completed requests; all others are counted by outcome and stay visible [B11].
Where every record has a clock of its own, nothing is computed across requests.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from refsched.errors import InputError
from refsched.metrics.columns import MISSING, OUTCOMES, Columns, collect
from refsched.metrics.confidence import Interval, compute_interval
from refsched.metrics.definitions import RATIOS, PopulationMaker, compute_ratio
from refsched.metrics.failures import WITHOUT_ANSWER, Bounds, censor
from refsched.metrics.fidelity import Fidelity, compute_fidelity
from refsched.metrics.goodput import Goodput, Policy, Slo, compute_goodput
from refsched.metrics.population import Population, sum_exactly
from refsched.metrics.quantile import DEFAULT_METHOD, compute_quantile, get_method
from refsched.metrics.stalls import Deadlines, Playback, Stalls, count_all_deadlines, count_stalls, play_all
from refsched.metrics.steady import (
    ColdStart,
    InWindow,
    Steadiness,
    check_steadiness,
    look_into,
    move_edges,
    split_cold_start,
)
from refsched.metrics.throughput import Backlog, Throughput, Window, compute_backlog, compute_throughput, get_window
from refsched.metrics.window import Choice, choose_window, count_tokens_in, find_edges, find_rows
from refsched.record import Record
from refsched.units import Ticks, Tokens

QUANTILES = {"p50": Fraction(1, 2), "p90": Fraction(9, 10), "p95": Fraction(19, 20), "p99": Fraction(99, 100)}
SUMMARISED = {  # the five that a short summary shows
    "ttft": "ttft.any",
    "tpot": "tpot.decode/(n-1)",
    "gap": "itl.chunk",
    "longest_gap": "longest_gap",
    "total": "e2e.last_token",
}
BOUNDED = {
    "ttft.any": ("sent", "first"),
    "e2e.last_token": ("sent", "last"),
    "latency.from_schedule": ("planned", "last"),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """Say how to measure: the definition of quantiles, conditions and their policy, and the stall threshold."""

    method: str = DEFAULT_METHOD
    slos: Sequence[Slo] = ()
    policy: Policy = Policy()
    stall: Ticks | None = None
    window: Choice | None = None  # without one, the whole run
    playback: Fraction | None = None  # tokens a second that a reader takes
    deadlines: tuple[Ticks, Ticks] | None = None  # of the first token, and of each after it


@dataclass(frozen=True, slots=True)
class Summary:
    """Summarise a population in ticks; `undefined` counts the requests that have no such value."""

    n: int
    undefined: int
    mean: Fraction | None
    quantiles: Mapping[str, Fraction | None]
    max: Fraction | None
    intervals: Mapping[str, Interval] = field(default_factory=dict)  # of populations of one value per request


@dataclass(frozen=True, slots=True)
class Means:
    """Hold three means of a time per token: of the requests, of their tokens, and of all time over all tokens."""

    over_requests: Fraction | None
    over_tokens: Fraction | None
    ratio_of_sums: Fraction | None


@dataclass(frozen=True, slots=True)
class Across:
    """Hold what needs one clock for all requests."""

    window: Window
    throughput: Throughput
    backlog: Backlog
    rule: str | None = None  # by which requests were attributed to the window; None where it is the whole run


@dataclass(frozen=True, slots=True)
class WholeRun:
    """Hold what is said of a whole run, and of none of its groups."""

    fidelity: Fidelity
    steadiness: Steadiness
    cold_start: ColdStart | None
    windows: Mapping[str, InWindow]


@dataclass(frozen=True, slots=True)
class Measured:
    """Hold the block: counts by outcome, populations by name, what needs a common clock; the same by group [A13]."""

    method: str
    clock: str
    counts: Mapping[str, int]
    populations: Mapping[str, Summary]
    means: Mapping[str, Means]
    failures: Mapping[str, Mapping[str, Bounds]]
    goodput: Goodput | None
    stalls: Stalls | None
    playback: Playback | None
    deadlines: Deadlines | None
    tokens: Mapping[str, int]
    across: Across | None
    run: WholeRun | None
    groups: Mapping[str, "Measured"]

    @property
    def latency(self) -> Mapping[str, Summary]:
        """Give the five populations of the short summary."""
        return {short: self.populations[name] for short, name in SUMMARISED.items()}

    @property
    def window(self) -> Window:
        """Give the window of the run; raise InputError where there is no common clock."""
        return self.get_across().window

    @property
    def throughput(self) -> Throughput:
        """Give the rates; raise InputError where there is no common clock."""
        return self.get_across().throughput

    @property
    def backlog(self) -> Backlog:
        """Give the requests in the system; raise InputError where there is no common clock."""
        return self.get_across().backlog

    def get_across(self) -> Across:
        """Give what needs a common clock; raise InputError where there is none."""
        if self.across is None:
            raise InputError("every record has a clock of its own: nothing is computed across requests")
        return self.across


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
    inner = {} if window is None else {"W_steady": window, "W_steady, edges moved in": move_edges(window)}
    windows = {"T_all": get_window(columns), **inner}
    return WholeRun(
        fidelity=compute_fidelity(columns),
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
    unknown = list(columns.get("tokens")).count(MISSING)
    return {"unknown": unknown, "disagreeing": columns.disagreements, **columns.sources}


def summarise_all(completed: Columns, method: str) -> dict[str, Summary]:
    """Summarise every population of completed requests [A8, A9, A12, B13]; each shared one once."""
    made: dict[int, Summary] = {}
    found: dict[str, Summary] = {}
    for name, (population, undefined) in PopulationMaker(completed).make_all().items():
        if id(population) not in made:
            made[id(population)] = summarise(population, undefined, method, not name.startswith("itl."))
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
    """Compute three means of each time per token, by what each request counts as."""
    found = {}
    for name, parts in RATIOS.items():
        times, divisors, tokens = compute_ratio(columns, *parts)
        if not times:
            found[name] = Means(None, None, None)
            continue
        ratio = Fraction(sum(times), sum(divisors))
        weighted = ratio if parts[2] == 0 else weigh(times, divisors, tokens) / sum(tokens)
        found[name] = Means(populations[name].mean, weighted, ratio)
    return found


def weigh(times: Sequence[int], divisors: Sequence[int], tokens: Sequence[int]) -> Fraction:
    """Add up times per token, each multiplied by the tokens of its request."""
    parts: dict[int, int] = {}
    for time, divisor, count in zip(times, divisors, tokens, strict=True):
        parts[divisor] = parts.get(divisor, 0) + time * count
    return sum_exactly([Fraction(part, divisor) for divisor, part in parts.items()])


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
