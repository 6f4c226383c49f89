#!/usr/bin/env python3
"""Check the cost models against step times and a real engine's runs that others published.

    scripts/validate_hardware.py                               everything under ../shared/data/hardware
    scripts/validate_hardware.py --data DIR                    the same, elsewhere
    scripts/validate_hardware.py --profile DIR --run DIR       one GPU's profile and one run on it

Step times: each form is fitted to some points and judged on the others; seeds are printed. Runs: the same requests
through the scheduler's rule under a model fitted to the profile, first with no host overhead, then with the overhead
per iteration fitted to the first 100 arrivals and judged on the others. Nothing here is asserted, but the exit code is
1 where a number misses its aim (printed beside it).
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from refsched.calibration.forms import Fit, fit_all  # noqa: E402
from refsched.calibration.page import judge, judge_by_kind, load_fit, predict  # noqa: E402
from refsched.calibration.profile import Profile, choose_keys, draw, make_samples, read_profile, thin_out  # noqa: E402
from refsched.calibration.published import read_distserve, read_dynamo, read_splitwise  # noqa: E402
from refsched.calibration.real_run import read_run  # noqa: E402
from refsched.calibration.samples import Errors, Sample, quantile, sum_up  # noqa: E402
from refsched.errors import InputError  # noqa: E402
from refsched.report.files import write_text  # noqa: E402
from refsched.report.table import format_table  # noqa: E402
from scripts.hardware_runs import MANY, RunRow, format_runs, get_capacity, pick, run_pair  # noqa: E402

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "hardware"
SEEDS = (1, 2, 3)
FEW = 90  # training points of a profile: as many as a calibration measures
FOLDS = 5
AIMS = {"additive": (0.02, 0.10), "H200 decode": (0.03, None)}


@dataclass(frozen=True, slots=True)
class Row:
    """Hold the errors of one form on one set of held-out points."""

    data: str
    form: str
    kind: str
    errors: Errors
    aims: tuple[float | None, float | None] = (None, None)

    @property
    def is_met(self) -> bool:
        """Tell whether the aims are met, where there are any."""
        found = (self.errors.median, self.errors.p95)
        return all(aim is None or error <= aim for error, aim in zip(found, self.aims, strict=True))


# STEP TIMES


def check_profile(name: str, profile: Profile, capacity: int | None) -> Iterator[Row]:
    """Judge the forms on a profile: additive iterations for several seeds, then as they were run, within a KV pool."""
    for additive in (True, False):
        keys = choose_keys(profile, None if additive else capacity, additive)
        samples = make_samples(profile, keys, additive)
        within = f" within {capacity:,} KV" if capacity and not additive else ""
        for seed in SEEDS if additive else SEEDS[:1]:
            title = f"{name} {'additive' if additive else 'as run'}{within}, seed {seed}"
            train, held_out = (pick(samples, places) for places in draw(keys, FEW if additive else MANY, seed))
            for fit in fit_all(train, thin_out(profile.measured), profile.shape.layers, seed):
                yield from judge_fit(title, fit, held_out, additive)


def judge_fit(title: str, fit: Fit, held_out: Sequence[Sample], additive: bool) -> Iterator[Row]:
    """Judge one form on one profile; iterations as run are also judged by kind."""
    cost, layers = load_fit(fit), fit.layers
    errors = judge(cost, held_out, layers)
    assert errors is not None
    aims = AIMS["additive"] if additive and fit.form == "component" else (None, None)
    yield Row(title, fit.form, "all", errors, aims)
    if not additive and fit.form in ("two-regime", "linear in tokens"):
        for kind, part in judge_by_kind(cost, held_out, layers).items():
            yield Row(title, fit.form, kind, part)


def cross_validate(samples: Sequence[Sample], seed: int) -> dict[str, Errors]:
    """Judge each form on every fold, fitted to the other folds; for small sets."""
    order = sorted(range(len(samples)), key=lambda place: (place * 7919 + seed) % len(samples))
    guesses: dict[str, list[float]] = {}
    times: list[float] = []
    for fold in range(FOLDS):
        held_out = pick(samples, order[fold::FOLDS])
        train = pick(samples, [place for place in order if place not in order[fold::FOLDS]])
        times += [sample.seconds for sample in held_out]
        for fit in fit_all(train, seed=seed):
            guesses.setdefault(fit.form, []).extend(predict(load_fit(fit), held_out))
    return {form: sum_up(values, times) for form, values in guesses.items()}


def check_published(data: Path) -> Iterator[Row]:
    """Judge the forms on Dynamo's, splitwise-sim's and DistServe's numbers, by cross-validation."""
    for kind, samples in read_dynamo(str(data / "dynamo" / "H200_TP1P_TP1D")).items():
        for form, errors in cross_validate(samples, SEEDS[0]).items():
            aims = AIMS["H200 decode"] if (kind, form) == ("decode", "two-regime knee") else (None, None)
            yield Row(f"H200 dynamo, {FOLDS} folds", form, kind, errors, aims)
    sets = {
        f"splitwise-sim, {FOLDS} folds": read_splitwise(str(data / "splitwise-sim" / "perf_model.csv")),
        f"DistServe's formulas, {FOLDS} folds": read_distserve(str(data / "distserve" / "profiler-a100-80g.vllm.json")),
    }
    for title, parts in sets.items():
        for kind in ("prefill", "decode"):
            judged = [cross_validate(part, SEEDS[0]) for name, part in parts.items() if name.endswith(kind)]
            for form in judged[0]:
                yield Row(f"{title}, {len(judged)} systems", form, kind, pool([each[form] for each in judged]))


