"""Children that evaluate scripts, one process each, and what becomes of one that misbehaves.

A child has limits of the operating system on memory, processor time, files and processes, an empty environment, no
working folder of ours, and nothing but pipes. One that answers late or not at all is killed, and its next question
starts another; nobody else is harmed. What it says about a failure never names anything of the host.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from queue import LifoQueue
from typing import Any

from moothall.errors import DefinitionError
from moothall.kernel.frozen import Frozen

HERE = Path(__file__).parent
LONGEST_REPLY = 8 * 1024 * 1024
MEGABYTE = 1024 * 1024
START = 20.0
"""How much longer the first answer of a child may take, in seconds: a busy machine starts a process slowly."""


class Limits(Frozen):
    """What one evaluation may take: processor time, memory, and the patience of who waits for it, by the clock."""

    seconds: float = 0.25
    memory: int = 32 * MEGABYTE
    patience: float = 5.0


class Stopped(Exception):
    """A child did not answer; the message says why, in words for the author of the script."""


class Child:
    """One process, started when it is first asked."""

    def __init__(self, sources: Sequence[str], limits: Limits) -> None:
        self._sources = [str(HERE / f"{source}.js") for source in sources]
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, question: dict[str, Any], data: bytes | None = None) -> dict[str, Any]:
        """The answer to a question about these data, or about the last ones; `Stopped` where there is none."""
        limits = {"seconds": self._limits.seconds, "memory": self._limits.memory, "has_data": data is not None}
        lines = json.dumps({**question, **limits}).encode() + b"\n" + (b"" if data is None else data + b"\n")
        until = time.monotonic() + self._limits.patience + (0 if self._process else START)
        try:
            process = self._process or self._start()
            self._send(process, lines, until)
            reply: dict[str, Any] = json.loads(self._line(process, until))
        except (OSError, EOFError, ValueError, Stopped) as error:
            raise Stopped(self._end(error)) from None
        except BaseException:  # its answer would be taken for that to the next question
            self.close()
            raise
        if "failed" not in reply:
            return reply
        may_throw = "throw" in question.get("text", "")
        return {**reply, "failed": self._plain(reply["failed"], may_throw=may_throw)}

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-I", str(HERE / "javascript_child.py"), *self._sources],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd="/",
            env={"TZ": "UTC"},
            start_new_session=True,
        )
        self._process = process
        assert process.stdin is not None
        os.set_blocking(process.stdin.fileno(), False)
        return process

    def _send(self, process: subprocess.Popen[bytes], lines: bytes, until: float) -> None:
        assert process.stdin is not None
        pipe = process.stdin.fileno()
        rest = memoryview(lines)
        while rest:
            try:
                rest = rest[os.write(pipe, rest) :]
            except BlockingIOError:
                _wait(pipe, select.POLLOUT, until)

    def _line(self, process: subprocess.Popen[bytes], until: float) -> bytes:
        assert process.stdout is not None
        pipe = process.stdout.fileno()
        parts = [b""]
        size = 0
        while not parts[-1].endswith(b"\n"):
            _wait(pipe, select.POLLIN, until)
            parts.append(os.read(pipe, 65_536))
            size += len(parts[-1])
            if not parts[-1] or size > LONGEST_REPLY:
                raise EOFError
        return b"".join(parts)

    def _end(self, error: Exception) -> str:
        """Kill the process and say why it had to be."""
        if self._process is None:
            return "the script engine could not be started"
        late = isinstance(error, Stopped)
        code = None if late else _code(self._process)
        self.close()
        if late:
            return f"stopped: no answer after {self._limits.patience:g} s"
        if code in (-signal.SIGPROF, -signal.SIGXCPU):
            return f"stopped after {2 * self._limits.seconds:g} s of processor time"
        return "stopped: it broke the script engine or used up its memory"

    def _plain(self, reason: str, *, may_throw: bool) -> str:
        """A reason in one line; the engine's words for our limits are replaced by ours.

        An engine that has no memory left for an error throws null. A text that throws may have thrown it itself.
        """
        if reason == "InternalError: interrupted":
            return f"stopped after {self._limits.seconds:g} s of processor time"
        if reason.removeprefix("InternalError: ") in ("out of memory", "string too long", "null"):
            needs = f"it needs more than {self._limits.memory // MEGABYTE} MB of memory"
            return f"null was thrown, or {needs}" if reason == "null" and may_throw else f"stopped: {needs}"
        return " ".join(reason.split())


class Pool:
    """A few children that take turns. Whoever wants one waits until one is free."""

    def __init__(self, sources: Sequence[str], most: int, limits: Limits) -> None:
        if not is_installed():
            raise DefinitionError("no JavaScript engine is installed; install the package quickjs-ng")
        self._children = tuple(Child(sources, limits) for _ in range(most))
        self._free: LifoQueue[Child] = LifoQueue()
        for child in self._children:
            self._free.put(child)

    @contextmanager
    def borrowed(self) -> Iterator[Child]:
        """A child for a while; the one that was used last is the first to be used again."""
        child = self._free.get()
        try:
            yield child
        finally:
            self._free.put(child)

    def close(self) -> None:
        """End all of them, when each is free."""
        for _ in self._children:
            self._free.get().close()
        for child in self._children:
            self._free.put(child)


def is_installed() -> bool:
    """Whether the engine can be used here."""
    return find_spec("quickjs") is not None


def _code(process: subprocess.Popen[bytes]) -> int | None:
    """How a process ended that closed its pipe; None where it lives on."""
    try:
        return process.wait(timeout=1)
    except subprocess.TimeoutExpired:
        return None


def _wait(pipe: int, what: int, until: float) -> None:
    poll = select.poll()
    poll.register(pipe, what)
    if not poll.poll(max(0.0, until - time.monotonic()) * 1000):
        raise Stopped
