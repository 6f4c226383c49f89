"""RECORDS: written and read again the same, exact, and strict; every bad file is one line that names the place."""

import gzip
import io
import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refsched.errors import InputError
from refsched.metrics.measure import measure
from refsched.record import Arrivals, Delivery, Outcome, Record, Server
from refsched.report.records import format_record, write_records
from refsched.results.records import RecordsFile, read_records
from refsched.results.seconds import read_all_ticks, read_ticks
from refsched.units import TICKS_PER_SECOND

LINE = '{"id": "a", "outcome": "completed", "sent_s": 0, "deliveries": [[0.5, 1], [0.6, 1]], "ended_s": 0.7}\n'


def read_text(folder: Path, text: str | bytes) -> list[Record]:
    """Read records from a text."""
    path = folder / "records.jsonl"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return list(read_records(str(path)))


def spread(record: Record) -> Record:
    """Give the same record with its deliveries one by one."""
    fields = {name: getattr(record, name) for name in Record.__dataclass_fields__}
    return Record(**{**fields, "deliveries": tuple(record.deliveries)})


times = st.one_of(st.none(), st.integers(0, 10**15))
kinds = st.sampled_from(["content", "reasoning", "empty", "usage", "end"])


@st.composite
def make_record(draw: st.DrawFn) -> Record:
    """Draw any record that the form can hold."""
    sent = draw(st.integers(0, 10**13))
    at = sorted(draw(st.lists(st.integers(sent, 10**14), max_size=5)))
    tokens = st.one_of(st.none(), st.integers(0, 5))
    total = draw(st.one_of(st.none(), st.integers(0, 9)))
    return Record(
        draw(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)),
        draw(st.one_of(st.none(), st.integers(0, 99))),
        draw(st.sampled_from(Outcome)),
        draw(times),
        sent,
        tuple(Delivery(each, draw(tokens), draw(kinds)) for each in at),
        draw(st.one_of(st.none(), st.integers(max(at, default=sent), 10**15))),
        draw(st.sampled_from(["", "chat"])),
        Server(*sorted(draw(st.lists(st.integers(0, 10**15), min_size=3, max_size=3)))),
        draw(st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]), max_size=5))),
        "run",
        total,
        draw(st.sampled_from(["usage", "retokenised", "chunks", "requested"])) if total is not None else None,
        draw(st.one_of(st.none(), st.integers(1, 10**15))),
    )


@given(st.lists(make_record(), min_size=1, max_size=4, unique_by=lambda record: record.id))
def test_what_is_written_is_read_again(tmp_path_factory: pytest.TempPathFactory, records: list[Record]) -> None:
    file = io.StringIO()
    write_records(records, file)
    assert [spread(record) for record in read_text(tmp_path_factory.getbasetemp(), file.getvalue())] == records


def test_a_clock_of_the_request_begins_at_its_send(tmp_path: Path) -> None:
    record = Record("a", 1, Outcome.COMPLETED, None, 0, (Delivery(5),), 6, clock="request")
    assert [spread(each) for each in read_text(tmp_path, format_record(record) + "\n")] == [record]
    (read,) = read_text(tmp_path, '{"id": "a", "outcome": "completed", "clock": "request", "deliveries": [[0.5, 1]]}')
    assert read.sent == 0


@given(
    st.from_regex(r"(0|[1-9][0-9]{0,8})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?", fullmatch=True).filter(
        lambda text: Fraction(text) <= 10**9
    )
)
def test_seconds_are_read_exactly_and_rounded_half_to_even(text: str) -> None:
    value = json.loads(text, parse_float=str.encode)
    exact = Fraction(text) * TICKS_PER_SECOND
    assert read_ticks(value) == (round(exact), round(exact) != exact)
    assert read_all_ticks([value, value]) == ([round(exact)] * 2, 2 * (round(exact) != exact))


def test_a_tick_and_a_half(tmp_path: Path) -> None:
    """Times finer than a picosecond are rounded half to even, and counted."""
    file = RecordsFile(str(tmp_path / "records.jsonl"))
    Path(file.path).write_text(
        '{"id": "a", "outcome": "completed", "sent_s": 0.0000000000005, '
        '"deliveries": [[0.0000000000015, 1], [2.5e-12, 1]]}'
    )
    (record,) = file
    assert (record.sent, [each.at for each in record.deliveries], file.rounded) == (0, [2, 2], 3)


