"""Our own JSON lines and CSV: what they mean, and everything that they must not be."""

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refsched.errors import InputError
from refsched.model import Request
from refsched.workload.formats import ReadOptions, read_workload
from refsched.workload.formats.lines import LONGEST_LINE
from refsched.workload.formats.syntax import parse_object
from refsched.workload.offer import Offer
from tests.workload.files import read, refuse, rows_of, write

HEAD = "arrival_s,prompt_tokens,output_tokens"
ROW = '{"arrival_s": 0, "prompt_tokens": 5, "output_tokens": 2}'
SECOND = 10**12


def test_csv_is_read_exactly_and_rebased(tmp_path: Path) -> None:
    workload = read(tmp_path, f"{HEAD}\n0.1,5,2\n0.3000000000004,7,1\n1e3,9,3\n")
    assert rows_of(workload) == [(0, "r0", 5, 2), (200000000000, "r1", 7, 1), (999900000000000, "r2", 9, 3)]
    assert workload.kind == "refsched-csv"
    assert len(workload.notes) == 1 and "finer than a picosecond" in workload.notes[0] and "row 3" in workload.notes[0]


def test_half_a_picosecond_rounds_to_even(tmp_path: Path) -> None:
    workload = read(tmp_path, f"{HEAD}\n0,1,1\n0.0000000000005,1,1\n0.0000000000015,1,1\n")
    assert [offer.at for offer in workload.offers] == [0, 0, 2]


