"""Servers of tools: what they say that they offer, and what has changed since somebody trusted it.

What a server says about its tools is what models read, and so it can be used against the user. It is pinned when it is
trusted, by name, description and schema; a server that says something else later is not used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from moothall.agents.workspace import Policy, Unequipped
from moothall.errors import EffectFailed
from moothall.kernel.effects import Repeats
from moothall.kernel.frozen import Frozen


class Toolserver(Frozen):
    """How a server is reached: a command that is started, or an address; and what its tools are taken for."""

    command: tuple[str, ...] = ()
    url: str = ""
    key_from: str = ""
    """The variable with the key that the address gets."""
    env_from: tuple[str, ...] = ()
    """The variables that the command gets besides the usual ones."""
    folder: str = ""
    timeout: float = 60.0
    policy: Policy = "ask"
    repeats: Repeats = "at-most-once"

    def __post_init__(self) -> None:
        if bool(self.command) == bool(self.url):
            raise ValueError("give `command` or `url`, one of them")
        if not self.timeout > 0:
            raise ValueError("timeout is above 0 seconds")


class Pinned(Frozen):
    """A tool as its server described it when it was trusted."""

    name: str
    description: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict)


class ServerChanged(Unequipped):
    """A server offers something else than what was trusted; the message says what."""


class CallLost(EffectFailed):
    """A call was sent, and nobody can tell what became of it."""


def changes(before: Sequence[Pinned], now: Sequence[Pinned]) -> list[str]:
    """What is different in the tools of a server."""
    old, new = ({tool.name: tool for tool in tools} for tools in (before, now))
    said = [f"{name} is new" for name in new if name not in old]
    said += [f"{name} is gone" for name in old if name not in new]
    for name in old.keys() & new.keys():
        parts = [part for part in ("description", "schema") if getattr(old[name], part) != getattr(new[name], part)]
        said += [f"the {part} of {name} is another" for part in parts]
    return sorted(said)
