"""Evaluates the JavaScript of SCXML documents: a script and a scope in, the value of its last statement out."""

from __future__ import annotations

import json
from types import TracebackType
from typing import Any

from moothall.errors import DefinitionError
from moothall.kernel.step import Absent, Answer, Failed, Value
from moothall.scripting.children import MEGABYTE, Child, Limits, Stopped, is_installed

SURFACE = "plain_surface"
LIMITS = Limits(seconds=1.0, memory=64 * MEGABYTE, patience=20.0)


class JavaScript:
    """An evaluator: `evaluate(script, scope)` gives a value, nothing, or the reason why it went wrong."""

    def __init__(self) -> None:
        if not is_installed():
            raise DefinitionError("no JavaScript engine is installed; install the package quickjs-ng")
        self._child = Child([SURFACE], LIMITS)

    def __enter__(self) -> JavaScript:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __call__(self, script: Any, scope: Any) -> Answer:
        """Evaluate one script."""
        try:
            return answer(self._child.ask({"text": script, "files": [SURFACE]}, json.dumps(scope).encode()))
        except Stopped as stop:
            return Failed(str(stop))

    def close(self) -> None:
        """End the child."""
        self._child.close()


def answer(reply: dict[str, Any]) -> Answer:
    """What a child said, as a value of the kernel."""
    if "failed" in reply:
        return Failed(reply["failed"])
    return Value(reply["value"]) if "value" in reply else Absent()
