"""Requests and limits refuse what cannot be meant."""

import pytest

from refsched.errors import InputError
from refsched.model import Limits, Request


@pytest.mark.parametrize("field", ["prompt", "output"])
@pytest.mark.parametrize("value", [0, -1, 1.0, "1", True, None, 10**13])
def test_token_counts_that_are_not_positive_whole_numbers_are_refused(field: str, value: object) -> None:
    counts: dict[str, object] = {"prompt": 1, "output": 1} | {field: value}
    with pytest.raises(InputError, match=field):
        Request("r0", **counts)  # type: ignore[arg-type]


def test_a_request_needs_a_name() -> None:
    with pytest.raises(InputError, match="id"):
        Request("", 1, 1)


@pytest.mark.parametrize("field", ["token_budget", "max_seqs", "chunk_cap", "block_size", "num_blocks", "max_len"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "8", True])
def test_limits_that_are_not_positive_whole_numbers_are_refused(field: str, value: object) -> None:
    """A chunk cap of 0 would never prefill anything: a configuration error, not a rule [S9]."""
    limits: dict[str, object] = {"token_budget": 8, "max_seqs": 2} | {field: value}
    with pytest.raises(InputError, match=field):
        Limits(**limits)  # type: ignore[arg-type]


def test_errors_name_file_row_and_field_in_one_line() -> None:
    error = InputError("is negative", field="prompt").at(file="a.csv", row=7).at(row=9, file="b.csv")
    assert str(error) == "a.csv: row 7: prompt: is negative"
