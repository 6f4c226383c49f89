"""Goodput: requests that succeed and meet every condition, per second, with the policy spelt out [B16, B17]."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from refsched.errors import InputError
from refsched.metrics.columns import COMPLETED, Columns
from refsched.metrics.compact import MISSING
from refsched.metrics.definitions import RATIOS, SPANS
from refsched.units import Ticks, parse_time

SHORT: Mapping[str, str] = {
    "ttft": "ttft.any",
    "tpot": "tpot.decode/(n-1)",
    "e2e": "e2e.last_token",
    "latency": "latency.from_schedule",
    "longest-gap": "longest_gap",
}
FAR = 300  # a threshold this many times above all values, or below, was probably meant in another unit
NOT_APPLICABLE = ("pass", "fail", "exclude")
FAILURES = ("count", "drop")
DENOMINATORS = ("offered", "sent", "completed")
Answer: TypeAlias = str
MET, MISSED, NONE, UNKNOWN = "met", "missed", "not applicable", "unknown"
ANSWERS = (MISSED, MET)  # by whether it is met


@dataclass(frozen=True, slots=True)
class Slo:
    """Ask that a latency be at most a threshold."""

    name: str
    most: Ticks


@dataclass(frozen=True, slots=True)
class Policy:
    """Say what happens to a request that a condition does not apply to, to failures, and what the share is of.

    A condition does not apply where there are too few tokens for it: one token has no gap. With failures `drop`, what
    did not complete leaves the denominator too, whatever that is.
    """

    not_applicable: str = "pass"
    failures: str = "count"
    denominator: str = "offered"


@dataclass(frozen=True, slots=True)
class Attainment:
    """Hold how one condition fared among completed requests: met, missed, not applicable, or not known."""

    slo: Slo
    met: int
    missed: int
    not_applicable: int
    unknown: int
    warning: str | None


@dataclass(frozen=True, slots=True)
class Goodput:
    """Hold the joint count of good requests, what it is a share of, and the rate over the window."""

    policy: Policy
    good: int
    of: int
    share: Fraction | None
    per_second: Fraction | None
    good_tokens_per_second: Fraction | None
    conditions: Sequence[Attainment]


def parse_slos(text: str) -> tuple[Slo, ...]:
    """Read "ttft=1s,longest-gap=100ms"; raise InputError for an unknown name, a bare number or a name given twice."""
    slos = tuple(map(parse_slo, text.split(",")))
    names = [slo.name for slo in slos]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{twice} has two thresholds", field="--slo")
    return slos


def parse_slo(text: str) -> Slo:
    """Read one condition such as "ttft=1s"."""
    short, equals, limit = text.strip().partition("=")
    name = SHORT.get(short, short)
    if not equals or name not in {*SPANS, *RATIOS, "longest_gap"}:
        known = ", ".join([*SHORT, *SPANS, *RATIOS])
        raise InputError(f"{text.strip()!r} is not NAME=TIME with one of {known}", field="--slo")
    try:
        most, rounded = parse_time(limit)
    except InputError as error:
        raise error.at(field="--slo") from None
    if most < 0 or rounded:
        raise InputError(f"{limit!r} is {'negative' if most < 0 else 'finer than a picosecond'}", field="--slo")
    return Slo(name, most)


def check_policy(policy: Policy) -> Policy:
    """Return the policy; raise InputError where it names something unknown."""
    known = (("not_applicable", NOT_APPLICABLE), ("failures", FAILURES), ("denominator", DENOMINATORS))
    for name, words in known:
        if getattr(policy, name) not in words:
            raise InputError(f"{getattr(policy, name)!r} is not one of {', '.join(words)}", field=name)
    return policy


def compute_goodput(columns: Columns, slos: Sequence[Slo], policy: Policy, seconds: Fraction | None) -> Goodput:
    """Judge every request by all conditions together; `seconds` is the length of the window, None where unknown."""
    check_policy(policy)
    completed = [code == COMPLETED for code in columns.outcomes]
    answers = [judge(columns, slo) for slo in slos]
    joint = list(zip(*answers, strict=True))
    decided = {each: decide(each, policy.not_applicable) for each in set(joint)}
    verdicts = [done and decided[each] for done, each in zip(completed, joint, strict=True)]
    good = verdicts.count(True)
    of = sum(
        verdict is not None and is_counted(policy, done, sent != MISSING)
        for verdict, done, sent in zip(verdicts, completed, columns.get("sent"), strict=True)
    )
    tokens = sum_good_tokens(columns, verdicts)
    return Goodput(
        policy=policy,
        good=good,
        of=of,
        share=Fraction(good, of) if of else None,
        per_second=good / seconds if seconds else None,
        good_tokens_per_second=tokens / seconds if seconds and tokens is not None else None,
        conditions=[attain(slo, answer, completed, columns) for slo, answer in zip(slos, answers, strict=True)],
    )


def judge(columns: Columns, slo: Slo) -> list[Answer]:
    """Say for each row whether it meets a condition, whether that applies to it, or that its times are not known."""
    if slo.name == "longest_gap":
        pairs = zip(columns.longest, columns.get("first"), strict=True)
        return [
            (UNKNOWN if first == MISSING else NONE) if gap == MISSING else ANSWERS[gap <= slo.most]
            for gap, first in pairs
        ]
    begun, ended = columns.get(first_of(slo.name)), columns.get(last_of(slo.name))
    if slo.name in SPANS:
        pairs = zip(begun, ended, strict=True)
        return [UNKNOWN if MISSING in (since, to) else ANSWERS[to - since <= slo.most] for since, to in pairs]
    less = RATIOS[slo.name][2]
    fewer = columns.get(less) if isinstance(less, str) else [less] * len(columns)
    rows = zip(begun, ended, columns.get("tokens"), fewer, strict=True)
    return [
        UNKNOWN
        if MISSING in (since, to, count, some)
        else NONE
        if count <= some
        else ANSWERS[to - since <= slo.most * (count - some)]
        for since, to, count, some in rows
    ]


def first_of(name: str) -> str:
    """Name the column at which a latency begins."""
    return SPANS[name][0] if name in SPANS else RATIOS[name][0]


def last_of(name: str) -> str:
    """Name the column at which a latency ends."""
    return SPANS[name][1] if name in SPANS else RATIOS[name][1]


def decide(answers: Sequence[Answer], not_applicable: str) -> bool | None:
    """Join the answers of all conditions; None takes the request out of the count. What is not known is not good."""
    if MISSED in answers or UNKNOWN in answers:
        return False
    if NONE in answers:
        return {"pass": True, "fail": False, "exclude": None}[not_applicable]
    return True


def is_counted(policy: Policy, is_completed: bool, is_sent: bool) -> bool:
    """Tell whether a request belongs to what the share is taken of."""
    if not is_completed and (policy.failures == "drop" or policy.denominator == "completed"):
        return False
    return is_sent or policy.denominator != "sent"


def sum_good_tokens(columns: Columns, verdicts: Sequence[bool | None]) -> int | None:
    """Add up the output tokens of good requests; None where one does not know its count."""
    tokens = [count for count, good in zip(columns.get("tokens"), verdicts, strict=True) if good]
    return None if MISSING in tokens else sum(tokens)


def attain(slo: Slo, answers: Sequence[Answer], completed: Sequence[bool], columns: Columns) -> Attainment:
    """Count how one condition fared on its own among completed requests."""
    seen = [answer for answer, done in zip(answers, completed, strict=True) if done]
    met, missed, none, unknown = (seen.count(answer) for answer in (MET, MISSED, NONE, UNKNOWN))
    return Attainment(slo, met, missed, none, unknown, warn(columns, slo, set(answers)))


def warn(columns: Columns, slo: Slo, answers: Set[Answer]) -> str | None:
    """Say so where a threshold is far from every value: it was probably meant in another unit."""
    all_met, all_missed = (word in answers and other not in answers for word, other in ((MET, MISSED), (MISSED, MET)))
    if all_met and MISSED not in judge(columns, Slo(slo.name, slo.most // FAR)):
        return f"every value is below a {FAR}th of the threshold: was it meant in a smaller unit?"
    if all_missed and MET not in judge(columns, Slo(slo.name, slo.most * FAR)):
        return f"every value is above {FAR} times the threshold: was it meant in a larger unit?"
    return None