def pool(parts: Sequence[Errors]) -> Errors:
    """Give the middle of several systems' errors, and the largest of their maxima."""
    middle = {name: quantile([getattr(part, name) for part in parts], 0.5) for name in ("median", "p95", "bias")}
    return Errors(
        sum(part.n for part in parts), middle["median"], middle["p95"], max(p.max for p in parts), middle["bias"]
    )


# ALL OF IT


def find_pairs(data: Path) -> Iterator[tuple[Path, Path]]:
    """Pair every run with the profile of the same hardware and model."""
    base = data / "llmservingsim"
    for run in sorted(path.parent for path in base.glob("vllm_e2e/*/requests.jsonl")):
        hardware, _, model = run.name.partition("__")
        for profile in sorted(base.glob(f"profile/{hardware}__*")):
            if profile.name.endswith(f"__{model}"):
                yield profile, run


def gather(arguments: argparse.Namespace) -> tuple[list[Row], list[RunRow], list[str]]:
    """Do what the arguments ask for."""
    if arguments.run or arguments.profile:
        pairs = [(Path(arguments.profile), Path(arguments.run))] if arguments.run else []
        profiles = [Path(arguments.profile)]
    else:
        pairs = list(find_pairs(arguments.data))
        profiles = sorted(path.parent for path in arguments.data.glob("llmservingsim/profile/*/meta.yaml"))
    rows: list[Row] = []
    run_rows: list[RunRow] = []
    notes: list[str] = []
    pools = {profile: get_capacity(read_run(str(run))) for profile, run in pairs}
    for folder in profiles:
        rows += check_profile(folder.name, read_profile(str(folder)), arguments.kv_tokens or pools.get(folder))
    if not (arguments.run or arguments.profile):
        rows += check_published(arguments.data)
    for profile, run in pairs:
        found, said = run_pair(profile, run, arguments.workload)
        run_rows, notes = [*run_rows, *found], [*notes, *said]
    return rows, run_rows, notes


def percent(value: float) -> str:
    """Write a share with a sign where it can be negative."""
    return f"{100 * value:.2f} %"


def format_rows(rows: Sequence[Row]) -> str:
    """Lay out the step times' errors."""
    header = ("held-out step times", "form", "kind", "n", "median", "p95", "bias", "aim")
    cells = [
        (
            row.data,
            row.form,
            row.kind,
            f"{row.errors.n:,}",
            *(percent(value) for value in (row.errors.median, row.errors.p95, row.errors.bias)),
            "" if row.aims == (None, None) else "met" if row.is_met else "missed",
        )
        for row in rows
    ]
    return format_table(header, cells)


def main() -> int:
    """Print the tables; return 1 where an aim is missed, 2 for bad input, 5 where there was nothing to check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of published numbers")
    parser.add_argument("--profile", help="one LLMServingSim profile folder")
    parser.add_argument("--run", help="one run folder, of the profile's GPU and model")
    parser.add_argument("--workload", help="workload file with prefix numbers (found beside the run)")
    parser.add_argument("--kv-tokens", type=int, help="leave out profile points that need more KV tokens")
    parser.add_argument("--json", help="write all numbers here; - is standard output")
    arguments = parser.parse_args()
    if arguments.run and not arguments.profile:
        parser.error("--run needs --profile")
    try:
        rows, runs, notes = gather(arguments)
    except InputError as error:
        print(f"validate_hardware: {error}", file=sys.stderr)
        return 2
    if arguments.json:
        page = {"steps": [asdict(row) for row in rows], "runs": [asdict(row) for row in runs], "notes": notes}
        write_text(arguments.json, json.dumps(page, indent=1) + "\n")
    if arguments.json != "-":
        parts = (format_rows(rows) if rows else "", format_runs(runs) if runs else "", "\n".join(notes))
        print("\n\n".join(part for part in parts if part))
    if not rows and not runs:
        return 5
    met = [row.is_met for row in rows] + [row.is_met for row in runs]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
