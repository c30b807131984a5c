"""What a person approves before a tool is called: the exact arguments, and the content of every file that they name.

Both are in one hash. The journal has it three times: `Inspected` with what is shown, the question and its answer under
it as their id, and `Returned.executed`. A call whose hash is another one when it is about to be made is not made: it
ends in `Altered`, and the person is asked again.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from hashlib import sha256
from typing import Any

from moothall.kernel.effects import Effect
from moothall.kernel.events import Event
from moothall.kernel.frozen import Frozen

Look = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, str]]]
"""Finds the files that a call of a tool names in its arguments, each with the hash of its content."""


class Inspected(Event):
    """What a call would do now: the files that its arguments name, and the hash of all that."""

    tool: str
    digest: str
    operands: Mapping[str, str] = field(default_factory=dict)


class Altered(Event):
    """A call was not made: what it would do is no longer what was approved."""

    tool: str
    digest: str
    approved: str


class InspectCall(Effect):
    """Find out what a call of a tool would do now."""

    kind = "inspect.call"
    outcomes = (Inspected,)
    repeats = "pure"
    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


class Waiting(Frozen):
    """A call that a person is asked about."""

    agent: str
    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""


def call_digest(tool: str, arguments: Mapping[str, Any], operands: Mapping[str, str]) -> str:
    """The hash of a call: of its tool, its arguments and the content of the files that they name."""
    plain = {"tool": tool, "arguments": arguments, "operands": operands}
    return sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


async def no_files(tool: str, arguments: Mapping[str, Any]) -> Mapping[str, str]:
    """What arguments name where there is no workspace."""
    return {}
