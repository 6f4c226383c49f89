"""From measurements to a calibration file: fit, hold to the floors, judge, write down."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

from refsched.calibration.floors import Ceilings, explain_floor, get_implied, raise_to_floor
from refsched.calibration.forms import Fit, Knots, Measured, fit_all, interpolate
from refsched.calibration.page import (
    Page,
    Point,
    Result,
    errors_to_json,
    find_checks,
    find_validity,
    fit_to_json,
    judge,
    make_page,
    make_result,
    number,
    quality_to_json,
)
from refsched.calibration.profile import Profile, choose_keys, draw, make_samples, thin_out
from refsched.calibration.samples import Sample, Step, get_kind
from refsched.calibration.shapes import Shape
from refsched.calibration.step_log import read_step_log
from refsched.errors import InputError
from refsched.simulation.cost_file import CALIBRATION_FORMAT

FEWEST_POINTS = {"table": 4, "train": 12}
MOST_TRAINING = 1000  # iterations of a log that are fitted to, evenly spread over the others
PROFILE_POINTS = 600


def assemble_measured(
    points: Sequence[Point], rows: Knots, shape: Shape, ceilings: Ceilings, element_bytes: int,
    parts: Mapping[str, object], seed: int, overhead: float = 0.0, form: str | None = None,
    depth: Sequence[tuple[Step, float]] = (),
) -> tuple[Page, Result]:  # fmt: skip
    """Make the file of points measured by layer; raise InputError where too few were measured."""
    for use, least in FEWEST_POINTS.items():
        if sum(point.use == use for point in points) < least:
            raise InputError(f"too few {use} points were measured for a fit; give it more time", field="--budget")
    table = tuple(sorted((point.step.tokens, point.seconds) for point in points if point.use == "table"))
    measured = Measured(table, rows, shape.layers)
    train, held_out = (with_logits(points, use, rows, shape.layers) for use in ("train", "held_out"))
    fits, raised = [], {}
    for fit in fit_all(train, measured, shape.layers, seed):
        kept, what = raise_to_floor(fit, shape, element_bytes, ceilings) if fit.form in HELD_TO_FLOORS else (fit, [])
        fits.append(kept)
        raised[fit.form] = what
    result = make_result(fits, form or "component", train, held_out)
    page = make_page(result, points, {**parts, "model": asdict(shape), "seed": seed})
    page["ceilings"] = {"flops": number(ceilings.flops), "bandwidth": number(ceilings.bandwidth)}
    page["fit"] = {
        **fit_to_json(with_host(result.fit, overhead)),
        "raised_to_floor": raised[result.fit.form],
        "implied": {
            name: value and number(value) for name, value in get_implied(result.fit, shape, element_bytes).items()
        },
    }
    page["binding"] = find_binding(points, shape, element_bytes, ceilings)
    page["depth_check"] = check_depth(depth, rows, result, shape.layers)
    return page, result


HELD_TO_FLOORS = ("component", "two-regime")  # the forms beside a measured table; the others are shown for comparison


def with_logits(points: Sequence[Point], use: str, rows: Knots, layers: int) -> list[Sample]:
    """Give the points of one use as shares of whole iterations: one layer, and its share of the logits."""
    samples = [point.sample for point in points if point.use == use]
    return [replace(each, seconds=each.seconds + get_share(each, rows) / layers) for each in samples]


def get_share(sample: Sample, rows: Knots) -> float:
    """Give the time of an iteration's logits."""
    return interpolate(rows, len(sample.work.chunks) + sample.work.decodes)


def check_depth(depth: Sequence[tuple[Step, float]], rows: Knots, result: Result, layers: int) -> Page:
    """Compare the model with iterations through all layers, measured together; empty where none were."""
    samples = [Sample(step.work, seconds) for step, seconds in depth]
    whole = [replace(each, seconds=each.seconds + get_share(each, rows)) for each in samples]
    return {"layers": layers, **errors_to_json(judge(result.cost, whole))} if whole else {}


def find_binding(points: Sequence[Point], shape: Shape, element_bytes: int, ceilings: Ceilings) -> list[Page]:
    """Say for the training points which floor is the largest and what binds it, by kind of iteration [A25]."""
    found: dict[tuple[str, str, str], int] = {}
    for point in points:
        if point.use != "table":
            work = point.step.work
            key = (get_kind(work), *explain_floor(shape, work, element_bytes, ceilings))
            found[key] = found.get(key, 0) + 1
    return [
        {"kind": kind, "group": group, "bound_by": limit, "points": count}
        for (kind, group, limit), count in sorted(found.items())
    ]


def assemble_log(
    path: str, seed: int, overhead: float = 0.0, form: str | None = None, name: str = ""
) -> tuple[Page, Result]:
    """Make the file of a step log; its overhead is inside the measured times unless they are of kernels only."""
    train, held_out = read_step_log(path, seed)
    fitted = train[:: -(-len(train) // MOST_TRAINING)]
    result = make_result(fit_all(fitted, seed=seed), form, train, held_out)
    source = {"file": Path(path).name, "sha256": hash_file(path), "train": len(fitted), "held_out": len(held_out)}
    return assemble_samples(
        result, train, {"kind": "step log", **source}, name or Path(path).stem, seed, overhead
    ), result


def assemble_profile(
    profile: Profile, capacity: int | None, seed: int, overhead: float = 0.0, form: str | None = None
) -> tuple[Page, Result]:
    """Make the file of a kernel profile, fitted to iterations as the engine runs them within a KV capacity."""
    keys = choose_keys(profile, capacity, apart=False)
    samples = make_samples(profile, keys)
    train, held_out = ([samples[place] for place in part] for part in draw(keys, PROFILE_POINTS, seed))
    fits = fit_all(train, thin_out(profile.measured), profile.shape.layers, seed)
    result = make_result(fits, form or "two-regime", train, held_out)
    source = {"kind": "kernel profile", "model": profile.model, "train": len(train), "held_out": len(held_out)}
    page = assemble_samples(result, train, source, profile.device, seed, overhead)
    return {**page, "model": asdict(profile.shape)}, result


def assemble_samples(
    result: Result, train: Sequence[Sample], source: Mapping[str, object], name: str, seed: int, overhead: float
) -> Page:
    """Make a file without points: they are somebody else's, and its source says whose."""
    page: Page = {
        "schema": CALIBRATION_FORMAT,
        "device": {"backend": "as logged", "name": name},
        "source": dict(source),
        "seed": seed,
        "fit": fit_to_json(with_host(result.fit, overhead)),
        "quality": quality_to_json(result, find_checks(result, []), []),
        "validity": find_validity(train),
        "points": [],
    }
    return page


def with_host(fit: Fit, overhead: float) -> Fit:
    """Set the host's seconds per iteration."""
    return replace(fit, overhead=overhead)


def stamp(page: Page, version: str) -> Page:
    """Say when and by which version a file was made; the schema stays first."""
    created = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    head = {"schema": page["schema"], "created": created, "tool": {"name": "refsched", "version": version}}
    return {**head, **page}


def hash_file(path: str) -> str:
    """Give a file's SHA-256."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
