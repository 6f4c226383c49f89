"""The fuzzer: scenarios drawn from a seed, small and tight, so that requests get into each other's way.

Case n of a seed is always the same scenario. What is found is shrunk and becomes a vector; verdicts come from the
corpus, not from chance.
"""

from collections.abc import Iterator
from random import Random

from refsched.conformance.scenario_file import Arrival, Cancel, Scenario
from refsched.model import Limits, Request

BUDGETS = (1, 2, 3, 4, 5, 7, 8, 16, 64)
SEATS = (1, 2, 3, 4, 8, None)
CAPS = (None, None, None, 1, 2, 3, 5)
SIZES = (1, 1, 1, 2, 4)
POOLS = (None, 2, 3, 4, 5, 6, 8, 12)
LONGEST = (None, None, None, 6, 9, 16)
GAPS = (0, 0, 0, 1, 1, 2, 4)
PRIORITIES = (0, 0, 1, -1, 5)


def draw_scenarios(seed: int, cases: int) -> Iterator[Scenario]:
    """Draw the first `cases` scenarios of a seed."""
    for case in range(cases):
        yield draw_scenario(seed, case)


def draw_scenario(seed: int, case: int) -> Scenario:
    """Draw one scenario; its origin says how it was drawn."""
    rng = Random(f"{seed}/{case}")
    limits = draw_limits(rng)
    arrivals = draw_arrivals(rng, limits)
    cancels = tuple(draw_cancels(rng, arrivals))
    return Scenario(limits, arrivals, cancels, id=f"seed {seed}, case {case}", origin=f"fuzz: seed {seed}, case {case}")


def draw_limits(rng: Random) -> Limits:
    """Draw limits that bind."""
    budget = rng.choice(BUDGETS)
    return Limits(
        token_budget=budget,
        max_seqs=rng.choice(SEATS),
        chunk_cap=rng.choice(CAPS),
        block_size=rng.choice(SIZES),
        num_blocks=rng.choice(POOLS),
        max_len=rng.choice(LONGEST),
    )


def draw_arrivals(rng: Random, limits: Limits) -> tuple[Arrival, ...]:
    """Draw a few requests that compete, in some cases with prompts that begin alike."""
    shares, names_twice = rng.random() < 0.3, rng.random() < 0.05
    slots = 24 if limits.num_blocks is None else limits.num_blocks * limits.block_size
    arrivals, at = [], 0
    for number in range(rng.randint(1, 5)):
        at += rng.choice(GAPS)
        prompt = rng.randint(1, max(1, min(12, slots)))
        output = rng.randint(1, max(1, min(8, slots + 1 - prompt)) if rng.random() < 0.9 else 8)
        prefix = tuple(draw_prefix(rng, prompt // limits.block_size)) if shares else ()
        id = f"r{0 if names_twice else number}"
        request = Request(id, prompt, output, rng.choice(PRIORITIES), prefix)
        arrivals.append(Arrival(at, request, rng.random() < 0.15))
    return tuple(arrivals)


def draw_prefix(rng: Random, blocks: int) -> Iterator[int]:
    """Draw the contents of a prompt's blocks: common ones up to a point, its own from there."""
    common = rng.randint(0, blocks)
    for place in range(blocks):
        yield place if place < common else 100 + rng.randrange(10**6)


def draw_cancels(rng: Random, arrivals: tuple[Arrival, ...]) -> Iterator[Cancel]:
    """Draw a cancellation for a request now and then, soon after it comes."""
    for arrival in arrivals:
        if rng.random() < 0.12:
            yield Cancel(arrival.at + rng.randint(0, 4), arrival.request.id, rng.random() < 0.3)
