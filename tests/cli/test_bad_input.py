"""Bad arguments and files: one clear line that names the place, and exit code 2. Never a traceback."""

from pathlib import Path

import pytest

from tests.cli.running import Shell

LIMITS = ("--token-budget", "8", "--max-seqs", "2")

ARGUMENTS: list[tuple[tuple[str, ...], str]] = [
    ((), "COMMAND"),
    (("simulat",), "simulat"),
    (("simulate",), "WORKLOAD"),
    (("simulate", "four-requests"), "--token-budget"),
    (("simulate", "four-requests", "--token-budget", "8"), "--max-seqs"),
    (("simulate", "four-requests", *LIMITS, "--typo", "1"), "--typo"),
    (("simulate", "four-requests", *LIMITS, "--token-b", "1"), "--token-b"),
    (("simulate", "four-requests", "--token-budget", "0", "--max-seqs", "2"), "--token-budget"),
    (("simulate", "four-requests", "--token-budget", "8", "--max-seqs", "-1"), "--max-seqs"),
    (("simulate", "four-requests", "--token-budget", "8.5", "--max-seqs", "2"), "--token-budget"),
    (("simulate", "four-requests", "--token-budget", "1" + "0" * 18, "--max-seqs", "2"), "--token-budget"),
    (("simulate", "four-requests", "--token-budget", "1" + "0" * 5000, "--max-seqs", "2"), "--token-budget"),
    (("simulate", "four-requests", *LIMITS, "--block-size", "0"), "--block-size"),
    (("simulate", "four-requests", *LIMITS, "--num-blocks", "nan"), "--num-blocks"),
    (("simulate", "four-requests", *LIMITS, "--chunk-cap", "0"), "--chunk-cap"),
    (("simulate", "four-requests", *LIMITS, "--max-len", "x"), "--max-len"),
    (("simulate", "four-requests", *LIMITS, "--first", "0"), "--first"),
    (("simulate", "four-requests", *LIMITS, "--seed", "-3"), "--seed"),
    (("simulate", "four-requests", *LIMITS, "--quantile", "p99"), "--quantile"),
    (("simulate", "four-requests", *LIMITS, "--cost", "h900"), "--cost"),
    (("simulate", "four-requests", *LIMITS, "--cost", "/"), "--cost"),
    (("simulate", "four-requests", *LIMITS, "--engine", ""), "--engine"),
    (("simulate", "four-requests", *LIMITS, "--engine", "vllm"), "--engine"),
    (("simulate", "four-requests", *LIMITS, "--engine", "vllm-v1,"), "--engine"),
    (("simulate", "four-requests", *LIMITS, "--engine", "vllm-v1,watermark_blocks"), "--engine"),
    (("simulate", "four-requests", *LIMITS, "--engine", "vllm-v1,watermark_blocks=-1"), "--engine"),
    (("simulate", "four-requests", *LIMITS, "--engine", "vllm-v1,impossible=maybe"), "impossible"),
    (("simulate", "four-requests", *LIMITS, "--engine", "document-a,watermark_blocks=1"), "watermark_blocks"),
    (("simulate", "four-requests", *LIMITS, "--engine", "vllm-v1,impossible=admit,impossible=reject"), "impossible"),
    (("simulate", "four-requests", *LIMITS, "--engine", "trace:x.jsonl"), "trace:x.jsonl"),
    (("simulate", "four-requests", *LIMITS, "--json", "/no/such/folder/x.json"), "/no/such/folder/x.json"),
    (("simulate", "no-such-scenario", *LIMITS), "no-such-scenario"),
    (("simulate", "poisson:rate=0,n=5,prompt=1,output=1", *LIMITS), "rate"),
    (("simulate", "poisson:rate=-1,n=5,prompt=1,output=1", *LIMITS), "rate"),
    (("simulate", "poisson:rate=nan,n=5,prompt=1,output=1", *LIMITS), "rate"),
    (("simulate", "poisson:rate=1,n=0,prompt=1,output=1", *LIMITS), "n"),
    (("simulate", "poisson:rate=1,n=5,prompt=1", *LIMITS), "output"),
    (("simulate", "poisson:rate=1,n=5,prompt=1,output=1,color=2", *LIMITS), "color"),
    (("simulate", "constant:rate=1,n=5,prompt=0,output=1", *LIMITS), "prompt"),
    (("simulate", "constant:rate=1,n=99999999999,prompt=1,output=1", *LIMITS), "n"),
    (("simulate", "four-requests", *LIMITS, "--replicas", "0"), "--replicas"),
    (("simulate", "four-requests", *LIMITS, "--router", "random"), "--router"),
    (("simulate", "four-requests", *LIMITS, "--method", "guess"), "--method"),
    (("simulate", "four-requests", *LIMITS, "--ties", "drop"), "--ties"),
    (("simulate", "research-assistant", *LIMITS, "--split", "chat:token_budget=8"), "--split"),
    (("simulate", "research-assistant", *LIMITS, "--split", "group=chat"), "--split"),
    (("simulate", "research-assistant", *LIMITS, "--split", "group=chat;chat"), "--split"),
    (("simulate", "research-assistant", *LIMITS, "--split", "group=chat:budget=8;report"), "--split"),
    (("simulate", "research-assistant", *LIMITS, "--split", "group=chat:max_seqs=0;report"), "--split"),
    (("simulate", "research-assistant", *LIMITS, "--split", "group=chat;report", "--replicas", "2"), "--split"),
    (("simulate", "four-requests", *LIMITS, "--replicas", "2", "--trace", "-"), "--trace"),
    (("tables", "extra"), "extra"),
]

