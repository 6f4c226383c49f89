"""A real engine's run against its replay, under a cost model fitted to a profile of the same GPU and model."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from refsched.calibration.forms import fit_two_regimes
from refsched.calibration.page import load_fit
from refsched.calibration.profile import Profile, choose_keys, draw, make_samples, read_profile, thin_out
from refsched.calibration.real_run import Run, find_workload, read_run
from refsched.calibration.replay import FITTED_ON, Summary, fit_overhead, get_start, replay, summarise
from refsched.calibration.samples import Sample
from refsched.errors import InputError
from refsched.report.table import format_table
from refsched.simulation.cost_fitted import FittedCost, set_overhead
from refsched.units import TICKS_PER_SECOND

DIALECT = "vllm-0.29"  # the oldest recorded vLLM V1; the runs are of 0.19, whose rule is the same as far as we know
RUN_AIMS = {"mean_ttft": 0.10, "p95_ttft": None, "mean_tpot": 0.10, "makespan": 0.10}
FITTED_AIMS = {"mean_ttft": 0.05, "p95_ttft": 0.10, "mean_tpot": 0.05, "makespan": 0.05}
SEED = 1
MANY = 600  # training points of a profile, for replaying a run


@dataclass(frozen=True, slots=True)
class RunRow:
    """Hold one comparison of a run: simulated over measured, minus 1, for each number."""

    run: str
    what: str
    overhead: float
    errors: Mapping[str, float]
    aims: Mapping[str, float | None]

    @property
    def is_met(self) -> bool:
        """Tell whether the aims are met."""
        pairs = ((self.errors[name], aim) for name, aim in self.aims.items())
        return all(aim is None or abs(error) <= aim for error, aim in pairs)


def fit_for_run(profile: Profile, capacity: int | None) -> FittedCost:
    """Fit the two-regime form to iterations as the engine runs them, within its KV pool."""
    keys = choose_keys(profile, capacity, False)
    samples = make_samples(profile, keys)
    places, _ = draw(keys, MANY, SEED)
    return load_fit(fit_two_regimes(pick(samples, places), thin_out(profile.measured), SEED))


def check_run(run: Run, cost: FittedCost) -> Iterator[RunRow]:
    """Compare a run with its replay: without host overhead, then with the overhead that the first arrivals show."""
    yield compare(run, cost, 0.0, "all", slice(None), RUN_AIMS)
    overhead = fit_overhead(run, cost, DIALECT)
    yield compare(run, cost, overhead, f"first {FITTED_ON}", slice(FITTED_ON), {})
    yield compare(run, cost, overhead, "others", slice(FITTED_ON, None), FITTED_AIMS)


def compare(
    run: Run, cost: FittedCost, overhead: float, what: str, part: slice, aims: Mapping[str, float | None]
) -> RunRow:
    """Compare some of the requests' numbers; all requests are simulated."""
    times = replay(run, set_overhead(cost, round(overhead * TICKS_PER_SECOND)), DIALECT)
    simulated, measured = summarise(times[part], 0.0), summarise(run.measured[part], get_start(run))
    return RunRow(run.name, what, overhead, find_errors(simulated, measured), aims)


def find_errors(simulated: Summary, measured: Summary) -> dict[str, float]:
    """Give simulated / measured - 1 for each number."""
    true = asdict(measured)
    return {name: value / true[name] - 1 for name, value in asdict(simulated).items()}


def explain_unfit(run: Run) -> str | None:
    """Say why a profile of one device cannot stand for a run, if it cannot."""
    if run.replicas > 1:
        return f"it ran as {run.replicas} replicas that share their experts; a profile holds one engine's kernels"
    return None


def run_pair(profile_folder: Path, run_folder: Path, workload: str | None) -> tuple[list[RunRow], list[str]]:
    """Check one run against one profile; a run that cannot be is named with the reason."""
    run = read_run(str(run_folder), workload or find_workload(str(run_folder)))
    reason = explain_unfit(run)
    try:
        profile = None if reason else read_profile(str(profile_folder), run.tensor_parallel)
    except InputError as error:
        reason = f"no profile of {run.tensor_parallel} devices: {error}"
    if reason is not None or profile is None:
        return [], [f"{run.name}: left out: {reason}"]
    rows = list(check_run(run, fit_for_run(profile, get_capacity(run))))
    return rows, [f"{run.name}: {note}" for note in (f"limits {run.limits}", *run.notes, *compare_pair(profile, run))]


def get_capacity(run: Run) -> int | None:
    """Give the tokens of a run's KV pool, if it has an end."""
    return None if run.limits.num_blocks is None else run.limits.num_blocks * run.limits.block_size


def compare_pair(profile: Profile, run: Run) -> Iterator[str]:
    """Say where a profile does not fit a run, though it was used."""
    most = profile.measured.table[-1][0]
    if run.model != profile.model:
        yield f"the run is of {run.model}, the profile of {profile.model}"
    if (run.limits.token_budget or most) > most:
        yield f"iterations of more than {most} tokens are extrapolated"


def pick(samples: Sequence[Sample], places: Sequence[int]) -> list[Sample]:
    """Pick samples by place."""
    return [samples[place] for place in places]


def format_runs(rows: Sequence[RunRow]) -> str:
    """Lay out the runs' errors."""
    header = (
        "run, simulated against measured",
        "arrivals",
        "overhead",
        "mean TTFT",
        "p95 TTFT",
        "mean TPOT",
        "makespan",
        "aim",
    )
    cells = [
        (
            row.run,
            row.what,
            f"{1e3 * row.overhead:.3f} ms",
            *(f"{100 * error:+.2f} %" for error in row.errors.values()),
            "" if not row.aims else "met" if row.is_met else "missed",
        )
        for row in rows
    ]
    return format_table(header, cells)