def test_a_mark_a_packed_file_blank_lines_and_the_other_line_end(tmp_path: Path) -> None:
    plain = read_text(tmp_path, LINE)
    assert read_text(tmp_path, b"\xef\xbb\xbf" + LINE.encode()) == plain
    assert read_text(tmp_path, gzip.compress(LINE.encode())) == plain
    assert read_text(tmp_path, "\n" + LINE.replace("\n", "\r\n") + "\n") == plain
    assert read_text(tmp_path, LINE.rstrip()) == plain


def test_a_clock_that_began_in_1970_is_moved_to_the_run(tmp_path: Path) -> None:
    text = LINE.replace("[0.5,", "[1700000000.5,").replace("[0.6,", "[1700000000.6,")
    path = tmp_path / "records.jsonl"
    path.write_text(text.replace('"sent_s": 0', '"sent_s": 1700000000.25').replace("0.7", "1700000000.7"))
    file = RecordsFile(str(path))
    summary = measure(file).populations["ttft.any"]
    assert file.origin == 1_700_000_000 * TICKS_PER_SECOND and summary.mean == TICKS_PER_SECOND // 4


def test_a_file_can_be_read_twice(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(LINE)
    file = RecordsFile(str(path))
    assert list(file) == list(file) and file.count == 1


def test_deliveries_of_mixed_length_name_their_kind_or_are_content(tmp_path: Path) -> None:
    (record,) = read_text(tmp_path, LINE.replace("[0.6, 1]", '[0.6, null, "usage"]'))
    assert list(record.deliveries) == [
        Delivery(TICKS_PER_SECOND // 2, 1, "content"),
        Delivery(6 * TICKS_PER_SECOND // 10, None, "usage"),
    ]
    assert isinstance(record.deliveries, Arrivals)


def change(old: str, new: str) -> str:
    """Give a good line, and then one that differs."""
    assert old in LINE
    return LINE.replace('"id": "a"', '"id": "first"') + LINE.replace(old, new)


BAD: dict[str, tuple[str | bytes, tuple[str, ...]]] = {
    "empty": ("", ("is empty",)),
    "blank": ("\n\n", ("is empty",)),
    "cut off": (LINE + LINE.replace('"a"', '"b"')[:50], ("row 2", "ends in the middle")),
    "not JSON": (LINE + "hello\n", ("row 2", "is not JSON")),
    "an array": ("[1, 2]\n", ("row 1", "is not a JSON object")),
    "two on one line": (LINE.strip() + LINE, ("row 1", "after its object")),
    "NaN": (change("[0.5, 1]", "[NaN, 1]"), ("row 2", "NaN")),
    "Infinity": (change('"ended_s": 0.7', '"ended_s": Infinity'), ("row 2", "Infinity")),
    "minus infinity": (change('"sent_s": 0', '"sent_s": -Infinity'), ("row 2", "-Infinity")),
    "negative time": (change('"sent_s": 0', '"sent_s": -0.1'), ("row 2", "sent_s", "negative")),
    "negative gap": (change("[0.6, 1]", "[0.4, 1]"), ("row 2", "deliveries[1]", "before the one before")),
    "before the send": (change('"sent_s": 0', '"sent_s": 0.55'), ("row 2", "deliveries[0]", "before the request")),
    "ends too soon": (change('"ended_s": 0.7', '"ended_s": 0.59'), ("row 2", "ended_s", "last delivery")),
    "ends before its send": (
        '{"id": "a", "outcome": "error", "sent_s": 2, "ended_s": 1}\n',
        ("row 1", "ended_s", "before the send"),
    ),
    "an id twice": (LINE + LINE, ("row 2", "id", '"a"')),
    "no id": (change('"id": "a", ', ""), ("row 2", "id", "missing")),
    "an empty id": (change('"id": "a"', '"id": ""'), ("row 2", "id", "empty")),
    "a number as id": (change('"id": "a"', '"id": 7'), ("row 2", "id", "not text")),
    "no outcome": (change('"outcome": "completed", ', ""), ("row 2", "outcome", "missing")),
    "unknown outcome": (change('"completed"', '"ok"'), ("row 2", "outcome", "completed, error")),
    "mixed clocks": (change('"id": "a"', '"id": "a", "clock": "request"'), ("row 2", "clock", "request")),
    "unknown clock": (change('"id": "a"', '"id": "a", "clock": "wall"'), ("row 2", "clock")),
    "a plan on the request's clock": (
        '{"id": "a", "outcome": "completed", "clock": "request", "planned_s": 1}\n',
        ("row 1", "planned_s"),
    ),
    "time as text": (change('"sent_s": 0', '"sent_s": "0"'), ("row 2", "sent_s", "not a number")),
    "time as a truth value": (change('"sent_s": 0', '"sent_s": true'), ("row 2", "sent_s")),
    "tokens as a decimal": (change("[0.5, 1]", "[0.5, 1.5]"), ("row 2", "deliveries[0]", "count of tokens")),
    "tokens as text": (change("[0.6, 1]", '[0.6, "1"]'), ("row 2", "deliveries[1]")),
    "tokens as a truth value": (change("[0.6, 1]", "[0.6, true]"), ("row 2", "deliveries[1]")),
    "negative tokens": (change("[0.6, 1]", "[0.6, -1]"), ("row 2", "deliveries[1]")),
    "a delivery of one": (change("[0.6, 1]", "[0.6]"), ("row 2", "deliveries[1]")),
    "a delivery of four": (change("[0.6, 1]", '[0.6, 1, "content", 2]'), ("row 2", "deliveries[1]")),
    "a delivery that is a number": (change("[0.6, 1]", "0.6"), ("row 2", "deliveries[1]")),
    "a delivery without a time": (change("[0.6, 1]", "[null, 1]"), ("row 2", "deliveries[1]")),
    "deliveries as an object": (change("[[0.5, 1], [0.6, 1]]", '{"0.5": 1}'), ("row 2", "deliveries")),
    "an unknown kind": (change("[0.6, 1]", '[0.6, 1, "role"]'), ("row 2", "deliveries[1]", "content, reasoning")),
    "an unknown field": (change('"sent_s"', '"send_s"'), ("row 2", "send_s")),
    "a field twice": (change('"sent_s": 0', '"sent_s": 0, "sent_s": 0'), ("row 2", "sent_s", "twice")),
    "a source of no total": (change('"id": "a"', '"id": "a", "token_source": "usage"'), ("row 2", "token_source")),
    "an unknown source": (
        change('"id": "a"', '"id": "a", "output_tokens": 2, "token_source": "guess"'),
        ("row 2", "token_source", "usage"),
    ),
    "too many tokens": (change('"id": "a"', '"id": "a", "output_tokens": 1e3'), ("row 2", "output_tokens")),
    "a server that goes back": (
        change('"id": "a"', '"id": "a", "server": {"queued_s": 2, "scheduled_s": 1}'),
        ("row 2", "server", "order"),
    ),
    "an unknown time of the server": (change('"id": "a"', '"id": "a", "server": {"done_s": 2}'), ("row 2", "server")),
    "no patience at all": (change('"id": "a"', '"id": "a", "timeout_s": 0'), ("row 2", "timeout_s")),
    "a time beyond all clocks": (change('"ended_s": 0.7', '"ended_s": 1e500'), ("row 2", "ended_s")),
    "a number of 5,000 digits": (change('"ended_s": 0.7', '"ended_s": ' + "9" * 5000), ("row 2", "digits")),
    "nested deeply": ("[" * 100_000 + "\n", ("row 1", "nested")),
    "half a character": (change('"id": "a"', '"id": "\\ud800"'), ("row 2", "id", "half a character")),
    "not UTF-8": (LINE.encode() + b'{"id": "\xff"}\n', ("row 2", "UTF-8")),
    "half a packed file": (gzip.compress(LINE.encode() * 50)[:40], ("gzip",)),
}


@pytest.mark.parametrize("name", BAD)
def test_that_a_bad_file_is_refused_naming_the_place(name: str, tmp_path: Path) -> None:
    text, words = BAD[name]
    with pytest.raises(InputError) as caught:
        read_text(tmp_path, text)
    message = str(caught.value)
    assert "\n" not in message and len(message) < 400
    for word in ("records.jsonl", *words):
        assert word in message, message


def test_that_a_line_of_200_mb_is_refused_before_it_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    with path.open("wb") as file:
        file.write(b'{"id": "')
        file.truncate(200 * 10**6)  # a hole: no such file is written
    with pytest.raises(InputError, match="row 1: is a line of more than 64 MiB"):
        next(read_records(str(path)))


def test_that_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere.jsonl"):
        next(read_records(str(tmp_path / "nowhere.jsonl")))