OURS = b'{"arrival_s": 0, "prompt_tokens": 4, "output_tokens": 2, "id": "a"}\n'
AZURE = b"TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:15:46.6805900,374,44\r\n"

FILES: list[tuple[str, bytes, str]] = [
    ("empty.jsonl", b"", "empty"),
    ("blank.csv", b"\n\n", ""),
    ("cut.jsonl", OURS + b'{"arrival_s": 1, "prompt_tok', "row 2"),
    ("nan.jsonl", OURS + b'{"arrival_s": NaN, "prompt_tokens": 4, "output_tokens": 2}\n', "row 2"),
    ("infinity.jsonl", b'{"arrival_s": Infinity, "prompt_tokens": 4, "output_tokens": 2}\n', "row 1"),
    ("negative.jsonl", OURS + b'{"arrival_s": 1, "prompt_tokens": -4, "output_tokens": 2}\n', "row 2"),
    ("zero.jsonl", OURS + b'{"arrival_s": 1, "prompt_tokens": 4, "output_tokens": 0}\n', "row 2"),
    ("half.jsonl", OURS + b'{"arrival_s": 1, "prompt_tokens": 4.5, "output_tokens": 2}\n', "row 2"),
    ("text.jsonl", OURS + b'{"arrival_s": 1, "prompt_tokens": "4", "output_tokens": 2}\n', "row 2"),
    ("true.jsonl", OURS + b'{"arrival_s": 1, "prompt_tokens": true, "output_tokens": 2}\n', "row 2"),
    ("huge.jsonl", OURS + b'{"arrival_s": 1, "prompt_tokens": 1' + b"0" * 30 + b', "output_tokens": 2}\n', "row 2"),
    ("digits.jsonl", OURS + b'{"arrival_s": 1, "prompt_tokens": ' + b"9" * 5000 + b', "output_tokens": 2}\n', "row 2"),
    ("late.jsonl", OURS + b'{"arrival_s": 1e500, "prompt_tokens": 4, "output_tokens": 2}\n', "row 2"),
    ("twice.jsonl", OURS + OURS, "row 2"),
    ("back.jsonl", b'{"arrival_s": 5, "prompt_tokens": 4, "output_tokens": 2}\n' + OURS, "row 2"),
    ("missing.jsonl", b'{"arrival_s": 0, "prompt_tokens": 4}\n', "output_tokens"),
    ("unknown.jsonl", b'{"arrival_s": 0, "prompt_tokens": 4, "output_tokens": 2, "outptu": 3}\n', "outptu"),
    ("array.jsonl", b"[1, 2]\n", "row 1"),
    ("deep.jsonl", b"[" * 100_000 + b"\n", "row 1"),
    ("latin.jsonl", OURS + b'{"arrival_s": 1, "prompt_tokens": 4, "output_tokens": 2, "id": "\xff"}\n', ""),
    (
        "hash.jsonl",
        b'{"arrival_s": 0, "prompt_tokens": 20, "output_tokens": 2, "block_tokens": 16, "hash_ids": [1]}\n',
        "hash_ids",
    ),
    ("binary.csv", bytes(range(256)) * 4, ""),
    ("unknown.csv", b"a,b,c\n1,2,3\n", ""),
    ("header.csv", b"TIMESTAMP,ContextTokens,GeneratedTokens\r\n", ""),
    ("short.csv", AZURE + b"2023-11-16 18:15:50.9951690,396\r\n", "row 3"),
    ("stamp.csv", AZURE + b"yesterday,396,109\r\n", "row 3"),
    ("month.csv", AZURE + b"2023-13-16 18:15:50.9951690,396,109\r\n", "row 3"),
    ("tokens.csv", AZURE + b"2023-11-16 18:15:50.9951690,many,109\r\n", "row 3"),
    ("minus.csv", AZURE + b"2023-11-16 18:15:50.9951690,396,-109\r\n", "row 3"),
    ("order.csv", AZURE + b"2023-11-16 18:15:40.9951690,396,109\r\n", "row 3"),
]


@pytest.mark.parametrize(
    ("arguments", "named"), ARGUMENTS, ids=lambda value: " ".join(value)[-60:] if isinstance(value, tuple) else value
)
def test_bad_arguments(shell: Shell, arguments: tuple[str, ...], named: str) -> None:
    assert named in shell.refuse(*arguments)


@pytest.mark.parametrize(("name", "content", "named"), FILES, ids=[name for name, _, _ in FILES])
def test_bad_workload_files(shell: Shell, tmp_path: Path, name: str, content: bytes, named: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    line = shell.refuse("simulate", str(path), *LIMITS)
    assert name in line and named in line


def test_a_folder_is_no_workload(shell: Shell, tmp_path: Path) -> None:
    assert str(tmp_path) in shell.refuse("simulate", str(tmp_path), *LIMITS)


@pytest.mark.parametrize("content", [b"", b"{", b'{"format": "refsched-cost/1"}', b"\xff\xfe\x00", b"null"])
def test_bad_cost_files(shell: Shell, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "cost.json"
    path.write_bytes(content)
    assert "cost.json" in shell.refuse("simulate", "four-requests", *LIMITS, "--cost", str(path))


def test_what_is_odd_but_meant_is_read(shell: Shell, tmp_path: Path) -> None:
    """A byte-order mark, CRLF and a missing last newline are no reason to refuse a file."""
    path = tmp_path / "bom.csv"
    path.write_bytes(b"\xef\xbb\xbf" + AZURE + b"2023-11-16 18:15:50.9951690,396,109")
    assert shell.json("simulate", str(path), "--token-budget", "512", "--max-seqs", "2")["counts"]["completed"] == 2
