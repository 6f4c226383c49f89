"""The word on the command line, and the built-in scenarios."""

from pathlib import Path

import pytest

from refsched.errors import InputError
from refsched.model import Request
from refsched.units import TICKS_PER_SECOND
from refsched.workload.load import load_workload
from refsched.workload.offer import Offer
from refsched.workload.scenarios import SCENARIOS, get_scenario
from tests.workload.files import write

OWN = "arrival_s,prompt_tokens,output_tokens\n0,5,2\n1,6,3\n2,7,4\n"


def test_a_scenario_a_generator_and_a_file(tmp_path: Path) -> None:
    assert load_workload("four-requests").kind == "scenario"
    assert load_workload("poisson:rate=4,n=3,prompt=1,output=1", 5).source["seed"] == 5
    assert load_workload(write(tmp_path, OWN)).kind == "refsched-csv"


def test_a_file_may_look_like_a_generator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, OWN, "run:2.csv")
    write(tmp_path, OWN, "four-requests")
    assert len(load_workload("run:2.csv").offers) == 3
    assert load_workload("four-requests").kind == "scenario"
    assert load_workload("./four-requests").kind == "refsched-csv"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is no file"),
        ("no-such-thing", "four-requests, long-prompt, research-assistant"),
        ("weibull:rate=1,n=10", "'weibull' is no kind of generator (batch, constant, poisson, gamma, servegen)"),
        ("a\0b", "is no file"),
        ("x" * 5000, "is no file"),
        (".", "cannot be read"),
    ],
)
def test_a_word_that_names_nothing_is_refused(text: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        load_workload(text)
    assert words in str(caught.value) and len(str(caught.value)) < 400


def test_only_the_first_requests(tmp_path: Path) -> None:
    generated = load_workload("constant:rate=1,n=10,prompt=1,output=1", first=4)
    assert len(generated.offers) == 4 and generated.source["first"] == 4
    assert any("first 4 of 10" in note for note in generated.notes)
    assert len(load_workload("four-requests", first=9).offers) == 4
    assert len(load_workload(write(tmp_path, OWN), first=2).offers) == 2
    for first in (0, -1):
        with pytest.raises(InputError):
            load_workload("four-requests", first=first)


def test_ties_and_seed_reach_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, "arrival_s,prompt_tokens,output_tokens\n0,1,1\n0,1,1\n1,1,1\n")
    assert load_workload(path, ties="spread").offers[1].at == TICKS_PER_SECOND // 2
    assert load_workload(path, 1, ties="scatter").offers != load_workload(path, 2, ties="scatter").offers


def test_four_requests_are_those_of_the_timetable() -> None:
    """A(0, 4 tokens) B(0, 2) C(1, 2) D(2, 1), ready to decode: prompts of one token [A6, decision 1]."""
    assert get_scenario("four-requests").offers == tuple(
        Offer(at * TICKS_PER_SECOND, Request(name, 1, output))
        for name, at, output in (("A", 0, 4), ("B", 0, 2), ("C", 1, 2), ("D", 2, 1))
    )


def test_the_long_prompt_comes_during_the_first_iteration() -> None:
    first, second, long = get_scenario("long-prompt").offers
    assert (first.at, second.at, long.at) == (0, 0, 1)
    assert (first.request.id, second.request.id, long.request.id) == ("D1", "D2", "long")
    assert (first.request.prompt, second.request.prompt) == (1, 1)
    assert (long.request.prompt, long.request.output) == (4096, 1)
    assert min(first.request.output, second.request.output) > 4096 + 1  # also at one prompt token an iteration


def test_research_assistant_mixes_few_long_reports_and_many_short_chats() -> None:
    workload = get_scenario("research-assistant", 3)
    assert workload == get_scenario("research-assistant", 3)
    assert workload.offers != get_scenario("research-assistant", 4).offers
    reports = [offer.request for offer in workload.offers if offer.group == "report"]
    chats = [offer.request for offer in workload.offers if offer.group == "chat"]
    assert 10 <= len(reports) <= 30 and 200 <= len(chats) <= 500
    assert len(reports) + len(chats) == len(workload.offers)
    assert all(4000 <= request.prompt <= 7000 and 400 <= request.output <= 900 for request in reports)
    assert sum(request.prompt for request in chats) / len(chats) < 400
    assert 200 < workload.offers[-1].at / TICKS_PER_SECOND < 450
    assert [offer.at for offer in workload.offers] == sorted(offer.at for offer in workload.offers)
    assert len({offer.request.id for offer in workload.offers}) == len(workload.offers)


def test_every_scenario_says_what_it_shows() -> None:
    for name, scenario in SCENARIOS.items():
        workload = get_scenario(name)
        assert workload.name == name and workload.kind == "scenario" and scenario.about
    with pytest.raises(InputError, match="four-requests"):
        get_scenario("five-requests")
