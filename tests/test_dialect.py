"""Dialects are data; what a dialect does not offer is refused."""

import pytest

from refsched.dialect import get_dialect, list_dialects
from refsched.errors import InputError
from refsched.scheduling.policies import POLICIES


@pytest.mark.parametrize("name", list_dialects())
def test_every_shipped_dialect_has_a_rule(name: str) -> None:
    assert get_dialect(name).rule in POLICIES


def test_vllm_v1_is_the_newest() -> None:
    assert get_dialect("vllm-v1") == get_dialect("vllm-0.33")
    assert get_dialect("vllm-v1").options() == {
        **get_dialect("vllm-v1").options(),
        "policy": "fcfs",
        "prefix_cache": False,
        "admission_gate": "whole-known-sequence",
        "watermark_blocks": 0,
        "chunk_cap_lifted_when_alone": True,
        "order": "admission",
        "self_victim": "next-goes-on",
        "impossible": "reject",
    }


def test_0_29_differs_in_two_choices() -> None:
    old, new = get_dialect("vllm-0.29").options(), get_dialect("vllm-0.33").options()
    assert {name: old[name] for name in new if old[name] != new[name]} == {
        "chunk_cap_lifted_when_alone": False,
        "self_victim": "ends-walk",
    }


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("vllm-9", {}),
        ("document-a", {"watermark_blocks": 4}),
        ("vllm-v1", {"no_such_option": 1}),
        ("vllm-v1", {"watermark_blocks": -1}),
        ("vllm-v1", {"watermark_blocks": "4"}),
        ("vllm-v1", {"watermark_blocks": True}),
        ("vllm-v1", {"chunk_cap_lifted_when_alone": 1}),
        ("vllm-v1", {"impossible": "perhaps"}),
        ("vllm-v1", {"policy": "lifo"}),
        ("../dialects/static", {}),
    ],
)
def test_unknown_names_options_and_values_are_refused(name: str, options: dict[str, object]) -> None:
    with pytest.raises(InputError):
        get_dialect(name, options)
