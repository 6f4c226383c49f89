"""refsched calibrate: measure step times here, or read somebody's, and write a cost model that states its error."""

import argparse
import math
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from refsched import __version__
from refsched.calibration.assemble import (
    assemble_log,
    assemble_measured,
    assemble_profile,
    stamp,
)
from refsched.calibration.forms import FORMS
from refsched.calibration.page import Page, Result, to_text
from refsched.calibration.profile import read_profile
from refsched.calibration.samples import Errors
from refsched.calibration.shapes import SHAPES
from refsched.cli.common import count_argument, write_json
from refsched.errors import InputError
from refsched.report.files import write_text
from refsched.report.table import format_table

SUMMARY = "measure step times, or read measured ones, and write a cost model that states its own error"
EXAMPLE = """Without --from, this machine is measured: its CPU through NumPy, or its GPU with --backend cupy.
--from CSV reads a log of iterations with the columns tokens, decodes, kv and time_s, time_ms or time_us; optional are
history, chunks (such as "512@4096 64@0", count@history) and use (train, held_out). --from FOLDER reads a profile.

examples:
  refsched calibrate --out cpu.json
  refsched calibrate --backend cupy --shape llama-3-8b --out h200.json
  refsched calibrate --from steps.csv --out mine.json
  refsched simulate requests.csv --token-budget 2048 --max-seqs 64 --cost mine.json"""
