"""Reading a calibration file as a cost model: exact decimals, layers folded in, then rounded to ticks once."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction

from refsched.errors import InputError
from refsched.model import check_count
from refsched.simulation.cost_fitted import TERMS, FittedCost, Regime, Table, Validity
from refsched.units import LONGEST, TICKS_PER_SECOND, Ticks

CALIBRATION_FORMAT = "calibration/1"
Page = Mapping[str, object]


class Rounder:
    """Turn seconds per layer into ticks per iteration, and remember the largest relative change."""

    def __init__(self, layers: int):
        self.layers = layers
        self.largest = Fraction(0)

    def round(self, seconds: object, field: str, times: int = 1) -> Ticks:
        """Round once, half to even; raise InputError for what is no time that is at least 0."""
        if not isinstance(seconds, int | Decimal) or isinstance(seconds, bool) or not Decimal(seconds).is_finite():
            raise InputError(f"{seconds!r} is not a number of seconds", field=field)
        if abs(Decimal(seconds)) > LONGEST // TICKS_PER_SECOND or seconds < 0:
            raise InputError(f"{seconds} s is {'negative' if seconds < 0 else 'too long'}", field=field)
        exact = Fraction(seconds) * times * TICKS_PER_SECOND
        ticks = round(exact)
        if exact:
            self.largest = max(self.largest, abs(ticks - exact) / exact)
        return ticks

    def fold(self, seconds: object, field: str) -> Ticks:
        """Fold the layers in, then round."""
        return self.round(seconds, field, self.layers)


def read_calibration(page: Page, file: str) -> FittedCost:
    """Make the cost model of a calibration/1 page whose numbers are integers and Decimals; raise InputError."""
    try:
        return make_model(page, file)
    except InputError as error:
        raise error.at(file=file) from None


def make_model(page: Page, file: str) -> FittedCost:
    """Read the fit, the error and the measured ranges."""
    fit = get_page(page, "fit")
    rounder = Rounder(check_count(fit.get("layers"), "fit.layers"))
    decode_only = read_regime(fit, "decode_only", rounder)
    with_prefill = read_regime(fit, "with_prefill", rounder)
    rows = read_table(fit.get("row_table"), "fit.row_table", rounder.round)
    overhead = rounder.round(fit.get("overhead_s", 0), "fit.overhead_s")
    error = describe_error(page)
    return FittedCost(
        name=str(page.get("name", file)),
        label=f"{describe_source(page)}; held-out error {error}",
        overhead=overhead,
        decode_only=decode_only,
        with_prefill=with_prefill,
        rows=rows,
        layers=rounder.layers,
        rounding=rounder.largest,
        validity=read_validity(page),
        error=error,
    )


def get_page(page: Page, field: str, place: str = "") -> Page:
    """Get a nested object; raise InputError where it is missing or something else."""
    value = page.get(field)
    if not isinstance(value, Mapping):
        raise InputError("is missing or not an object", field=place + field)
    return value


def read_regime(fit: Page, name: str, rounder: Rounder) -> Regime:
    """Read one regime; missing terms cost nothing, unknown ones are refused. No table holds less than a tick."""
    regime, place = get_page(fit, name, "fit."), f"fit.{name}"
    table = read_table(regime.get("token_table"), f"{place}.token_table", rounder.fold)
    coefficients = get_page(regime, "coefficients", f"{place}.")
    unknown = sorted(coefficients.keys() - TERMS.keys())
    if unknown:
        raise InputError(f"is no term of the model ({', '.join(TERMS)})", field=f"{place}.coefficients.{unknown[0]}")
    places = {term: f"{place}.coefficients.{term}" for term in TERMS}
    prices = tuple(rounder.fold(get_value(coefficients, term, places[term]), places[term]) for term in TERMS)
    if not any(table.values) and not any(prices):
        raise InputError("says that iterations take no time", field=place)
    return Regime(Table(table.knots, tuple(max(1, value) for value in table.values)), prices)


def get_value(coefficients: Page, term: str, place: str) -> object:
    """Get a coefficient, which stands with its interval or alone."""
    given = coefficients.get(term, 0)
    if isinstance(given, Mapping) and "value" not in given:
        raise InputError('has no "value"', field=place)
    return given["value"] if isinstance(given, Mapping) else given


def read_table(value: object, field: str, read: object) -> Table:
    """Read [[count, seconds], …]; raise InputError for anything else."""
    if not isinstance(value, Sequence) or isinstance(value, str) or not all(is_pair(item) for item in value):
        raise InputError("is not a list of [count, seconds] pairs", field=field)
    assert callable(read)
    knots = tuple(check_count(count, field, least=0) for count, _ in value)
    try:
        return Table(knots, tuple(read(seconds, field) for _, seconds in value))
    except InputError as error:
        raise error.at(field=field) from None


def is_pair(value: object) -> bool:
    """Tell whether a value is a list of two."""
    return isinstance(value, list) and len(value) == 2


def read_validity(page: Page) -> Validity:
    """Read the largest of each kind that was measured; ranges that are not there are not checked."""
    ranges = page.get("validity", {})
    if not isinstance(ranges, Mapping):
        raise InputError("is not an object", field="validity")
    names = ("tokens", "chunk", "history", "decode_batch", "decode_context")
    unknown = sorted(ranges.keys() - set(names))
    if unknown:
        raise InputError("is not a range of the format", field=f"validity.{unknown[0]}")
    return Validity(**{name: read_upper(ranges[name], f"validity.{name}") for name in names if name in ranges})


def read_upper(value: object, field: str) -> int:
    """Read the upper end of a range [least, most]."""
    if not isinstance(value, list) or not is_pair(value):
        raise InputError("is not a range [least, most]", field=field)
    least = check_count(value[0], field, least=0)
    return check_count(value[1], field, least=least)


def describe_error(page: Page) -> str:
    """Say the held-out error of a file as "1.2 % median, 6.5 % p95 of 40 points"."""
    held_out = get_page(get_page(page, "quality"), "held_out", "quality.")
    median, p95 = (held_out.get(name) for name in ("median", "p95"))
    if not isinstance(median, int | Decimal) or not isinstance(p95, int | Decimal):
        return "unknown"
    return f"{100 * median:.3g} % median, {100 * p95:.3g} % p95 of {held_out.get('n', '?')} points"


def describe_source(page: Page) -> str:
    """Say what was measured where: "measured on NVIDIA H200 (cupy), 32 layers"."""
    device, fit = get_page(page, "device"), get_page(page, "fit")
    return f"fitted to step times of {device.get('name', 'an unnamed device')}, {fit.get('form', 'unknown')} form"
