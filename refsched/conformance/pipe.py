"""Engines behind a pipe: a command that reads questions on standard input and answers on standard output, line by line.

The command runs in a process group of its own, never through a shell. Every answer has a time limit, every line a
length limit; standard error is read along and its end kept. However a check ends, the whole group is ended, and where
/proc tells it, whoever left the group as well: all of them carry a mark in their environment.
"""

import json
import os
import secrets
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from refsched.conformance.recording import read_answer
from refsched.conformance.wire import LONGEST_LINE, Message, parse_line
from refsched.errors import EngineError, InputError

MARK = "REFSCHED_ENGINE"
CHUNK = 1 << 16
KEPT_STDERR = 1 << 16
TELLING = ("error", "exception", "panic", "fatal")
GLANCE = 0.1  # seconds between looks at a process that says nothing
GRACE = 0.5  # seconds to end by itself after goodbye


class Pipe:
    """Ask a command, one question at a time."""

    def __init__(self, command: Sequence[str], seconds: float):
        self.command, self.seconds = list(command), seconds
        self.start()

    def start(self) -> None:
        """Start the command; raise InputError where that cannot be done."""
        self.mark = f"{MARK}={secrets.token_hex(8)}"
        try:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
                env={**os.environ, **dict([self.mark.split("=")])},
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"{self.command[0]!r} cannot be started: {reason}", field="ENGINE") from None
        assert self.process.stdin is not None and self.process.stdout is not None and self.process.stderr is not None
        self.inward, self.outward = self.process.stdin.fileno(), self.process.stdout.fileno()
        for each in (self.inward, self.outward):
            os.set_blocking(each, False)
        self.heard, self.seq, self.said = b"", 0, StandardError(self.process.stderr)
        self.ended, self.planned = False, 0
        self.wait = selectors.DefaultSelector()
        self.wait.register(self.outward, selectors.EVENT_READ)

    def ask(self, request: Message) -> Message:
        """Ask one question and read its answer; raise EngineError naming what came instead."""
        self.seq += 1
        asked = {"seq": self.seq, **request}
        if request["op"] == "complete":
            asked["plan"] = self.planned
        deadline = time.monotonic() + self.seconds
        self.expect_silence()
        self.write(json.dumps(asked, separators=(",", ":")).encode() + b"\n", deadline, request["op"])
        line = self.read_line(deadline, request["op"])
        try:
            answer = read_answer(parse_line(line), asked)
        except InputError as error:
            raise self.fail(f"the answer to {request['op']} {explain(error)}: {quote(line)}") from None
        self.planned = self.seq if request["op"] == "plan" else self.planned
        return answer

    def expect_silence(self) -> None:
        """Refuse what was said before it was asked for."""
        if not self.heard and self.wait.select(0):
            self.heard = self.read_some()
        if self.heard:
            raise self.fail(f"it speaks before it is asked: {quote(self.heard)}")

    def listen(self, seconds: float) -> None:
        """Wait whether it speaks before it is asked."""
        if not self.heard:
            self.wait.select(seconds)
        self.expect_silence()

    def read_some(self) -> bytes:
        """Read what is there; nothing means that it closed its output."""
        try:
            return os.read(self.outward, CHUNK)
        except BlockingIOError:
            return b""

    def read_line(self, deadline: float, op: str) -> bytes:
        """Read one line."""
        parts: list[bytes] = []
        length = 0
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise self.fail(f"no answer to {op} within {self.seconds:g} s" + explain_part(parts))
            if not self.wait.select(min(left, GLANCE)):
                if self.process.poll() is not None and not self.wait.select(0):
                    raise self.fail(f"{self.explain_end()} instead of answering {op}" + explain_part(parts))
                continue
            part = self.read_some()
            if not part:
                raise self.fail(f"{self.explain_end()} instead of answering {op}" + explain_part(parts))
            line, newline, rest = part.partition(b"\n")
            parts.append(line)
            length += len(line)
            if length > LONGEST_LINE:
                raise self.fail(f"the answer to {op} is longer than {LONGEST_LINE} bytes")
            if newline:
                self.heard = rest
                return b"".join(parts)

    def write(self, data: bytes, deadline: float, op: str) -> None:
        """Write a question, waiting where the engine does not read."""
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self.inward, view) :]
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise self.fail(f"it does not read {op} within {self.seconds:g} s") from None
                time.sleep(0.005)
            except OSError:
                raise self.fail(f"{self.explain_end(closed='closed its input')} before {op}") from None

    # THE END

    def explain_end(self, closed: str = "closed its output") -> str:
        """Say how the process ended, or that only the pipe did."""
        try:
            code = self.process.wait(GLANCE)
        except subprocess.TimeoutExpired:
            return f"it {closed}"
        return f"it was ended by signal {-code}" if code < 0 else f"it exited with code {code}"

    def fail(self, problem: str) -> EngineError:
        """End the process, and make the error with the last it said on standard error."""
        self.end()
        last = self.said.get_last_line()
        return EngineError(problem + (f" (standard error ends: {last})" if last else ""))

    def close(self) -> None:
        """Say goodbye and see to it that the whole process group is gone."""
        if not self.ended and self.process.poll() is None:
            try:
                os.write(self.inward, json.dumps({"seq": self.seq + 1, "op": "bye"}).encode() + b"\n")
                self.drain_until(time.monotonic() + GRACE)
            except OSError:
                pass  # it does not listen any more, and is ended below
        self.end()

    def drain_until(self, deadline: float) -> None:
        """Read on until the process ends by itself, so that a full pipe does not keep it from it."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        while self.process.poll() is None and time.monotonic() < deadline:
            if self.wait.select(0.01) and not self.read_some():
                break
        try:
            self.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            pass  # it is ended in a moment

    def end(self) -> None:
        """End the process group, whoever of it is left; once, for its number may belong to others afterwards."""
        if self.ended:
            return
        self.ended = True
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass  # nobody is left
        self.process.wait()
        end_marked(self.mark.encode())
        self.wait.close()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()
        self.said.stop()


def end_marked(mark: bytes) -> None:
    """End the processes that carry a mark in their environment."""
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in entry.read_bytes().split(b"\0"):
                os.kill(int(entry.parent.name), signal.SIGKILL)
        except OSError:
            continue  # it has ended by itself, or is somebody else's


class StandardError:
    """Read what an engine says on standard error, so that it never blocks there, and keep the end of it."""

    def __init__(self, stream: IO[bytes]):
        self.stream, self.kept = stream, b""
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self) -> None:
        """Read to the end."""
        try:
            while part := self.stream.read(CHUNK):
                self.kept = (self.kept + part)[-KEPT_STDERR:]
        except (OSError, ValueError):
            return  # closed under us

    def stop(self) -> None:
        """Wait for the end; somebody who left the process group may keep it open, so not for ever."""
        self.thread.join(GRACE)
        if not self.thread.is_alive():
            self.stream.close()

    def get_last_line(self) -> str:
        """Give the last line that names an error, or the last that says anything, shortened."""
        lines = [line.strip() for line in self.kept.decode("utf-8", "replace").splitlines() if line.strip()]
        telling = [line for line in lines if any(word in line.lower() for word in TELLING)] or lines
        return shorten("".join(each if each.isprintable() else "?" for each in telling[-1])) if telling else ""


def explain(error: InputError) -> str:
    """Say what is wrong with an answer, without the places that a file has."""
    return f"{error.field}: {error.problem}" if error.field else error.problem


def explain_part(parts: list[bytes]) -> str:
    """Mention the beginning of a line that never ended."""
    begun = b"".join(parts)
    return f"; a line began: {quote(begun)}" if begun else ""


def quote(line: bytes) -> str:
    """Show the beginning of what was said."""
    return shorten(ascii(line[:200].decode("utf-8", "backslashreplace")))


def shorten(text: str, most: int = 120) -> str:
    """Cut a text to what is worth repeating."""
    return text if len(text) <= most else text[: most - 1] + "…"