NOT_AVAILABLE, INTERRUPTED = 6, 130
BUDGETS: Mapping[str, float] = {"numpy": 60.0, "cupy": 240.0}
DEFAULT_SHAPES: Mapping[str, str] = {"numpy": "cpu-small", "cupy": "llama-3-8b"}
DEFAULT_OUT = "calibration.json"
ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
MICROSECOND = 1e-6
MEASURERS = Path(__file__).resolve().parents[2] / "gpu"  # in a checkout; an installation has refsched_gpu beside it


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refsched calibrate`."""
    parser.add_argument("--from", dest="source", metavar="CSV|FOLDER", help="fit these step times; measure nothing")
    parser.add_argument("--backend", choices=BUDGETS, default="numpy", help="what to measure with (numpy)")
    parser.add_argument(
        "--shape", choices=SHAPES, help="model whose layers are measured (numpy: cpu-small, cupy: llama-3-8b)"
    )
    parser.add_argument("--budget", metavar="SECONDS", help="time that measuring may take (numpy: 60, cupy: 240)")
    parser.add_argument(
        "--form", choices=FORMS, help="form of the model (measured: component; a log: the best held-out)"
    )
    parser.add_argument("--overhead-us", default="0", metavar="X", help="host time to add to every iteration (0)")
    parser.add_argument(
        "--kv-tokens", type=count_argument("--kv-tokens"), metavar="N", help="of a profile, points that fit this pool"
    )
    parser.add_argument("--seed", type=count_argument("--seed", least=0), default=1, metavar="N", help="for draws (1)")
    parser.add_argument("--out", default=DEFAULT_OUT, metavar="FILE", help=f"where the model goes ({DEFAULT_OUT})")
    parser.add_argument("--json", metavar="FILE", help="write the errors as JSON; - is standard output")


def run(arguments: argparse.Namespace) -> int:
    """Measure or read, fit, write the file, and say how good it is."""
    if arguments.out == "-" == arguments.json:
        raise InputError("only one of --out and --json can be standard output")
    overhead = read_number(arguments.overhead_us, "--overhead-us", least=0.0) * MICROSECOND
    check_place(arguments.out)
    if arguments.source:
        page, result = read_source(arguments, overhead)
        return write_out(arguments, page, result, 0)
    measurement = measure_here(arguments)
    if measurement is None:
        return NOT_AVAILABLE
    page, result = assemble_measured(
        measurement.points,
        measurement.rows,
        measurement.shape,
        measurement.ceilings,
        measurement.element_bytes,
        {**measurement.parts, "complete": measurement.complete},
        arguments.seed,
        overhead,
        arguments.form,
        measurement.depth,
    )
    return write_out(arguments, page, result, INTERRUPTED if measurement.interrupted else 0)


def read_number(text: str, name: str, least: float) -> float:
    """Read a finite number of at least `least`; raise InputError naming the argument."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < least:
        raise InputError(f"{text!r} is not a number of at least {least:g}", field=name)
    return value


def check_place(out: str) -> None:
    """Raise InputError before measuring where the file could not be written after it."""
    if out != "-" and not os.access(Path(out).parent, os.W_OK):
        raise InputError("cannot be written: the folder is not there or not writable", file=out)


def read_source(arguments: argparse.Namespace, overhead: float) -> tuple[Page, Result]:
    """Fit a log of iterations, or a folder with a kernel profile."""
    path = arguments.source
    if not Path(path).is_dir():
        return assemble_log(path, arguments.seed, overhead, arguments.form)
    return assemble_profile(read_profile(path), arguments.kv_tokens, arguments.seed, overhead, arguments.form)


def measure_here(arguments: argparse.Namespace) -> Any:
    """Measure this machine; say in one line what is missing and return None where it cannot be."""
    budget = BUDGETS[arguments.backend]
    if arguments.budget is not None:
        budget = read_number(arguments.budget, "--budget", least=1.0)
    for variable in ONE_THREAD if arguments.backend == "numpy" else ():
        os.environ.setdefault(variable, "1")  # read when NumPy is loaded: the clock is one thread's
    if MEASURERS.is_dir() and str(MEASURERS) not in sys.path:
        sys.path.append(str(MEASURERS))
    try:
        from refsched_gpu.errors import NotAvailableError
        from refsched_gpu.measure import measure
    except ImportError as error:
        return say_missing(f"{error.name or error} cannot be imported; measuring needs NumPy, a GPU refsched[gpu] too")
    try:
        shape = arguments.shape or DEFAULT_SHAPES[arguments.backend]
        return measure(arguments.backend, shape, budget, arguments.seed, say)
    except NotAvailableError as error:
        return say_missing(str(error))


def say(text: str) -> None:
    """Show progress on a terminal, and nothing in a pipe."""
    if sys.stderr.isatty():
        print(f"refsched: {text}", file=sys.stderr)


def say_missing(problem: str) -> None:
    """Say in one line what is missing."""
    print("refsched: " + " ".join(problem.split()), file=sys.stderr)


def write_out(arguments: argparse.Namespace, page: Page, result: Result, code: int) -> int:
    """Write the file and the report."""
    write_text(arguments.out, to_text(stamp(page, __version__)))
    write_json(arguments.json, {"out": arguments.out, "form": result.fit.form, "quality": page["quality"]})
    if "-" not in (arguments.out, arguments.json):
        print(format_text(arguments.out, page, result))
    return code


def format_text(out: str, page: Page, result: Result) -> str:
    """Lay out the errors by form and by kind, the alarms, and what to do next."""
    quality = page["quality"]
    assert isinstance(quality, dict)
    failed = [name.replace("_", " ") for name, is_well in quality["checks"].items() if not is_well]
    judged = {f"{result.fit.form} (written)": result.held_out or result.train, **result.alternatives}
    title = "training step times (none were held out)" if result.held_out is None else "held-out step times"
    header = (title, "n", "median", "p95", "max", "bias")
    rows = [(name, *format_errors(errors)) for name, errors in judged.items() if errors is not None]
    kinds = [(f"  {kind}", *format_errors(errors)) for kind, errors in result.by_kind.items()]
    return "\n".join(
        [
            f"{out}: {result.fit.form} form, {result.fit.layers} layers",
            format_table(header, [rows[0], *kinds, *rows[1:]]),
            f"largest relative rounding of a coefficient: {float(result.cost.rounding):.2g}",
            f"alarms: {', '.join(f'not {name}' for name in failed) or 'none'}",
            f"measured up to: {format_ranges(page)}; beyond it simulate refuses",
            f"use it: refsched simulate WORKLOAD --cost {out} …",
        ]
    )


def format_errors(errors: Errors) -> tuple[str, ...]:
    """Lay out one row."""
    shares = (errors.median, errors.p95, errors.max, errors.bias)
    return f"{errors.n:,}", *(f"{100 * share:.2f} %" for share in shares)


def format_ranges(page: Page) -> str:
    """Lay out the measured ranges."""
    ranges = page["validity"]
    assert isinstance(ranges, dict)
    return ", ".join(f"{name.replace('_', ' ')} {most:,}" for name, (_, most) in ranges.items())
