"""What the files of vLLM's and SGLang's serving benchmarks share: they grew from one script."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple, TypeVar

from refsched.results.fields import Fields
from refsched.results.run import Success

Sized = TypeVar("Sized", bound=Sequence[object])
BECAUSE = "the file keeps no finish reason, no usage mark and no [DONE]; a stream cut short looks like a whole one"


class Details(NamedTuple):
    """Hold the per-request arrays that both write, all of one length."""

    ttfts: Sequence[Decimal]
    outputs: Sequence[int]
    inputs: Sequence[int]
    gaps: Sequence[Sequence[Decimal]]
    errors: Sequence[str]  # empty where a request had none


def read_details(fields: Fields) -> Details:
    """Read the per-request arrays; raise InputError where one is not as long as `ttfts`."""
    ttfts = fields.times("ttfts")
    size = len(ttfts)
    gaps = [read_gaps(fields, place, item) for place, item in enumerate(fields.items("itls"))]
    errors = [str(item or "") for item in fields.items("errors")] if fields.has("errors") else [""] * size
    return Details(
        ttfts=ttfts,
        outputs=check_length(fields, "output_lens", fields.counts("output_lens"), size),
        inputs=check_length(fields, "input_lens", fields.counts("input_lens"), size),
        gaps=check_length(fields, "itls", gaps, size),
        errors=check_length(fields, "errors", errors, size),
    )


def read_gaps(fields: Fields, place: int, item: object) -> list[Decimal]:
    """Read the gaps of one request, none of them negative."""
    return Fields({"itls": item}, fields.file, fields.row, f"[{place}]").times("itls")


def check_length(fields: Fields, key: str, values: Sized, size: int) -> Sized:
    """Refuse an array that is not as long as `ttfts`."""
    if len(values) != size:
        fields.complain(key, f"has {len(values)} entries, ttfts has {size}")
    return values


def shorten_error(text: str) -> str:
    """Keep the last line of an error, which may be a whole traceback."""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1][:200] if lines else "no reason given"


def read_claims(fields: Fields, names: Mapping[str, str], latencies: Mapping[str, str]) -> dict[str, Decimal | None]:
    """Read the summary: what stands under shared `names`, three statistics of each latency in seconds, and the rate."""
    claims = {name: fields.find(key) for name, key in names.items()}
    for key, name in latencies.items():
        for statistic in ("mean", "median", "p99"):
            value = fields.find(f"{statistic}_{key}_ms")
            claims[f"{statistic}_{name}"] = None if value is None else value / 1000
    rate = fields.get("request_rate")
    claims["rate"] = fields.find("request_rate") if isinstance(rate, int | Decimal) else None
    return claims


def judge_success(fields: Fields) -> Success:
    """Say what is known of true success: nothing in the file tells a stream that was cut from a whole one."""
    return Success(int(fields.number("completed")), None, BECAUSE)
