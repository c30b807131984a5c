"""Evaluates JavaScript in a child process of its own.

The child has limits of the operating system on memory, processor time, files and processes; each evaluation has a
fresh context and a limit on time. A child that does not answer is killed, and the next evaluation gets a new one.
Nothing but JSON crosses: the scope goes in, the value of the last statement comes out.
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any

from moothall.errors import DefinitionError
from moothall.kernel.step import Absent, Answer, Failed, Value

SECONDS = 1.0
GRACE = 2.0


class JavaScript:
    """An evaluator: `evaluate(script, scope)` gives a value, nothing, or the reason why it went wrong."""

    def __init__(self) -> None:
        if not is_installed():
            raise DefinitionError("no JavaScript engine is installed; install the package quickjs-ng")
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> JavaScript:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __call__(self, script: Any, scope: Any) -> Answer:
        """Evaluate one script."""
        try:
            line = self._asked(json.dumps({"script": script, "scope": scope, "seconds": SECONDS}).encode() + b"\n")
        except OSError as error:
            self.close()
            return Failed(f"the script engine broke down: {error}")
        if line is None:
            self.close()
            return Failed(f"stopped after {SECONDS + GRACE:g} seconds")
        if not line:
            self.close()
            return Failed("the script used up the engine's memory or time")
        return _answer(json.loads(line))

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.kill()
            self._child.communicate()
            self._child = None

    def _asked(self, line: bytes) -> bytes | None:
        """The child's reply: a line, nothing where it died, None where it did not answer in time."""
        if self._child is None:
            program = str(Path(__file__).with_name("javascript_child.py"))
            self._child = subprocess.Popen(
                [sys.executable, "-I", program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(line)
        self._child.stdin.flush()
        readable, _, _ = select.select([self._child.stdout], [], [], SECONDS + GRACE)
        return self._child.stdout.readline() if readable else None


def is_installed() -> bool:
    """Whether the engine can be used here."""
    return find_spec("quickjs") is not None


def _answer(plain: dict[str, Any]) -> Answer:
    if "failed" in plain:
        return Failed(plain["failed"])
    return Value(plain["value"]) if "value" in plain else Absent()
