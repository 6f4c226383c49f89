"""Other people's workload files, each with its traps, in small files written by hand."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from refsched.units import TICKS_PER_SECOND
from refsched.workload.formats import ReadOptions, read_lengths, read_workload
from tests.workload.files import read, refuse, rows_of, write

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens"
MS = TICKS_PER_SECOND // 1000
US = MS // 1000


# AZURE

def test_azure_2023_keeps_all_seven_digits(tmp_path: Path) -> None:
    """Arrivals 0, 1, 8 and 10 ms apart; a reader that keeps two digits makes 0, 0, 0.01, 0.01 of them."""
    rows = ["2023-11-16 18:17:03.9999999,4808,10", "2023-11-16 18:17:04.0009999,3180,8"]
    rows += ["2023-11-16 18:17:04.0079999,110,27", "2023-11-16 18:17:04.0100000,1,1"]
    workload = read(tmp_path, "\r\n".join([AZURE, *rows]))
    assert [offer.at for offer in workload.offers] == [0, 1 * MS, 8 * MS, 10 * MS + 100_000]
    assert rows_of(workload)[0] == (0, "r0", 4808, 10)
    assert workload.kind == "azure-csv"


def test_azure_2024_has_six_digits_and_an_offset(tmp_path: Path) -> None:
    rows = ["2024-05-10 00:00:00.009930+00:00,2162,5", "2024-05-10 00:00:00.017335+00:00,2399,6"]
    rows += ["2024-05-10T02:00:01+02:00,7,7"]
    workload = read(tmp_path, "\n".join([AZURE, *rows, ""]))
    assert [offer.at for offer in workload.offers] == [0, 7405 * US, 990070 * US]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("2023-11-16 23:59:59.5", "2023-11-17 00:00:00.25"),
        ("2024-02-28 12:00:00", "2024-03-01 12:00:00"),
        ("2023-12-31 23:59:59.999999", "2024-01-01 00:00:00.000001"),
    ],
)
def test_azure_stamps_follow_the_calendar(tmp_path: Path, before: str, after: str) -> None:
    expected = (datetime.fromisoformat(after) - datetime.fromisoformat(before)) // timedelta(microseconds=1) * US
    assert read(tmp_path, f"{AZURE}\n{before},1,1\n{after},1,1").offers[1].at == expected


@pytest.mark.parametrize(
    "stamp",
    ["2023-11-31 00:00:00", "2023-13-01 00:00:00", "2023-11-16 24:00:00", "2023-11-16 00:60:00", "2023-11-16 00:00:60"]
    + ["2023-11-16", "16.11.2023 00:00:00", "2023-11-16 00:00:00.1234567890123", "2023-11-16 00:00:00+25:00", "12.5"]
    + ["", "0000-01-01 00:00:00", "2055-11-16 00:00:00", "٢٠٢٣-11-16 00:00:00"],
)
def test_a_stamp_that_is_no_moment_is_refused(tmp_path: Path, stamp: str) -> None:
    error = refuse(tmp_path, f"{AZURE}\n2023-11-16 00:00:00.0,1,1\n{stamp},1,1")
    assert (error.row, error.field) == (3, "TIMESTAMP")


def test_azure_rows_out_of_order_or_without_tokens_are_refused(tmp_path: Path) -> None:
    first = f"{AZURE}\n2023-11-16 00:00:00.0000001,1,1\n"
    assert refuse(tmp_path, f"{first}2023-11-16 00:00:00.0000000,1,1").field == "TIMESTAMP"
    assert refuse(tmp_path, f"{first}2023-11-16 00:00:00.0000002,0,1").field == "ContextTokens"
    assert refuse(tmp_path, f"{first}2023-11-16 00:00:00.0000002,1,0").field == "GeneratedTokens"


# MOONCAKE AND ITS LOOK-ALIKES

def make_mooncake(*rows: tuple[object, int, int, list[int]]) -> str:
    """Write rows in Mooncake's form."""
    form = '{{"timestamp": {}, "input_length": {}, "output_length": {}, "hash_ids": {}}}'
    return "\n".join(form.format(*row) for row in rows)


