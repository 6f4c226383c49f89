"""An adapter that misbehaves as its argument says.

How many questions it answers well before that may follow, as in `hang:12`. It runs one request at a time; where it must
answer well for long, the reference engine.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

MODE, _, AT = sys.argv[1].partition(":")
LONG = 100
OUT = sys.stdout.buffer


def say(data: bytes) -> None:
    OUT.write(data)
    OUT.flush()


def forever(data: bytes) -> None:
    while True:
        say(data)


def sleep() -> None:
    while True:
        time.sleep(60)


def start_child() -> None:
    """Leave a child behind that ignores polite signals."""
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    subprocess.Popen([sys.executable, "-c", code], start_new_session=MODE.startswith("child-of-its-own"))


def misbehave(answer: dict) -> None:
    seq = answer["seq"]
    line = json.dumps(answer).encode()
    acts = {
        "hang": sleep,
        "exit": lambda: os._exit(0),
        "crash": lambda: os._exit(3),
        "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
        "junk": lambda: say(b"Loading model weights: 100%\n"),
        "empty-line": lambda: say(b"\n"),
        "half-line-then-hang": lambda: (say(line[: len(line) // 2]), sleep()),
        "half-line-then-exit": lambda: (say(line[: len(line) // 2]), os._exit(0)),
        "flood-lines": lambda: forever(line + b"\n"),
        "flood-one-line": lambda: forever(b"x" * 65536),
        "drip": lambda: [(say(line[place : place + 1]), time.sleep(0.3)) for place in range(len(line))],
        "wrong-seq": lambda: say(json.dumps(answer | {"seq": seq + 1}).encode() + b"\n"),
        "no-seq": lambda: say(json.dumps({"ok": True}).encode() + b"\n"),
        "seq-as-text": lambda: say(json.dumps(answer | {"seq": str(seq)}).encode() + b"\n"),
        "seq-true": lambda: say(json.dumps(answer | {"seq": True}).encode() + b"\n"),
        "not-utf-8": lambda: say(b'{"seq":%d,"ok":true,"note":"\xff\xfe"}\n' % seq),
        "float": lambda: say(line.replace(b'"seq": %d' % seq, b'"seq": %d.0' % seq) + b"\n"),
        "nan": lambda: say(b'{"seq":%d,"ok":true,"note":NaN}\n' % seq),
        "huge-integer": lambda: say(b'{"seq":%d,"ok":true,"note":%s}\n' % (seq, b"9" * 6000)),
        "large-integer": lambda: say(json.dumps(answer | {"seq": 10**30}).encode() + b"\n"),
        "deep": lambda: say(b'{"seq":%d,"ok":true,"note":%s}\n' % (seq, b"[" * 100_000 + b"]" * 100_000)),
        "array": lambda: say(b"[" + line + b"]\n"),
        "twice": lambda: say(line + b"\n" + line + b"\n"),
        "name-twice": lambda: say(b'{"seq":%d,"ok":true,"ok":true}\n' % seq),
        "ok-as-text": lambda: say(json.dumps(answer | {"ok": "yes"}).encode() + b"\n"),
        "unknown-field": lambda: say(json.dumps(answer | {"confidence": 1}).encode() + b"\n"),
        "closes-output": lambda: (os.close(1), sleep()),
        "closes-input": lambda: (os.close(0), say(line + b"\n"), sleep()),
        "errors-flood": lambda: forever_on_errors(),
        "child-then-exit": lambda: (start_child(), os._exit(1)),
        "child-of-its-own-then-exit": lambda: (start_child(), os._exit(1)),
        "child-then-hang": lambda: (start_child(), sleep()),
        "deaf-to-signals": lambda: ([signal.signal(each, signal.SIG_IGN) for each in (15, 2, 1)], sleep()),
    }
    acts[MODE]()


def forever_on_errors() -> None:
    while True:
        os.write(2, b"E" * 65536)


class OneRequest:
    """Run one request at a time: enough for the smoke."""

    def ask(self, question: dict) -> dict:
        op = question["op"]
        if op == "reset":
            self.known = self.computed = 0
        elif op == "submit":
            self.id, self.known, self.computed = question["id"], question["prompt"], 0
        elif op == "plan":
            entries = [[self.id, self.computed, self.known - self.computed]]
            self.computed = self.known
            return {"ok": True, "plan": {"entries": entries, "preempted": [], "rejected": []}}
        elif op == "complete":
            self.known += len(question["emitted"])
        return {"ok": True}


def make_engine() -> OneRequest:
    if int(AT or 0) < LONG and MODE != "good":
        return OneRequest()
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from refsched.conformance.adapters import open_policy
    from refsched.dialect import get_dialect

    return open_policy(get_dialect("vllm-v1"), "vllm-v1")


def main() -> None:
    if MODE == "speaks-first":
        for seq in range(1, 9):
            say(json.dumps({"seq": seq, "ok": True}).encode() + b"\n")
    if MODE == "never-reads":
        sleep()
    engine, answered = make_engine(), 0
    for row in sys.stdin.buffer:
        question = json.loads(row)
        answer = {"seq": question["seq"], **engine.ask(question)}
        if MODE == "slow":
            time.sleep(0.03)
        if MODE not in ("good", "slow", "speaks-first", "never-reads") and answered >= int(AT or 0):
            misbehave(answer)
        else:
            say(json.dumps(answer).encode() + b"\n")
        answered += 1


main()