def test_jsonl_with_every_field(tmp_path: Path) -> None:
    lines = [
        '{"arrival_s": 1.5, "prompt_tokens": 5, "output_tokens": 2, "id": "a", "priority": -3, "group": "chat",'
        ' "cancel_s": 2, "hash_ids": [7, 8, 9], "block_tokens": 2}',
        '{"arrival_s": 1.5, "prompt_tokens": 4, "output_tokens": 1, "id": null, "hash_ids": [7, 8], "block_tokens": 2}',
        '{"arrival_s": 2, "prompt_tokens": 4, "output_tokens": 1, "hash_ids": [1, 8], "block_tokens": 2}',
    ]
    workload = read(tmp_path, "\n".join(lines))
    first, second, third = workload.offers
    assert (first.at, first.group, first.cancel_at) == (0, "chat", SECOND // 2)
    assert (first.request.id, first.request.priority) == ("a", -3)
    assert len(first.request.prefix) == 2  # five tokens are two full blocks of two
    assert second.request.prefix == first.request.prefix
    assert second.request.id == "r1"
    assert set(third.request.prefix).isdisjoint(first.request.prefix)  # the same block 8 after another beginning
    assert workload.source["block_tokens"] == 2
    assert workload.source["hash_ids"] == 7 and workload.source["hash_ids_reused"] == 2


def test_csv_and_jsonl_say_the_same(tmp_path: Path) -> None:
    columns = "output_tokens,id,arrival_s,hash_ids,block_tokens,prompt_tokens,priority,group,cancel_s"
    text = f'{columns}\r\n2,007,0.50,3 4,4,8,,"a, b",\r\n1,x,0.50,3 4 5,4,9,2,,7\r\n'
    lines = (
        '{"output_tokens":2,"id":"007","arrival_s":0.5,"hash_ids":[3,4],"block_tokens":4,"prompt_tokens":8,'
        '"group":"a, b"}\n'
        '{"output_tokens":1,"id":"x","arrival_s":0.5,"hash_ids":[3,4,5],"block_tokens":4,"prompt_tokens":9,'
        '"priority":2,"cancel_s":7}\n'
    )
    assert read(tmp_path, text).offers == read(tmp_path, lines).offers
    assert read(tmp_path, text).offers[0] == Offer(0, Request("007", 8, 2, prefix=(0, 1)), "a, b")


@pytest.mark.parametrize("end", ["\n", "\r\n", ""], ids=["LF", "CRLF", "no newline at the end"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "BOM"])
def test_line_ends_and_mark_do_not_matter(tmp_path: Path, end: str, mark: str) -> None:
    joint = end or "\n"
    content = mark + joint.join([HEAD, "0,1,1", "1,2,2"]) + end
    assert rows_of(read(tmp_path, content)) == [(0, "r0", 1, 1), (SECOND, "r1", 2, 2)]


def test_equal_times_blank_lines_and_repeats_are_counted(tmp_path: Path) -> None:
    workload = read(tmp_path, f"{HEAD}\n\n0,1,1\n0,1,1\n  \n0,2,1\n5,1,1\n")
    assert [offer.request.id for offer in workload.offers] == ["r0", "r1", "r2", "r3"]
    notes = " ".join(workload.notes)
    assert "same time as the one before: 2" in notes
    assert "Blank lines, left out: 2 (first: row 2)" in notes
    assert "in every field, kept: 1 (first: row 4)" in notes


def test_only_the_first_rows_are_read_but_the_whole_file_is_hashed(tmp_path: Path) -> None:
    content = f"{HEAD}\n0,1,1\n1,2,2\nthis is no row\n"
    workload = read(tmp_path, content, ReadOptions(first=2))
    assert len(workload.offers) == 2
    assert workload.source["sha256"] == hashlib.sha256(content.encode()).hexdigest()
    assert workload.source["rows"] == 2 and workload.source["first"] == 2
    assert any("Only the first 2" in note for note in workload.notes)


def test_a_name_is_not_what_a_format_is_told_by(tmp_path: Path) -> None:
    path = write(tmp_path, f"{HEAD}\n0,1,1\n", "requests.jsonl")
    assert read_workload(path).kind == "refsched-csv"


BAD_ROWS: list[tuple[str, str]] = [
    ("0,0,1", "prompt_tokens"),
    ("0,-1,1", "prompt_tokens"),
    ("0,1,0", "output_tokens"),
    ("0,1.0,1", "prompt_tokens"),
    ("0,1e3,1", "prompt_tokens"),
    ("0,nan,1", "prompt_tokens"),
    ("0,inf,1", "prompt_tokens"),
    ("0,,1", "prompt_tokens"),
    ("0,x,1", "prompt_tokens"),
    ("0,1_000,1", "prompt_tokens"),
    ("0,٣,1", "prompt_tokens"),
    ("0,0x10,1", "prompt_tokens"),
    ("0,1000000000001,1", "prompt_tokens"),
    (f"0,{'9' * 5000},1", "prompt_tokens"),
    ("-1,1,1", "arrival_s"),
    ("-0.0000000000000001,1,1", "arrival_s"),
    ("NaN,1,1", "arrival_s"),
    ("Infinity,1,1", "arrival_s"),
    ("soon,1,1", "arrival_s"),
    (",1,1", "arrival_s"),
    ("1e10,1,1", "arrival_s"),
    ("1e9999,1,1", "arrival_s"),
    ("1e99999999999999999999,1,1", "arrival_s"),
    (f"{'1' * 5000},1,1", "arrival_s"),
]


@pytest.mark.parametrize(("row", "field"), BAD_ROWS, ids=[row[:30] for row, _ in BAD_ROWS])
def test_a_wrong_value_is_refused_with_its_row_and_field(tmp_path: Path, row: str, field: str) -> None:
    error = refuse(tmp_path, f"{HEAD}\n0,1,1\n{row}\n")
    assert (error.row, error.field) == (3, field)


BAD_OBJECTS: list[tuple[str, str | None]] = [
    ('{"arrival_s": 0, "prompt_tokens": 5}', "output_tokens"),
    ('{"arrival_s": 0, "prompt_tokens": null, "output_tokens": 2}', "prompt_tokens"),
    ('{"arrival_s": 0, "prompt_tokens": "5", "output_tokens": 2}', "prompt_tokens"),
    ('{"arrival_s": 0, "prompt_tokens": true, "output_tokens": 2}', "prompt_tokens"),
    ('{"arrival_s": 0, "prompt_tokens": 5.0, "output_tokens": 2}', "prompt_tokens"),
    ('{"arrival_s": 0, "prompt_tokens": [5], "output_tokens": 2}', "prompt_tokens"),
    ('{"arrival_s": "0", "prompt_tokens": 5, "output_tokens": 2}', "arrival_s"),
    ('{"arrival_s": -1, "prompt_tokens": 5, "output_tokens": 2}', "arrival_s"),
    ('{"arrival_s": 1e400, "prompt_tokens": 5, "output_tokens": 2}', "arrival_s"),
    ('{"arrival_s": 1e99999999999999999999, "prompt_tokens": 5, "output_tokens": 2}', None),
    ('{"arrival_s": NaN, "prompt_tokens": 5, "output_tokens": 2}', None),
    ('{"arrival_s": Infinity, "prompt_tokens": 5, "output_tokens": 2}', None),
    ('{"arrival_s": 0, "prompt_tokens": 5, "output_tokens": 2, "prompt": 1}', None),
    ('{"arrival_s": 0, "prompt_tokens": 5, "output_tokens": 2, "\\ud800": 1}', None),
    ('{"arrival_s": 0, "arrival_s": 0, "prompt_tokens": 5, "output_tokens": 2}', None),
    ('{"arrival_s": 0, "prompt_tokens": 5, "output_tokens": 2', None),
    ('{"arrival_s": 0, "prompt_tokens": 5, "output_tokens": 2} {}', None),
    ("[1, 2]", None),
    ('"text"', None),
    ("{" + '"a": {' * 100000, None),
    ("[" * 100000, None),
    ('{"arrival_s": 0, "prompt_tokens": ' + "9" * 5000 + ', "output_tokens": 2}', None),
    ('{"arrival_s": 0, "prompt_tokens": 5, "output_tokens": 2, "id": 7}', "id"),
    ('{"arrival_s": 0, "prompt_tokens": 5, "output_tokens": 2, "id": "a\\u0007"}', "id"),
    ('{"arrival_s": 0, "prompt_tokens": 5, "output_tokens": 2, "id": "\\ud800"}', "id"),
    ('{"arrival_s": 0, "prompt_tokens": 5, "output_tokens": 2, "group": ["x"]}', "group"),
    ('{"arrival_s": 0, "prompt_tokens": 5, "output_tokens": 2, "priority": 0.5}', "priority"),
    ('{"arrival_s": 3, "prompt_tokens": 5, "output_tokens": 2, "cancel_s": 2}', "cancel_s"),
    ('{"arrival_s": 0, "prompt_tokens": 5, "output_tokens": 2, "hash_ids": [1, 2, 3]}', "hash_ids"),
    ('{"arrival_s": 0, "prompt_tokens": 5, "output_tokens": 2, "block_tokens": 2}', "hash_ids"),
    ('{"arrival_s": 0, "prompt_tokens": 5, "output_tokens": 2, "block_tokens": 0, "hash_ids": [1]}', "block_tokens"),
    ('{"arrival_s": 0, "prompt_tokens": 5, "output_tokens": 2, "block_tokens": 2, "hash_ids": [1, 2]}', "hash_ids"),
    ('{"arrival_s": 0, "prompt_tokens": 5, "output_tokens": 2, "block_tokens": 2, "hash_ids": []}', "hash_ids"),
    ('{"arrival_s": 0, "prompt_tokens": 5, "output_tokens": 2, "block_tokens": 4, "hash_ids": [1, "3"]}', "hash_ids"),
    ('{"arrival_s": 0, "prompt_tokens": 5, "output_tokens": 2, "block_tokens": 2, "hash_ids": "1 2 3"}', "hash_ids"),
]


@pytest.mark.parametrize(("row", "field"), BAD_OBJECTS, ids=[row[-40:] for row, _ in BAD_OBJECTS])
def test_a_wrong_object_is_refused_with_its_row_and_field(tmp_path: Path, row: str, field: str | None) -> None:
    error = refuse(tmp_path, f"{ROW}\n{row}\n")
    assert (error.row, error.field) == (2, field)


BAD_FILES: list[tuple[str | bytes, int | None, str]] = [
    ("", None, "empty"),
    ("\n \n", None, "empty"),
    ("\ufeff", None, "empty"),
    (HEAD, None, "no rows"),
    (f"{HEAD}\r\n\r\n", None, "no rows"),
    ("arrival_s,prompt_tokens\n0,1\n", 1, "output_tokens"),
    (f"{HEAD},prio\n0,1,1,1\n", 1, "'prio'"),
    (f"{HEAD},id,id\n0,1,1,1,1\n", 1, "there twice"),
    (f"{HEAD},\n0,1,1,1\n", 1, "no name"),
    ("0,1,1\n1,2,2\n", 1, "not a header"),
    ("a,b,c\n0,1,1\n", 1, "no known workload file"),
    ("hello world\n", 1, "no known workload file"),
    ('{"a": 1}\n', 1, "no known workload file"),
    ("{}\n", 1, "no known workload file"),
    ('[{"arrival_s": 0}]\n', 1, "JSON list"),
    ("{\n}\n", 1, "several lines"),
    (f"{HEAD}\n0,1\n", 2, "2 cells where the header has 3"),
    (f"{HEAD}\n0,1,1,1\n", 2, "4 cells"),
    (f'{HEAD}\n0,1,"1\n', 2, "not CSV"),
    (f"{HEAD}\n1,1,1\n0.5,1,1\n", 3, "arrival_s: is 0.5 s before the row above"),
    (f"{HEAD},id\n0,1,1,a\n0,1,1,b\n1,1,1,a\n", 4, "id: 'a' is taken"),
    (f"{HEAD},id\n0,1,1,r1\n0,1,1,\n", 3, "id: 'r1' is taken"),
    (f"{HEAD},hash_ids,block_tokens\n0,2,1,1,2\n0,2,1,1,3\n", 3, "block_tokens: 3 differs from 2"),
    (f"{HEAD},hash_ids,block_tokens\n0,2,1,1.5,2\n", 2, "hash_ids: 1.5 is not a whole number"),
    (f"{HEAD}\n0,1,1\n".encode("utf-16"), 1, "not UTF-8"),
    (HEAD.encode() + b"\n0,1,1\n0,\xe9,1\n", 3, "byte 0xe9 at place 3 is not UTF-8"),
    (f"{HEAD}\n0,1,1\0\n", 2, "NUL"),
    (f"{HEAD}\r0,1,1\r", 1, "carriage return"),
    (b"\x1f\x8b\x08\x00 compressed", 1, "not UTF-8"),
    (b"0" * (LONGEST_LINE + 1), 1, "longer than"),
    (HEAD.encode() + b"\n" + b"0" * (LONGEST_LINE + 1), 2, "longer than"),
]


@pytest.mark.parametrize(("content", "row", "words"), BAD_FILES, ids=[str(content)[:30] for content, _, _ in BAD_FILES])
def test_a_wrong_file_is_refused(tmp_path: Path, content: str | bytes, row: int | None, words: str) -> None:
    error = refuse(tmp_path, content)
    assert error.row == row
    assert words in str(error)


def test_hash_ids_that_do_not_fit_say_which_prompt_would() -> None:
    """guidellm's and AIPerf's case: 20 tokens, two ids of 512."""
    from refsched.workload.formats.blocks import check_hashes

    with pytest.raises(InputError, match="2 ids need 513 to 1024 tokens at block 512, the prompt has 20"):
        check_hashes((1, 2), 20, 512, "hash_ids")
    assert check_hashes((1, 2), 513, 512, "hash_ids") == check_hashes((1, 2), 1024, 512, "hash_ids") == (1, 2)


@pytest.mark.parametrize("path", ["no such file", ".", "a\0b", "x" * 5000])
def test_a_path_that_is_no_file_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_workload(str(tmp_path / path))


@pytest.mark.parametrize("options", [{"first": 0}, {"first": -1}, {"first": True}, {"ties": "even"}])
def test_options_are_checked(options: dict[str, object]) -> None:
    with pytest.raises(InputError):
        ReadOptions(**options)  # type: ignore[arg-type]


PIECES = st.sampled_from(
    [HEAD, ROW, "0,1,1", "\n", "\r\n", ",", '"', "{", "}", "[", ":", "\0", "é", "NaN", "-", "1e999", "9" * 40, "\ufeff"]
    + ["timestamp,input_length", '{"timestamp":0,"input_length":5,"output_length":1,"hash_ids":[1]}', "TIMESTAMP"]
)


@given(st.one_of(st.lists(PIECES, max_size=12).map(lambda pieces: "".join(pieces).encode()), st.binary(max_size=60)))
def test_any_bytes_are_read_or_refused_in_one_line(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = write(tmp_path_factory.getbasetemp(), content, "any")
    try:
        workload = read_workload(path)
    except InputError as error:
        assert len(str(error).splitlines()) == 1
    else:
        assert workload.offers


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"id": "a', "Unterminated string starting at place 8"),
        ('{"id": "a\x01"}', "Invalid control character at place 10"),
        ('{"id": }', "Expecting value at place 8"),
    ],
)
def test_what_is_wrong_with_json_is_said_once_and_where(line: str, why: str) -> None:
    with pytest.raises(InputError, match=f"is not one JSON object: {why}$"):
        parse_object(line)