def test_mooncake_is_in_milliseconds_and_blocks_of_512(tmp_path: Path) -> None:
    rows = ((3000, 1024, 5, [4, 9]), (3040, 1025, 1, [4, 9, 7]), (3041, 600, 2, [4, 8]))
    workload = read(tmp_path, make_mooncake(*rows))
    assert [offer.at for offer in workload.offers] == [0, 40 * MS, 41 * MS]
    first, second, third = (offer.request.prefix for offer in workload.offers)
    assert len(first) == 2 and second == first  # the id of a partial last block is no full block
    assert third == first[:1]
    assert [workload.source[name] for name in ("block_tokens", "hash_ids", "hash_ids_reused")] == [512, 7, 3]
    assert "milliseconds" in workload.notes[0]


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ((0, 20, 5, [1, 2]), "hash_ids"),
        ((0, 512, 5, []), "hash_ids"),
        ((0.5, 512, 5, [1]), "timestamp"),
        ((2.0, 512, 5, [1]), "timestamp"),
        ((-1, 512, 5, [1]), "timestamp"),
        ((0, 0, 5, []), "input_length"),
        ((0, 512, 0, [1]), "output_length"),
    ],
)
def test_mooncake_rows_that_cannot_be_are_refused(
    tmp_path: Path, row: tuple[object, int, int, list[int]], field: str
) -> None:
    error = refuse(tmp_path, make_mooncake((0, 1, 1, [3]), row))
    assert (error.row, error.field) == (2, field)


def test_bailian_has_the_same_names_but_seconds_and_blocks_of_16(tmp_path: Path) -> None:
    form = (
        '{{"chat_id": {}, "parent_chat_id": -1, "timestamp": {}, "input_length": 30, "output_length": 4,'
        ' "type": "text", "turn": 1, "hash_ids": [5, 6]}}'
    )
    workload = read(tmp_path, "\n".join([form.format(0, 61.114), form.format(1, 61.2)]))
    assert workload.kind == "bailian-jsonl"
    assert [offer.at for offer in workload.offers] == [0, 86 * MS]
    assert [len(offer.request.prefix) for offer in workload.offers] == [1, 1]
    assert workload.offers[0].group == "text" and workload.source["block_tokens"] == 16
    assert refuse(tmp_path, form.format(0, 1).replace("[5, 6]", "[5]")).field == "hash_ids"


def test_full_blocks_only_in_nanoseconds(tmp_path: Path) -> None:
    form = '{{"timestamp_ns":{},"input_length":{},"output_length":3,"hash_ids":{}}}'
    workload = read(tmp_path, "\n".join([form.format(7, 33, [0, 1]), form.format(9, 15, [])]))
    assert [offer.at for offer in workload.offers] == [0, 2000]
    assert [offer.request.prefix for offer in workload.offers] == [(0, 1), ()]
    assert refuse(tmp_path, form.format(7, 33, [0, 1, 2])).field == "hash_ids"


# BURSTGPT

BURST = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"


def test_burstgpt_counts_failures_and_leaves_them_out(tmp_path: Path) -> None:
    rows = "5,ChatGPT,472,18,490,Conversation log\n5,GPT-4,10,0,10,API log\n7,GPT-4,0,0,0,API log\n"
    rows += "7,GPT-4,0,3,3,API log\n9,GPT-4,1,2,3,API log\n"
    workload = read(tmp_path, BURST + rows)
    assert rows_of(workload) == [(0, "r0", 472, 18), (4 * TICKS_PER_SECOND, "r4", 1, 2)]
    assert [offer.group for offer in workload.offers] == ["Conversation log", "API log"]
    notes = " ".join(workload.notes)
    assert "without response tokens (failed calls), left out: 2 (first: row 3)" in notes
    assert "without request tokens, left out: 1 (first: row 5)" in notes
    assert workload.source["rows"] == 5


def test_burstgpt_is_read_by_column_name(tmp_path: Path) -> None:
    """The third release puts two columns in between."""
    head = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    workload = read(tmp_path, f"{head}0,17,3.5,GPT-4,8,2,10,API log\n")
    assert rows_of(workload) == [(0, "r0", 8, 2)]
    assert any("'Session ID' that is not read" in note for note in workload.notes)


def test_burstgpt_of_failures_only_has_no_rows(tmp_path: Path) -> None:
    assert "no rows" in str(refuse(tmp_path, f"{BURST}5,ChatGPT,472,0,472,API log\n"))


def test_burstgpt_in_json(tmp_path: Path) -> None:
    row = '{"input_tokens":472,"log_type":"Conversation log","output_tokens":18,"request_arrival_ts_s":5}'
    assert rows_of(read(tmp_path, row)) == [(0, "r0", 472, 18)]


# OTHERS

def test_vidur_seconds_with_float_noise_are_rounded_and_counted(tmp_path: Path) -> None:
    workload = read(tmp_path, "arrived_at,num_prefill_tokens,num_decode_tokens\n0.0,374,44\n5.8926549999999995,91,16\n")
    assert workload.offers[1].at == 5_892_655_000_000
    assert "rounded half to even: 1 (first: row 3)" in workload.notes[0]


def test_splitwise_rows_keep_their_ids(tmp_path: Path) -> None:
    head = "request_id,request_type,application_id,arrival_timestamp,batch_size,prompt_size,token_size\n"
    workload = read(tmp_path, f"{head}10,2,0,1.5,1,4096,32\n11,2,0,3,1,2048,8\n")
    assert rows_of(workload) == [(0, "10", 4096, 32), (1500 * MS, "11", 2048, 8)]
    assert refuse(tmp_path, f"{head}10,2,0,1.5,4,4096,32\n").field == "batch_size"


def test_llmservingsim_is_in_nanoseconds(tmp_path: Path) -> None:
    form = '{{"input_toks": {}, "output_toks": 9, "arrival_time_ns": {}}}'
    workload = read(tmp_path, form.format(27369, 101537000) + "\n" + form.format(1390, 144370001))
    assert rows_of(workload) == [(0, "r0", 27369, 9), (42_833_001_000, "r1", 1390, 9)]


def test_lengths_alone_are_no_workload_but_can_be_drawn_from(tmp_path: Path) -> None:
    content = "num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio\n1047,1368,2415,0.765\n1,2,3,0.5\n"
    error = refuse(tmp_path, content)
    assert "no arrival times" in str(error) and "lengths=FILE" in str(error)
    assert read_lengths(write(tmp_path, content)) == ((1047, 1368), (1, 2))
    assert read_lengths(write(tmp_path, f"{AZURE}\n2023-11-16 00:00:00.0,3,4")) == ((3, 4),)


def test_a_rate_file_is_no_workload(tmp_path: Path) -> None:
    assert "servegen:trace=FILE" in str(refuse(tmp_path, "0,8.34,1.36,Gamma,0.54,0.21\n"))


# EQUAL TIMES

TICKS_OF_3_S = make_mooncake(*[(at, 1, 1, [k]) for k, at in enumerate([0, 0, 0, 3000, 6001, 6001])])


def test_ticks_can_be_kept_spread_or_scattered(tmp_path: Path) -> None:
    raw = read(tmp_path, TICKS_OF_3_S)
    assert [offer.at // MS for offer in raw.offers] == [0, 0, 0, 3000, 6001, 6001]
    spread = read(tmp_path, TICKS_OF_3_S, ReadOptions(ties="spread"))
    # the median of the steps 3000 and 3001 ms is the upper one; the last tick has no other after it
    assert [2 * offer.at // MS for offer in spread.offers] == [0, 2000, 4000, 6000, 12002, 12002 + 3001]
    scattered = read(tmp_path, TICKS_OF_3_S, ReadOptions(ties="scatter", seed=3))
    times = [offer.at for offer in scattered.offers]
    assert times == sorted(times) and times[0] == 0
    start = 3000 * MS - times[3]  # the fourth is alone in its tick and stays; the first was moved by this much
    assert all(0 <= at + start < 3000 * MS for at in times[:3])
    assert all(6001 * MS <= at + start < 9002 * MS for at in times[4:])
    assert scattered == read_workload(write(tmp_path, TICKS_OF_3_S), ReadOptions(ties="scatter", seed=3))
    assert scattered.offers != read(tmp_path, TICKS_OF_3_S, ReadOptions(ties="scatter", seed=4)).offers
    for workload, word in ((raw, "at once"), (spread, "even steps"), (scattered, "random places")):
        assert any(word in note for note in workload.notes)
        assert [offer.request for offer in workload.offers] == [offer.request for offer in raw.offers]


def test_an_idle_time_is_no_tick(tmp_path: Path) -> None:
    content = make_mooncake(*[(at, 1, 1, [k]) for k, at in enumerate([0, 1000, 2000, 2000, 90000])])
    workload = read(tmp_path, content, ReadOptions(ties="spread"))
    assert [offer.at // MS for offer in workload.offers] == [0, 1000, 2000, 2500, 90000]


def test_patience_moves_with_its_request(tmp_path: Path) -> None:
    head = "arrival_s,prompt_tokens,output_tokens,cancel_s"
    workload = read(tmp_path, f"{head}\n0,1,1,9\n0,1,1,9\n2,1,1,\n", ReadOptions(ties="spread"))
    assert [(offer.at, offer.cancel_at) for offer in workload.offers[:2]] == [
        (0, 9 * TICKS_PER_SECOND), (TICKS_PER_SECOND, 10 * TICKS_PER_SECOND)
    ]  # fmt: skip


def test_one_instant_has_no_tick_to_spread_over(tmp_path: Path) -> None:
    content = make_mooncake((5, 1, 1, [1]), (5, 1, 1, [2]))
    for ties in ("spread", "scatter"):
        assert [offer.at for offer in read(tmp_path, content, ReadOptions(ties=ties)).offers] == [0, 0]
