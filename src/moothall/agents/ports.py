"""What the agent world needs from outside: a model that replies to a request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Request:
    """One call of a model: who speaks, the prompt, the shape of the reply, and the effect's key as seed.

    `nth` counts the calls of this agent in this run from 1, so that offline models know where they are.
    """

    agent: str
    prompt: str
    key: str
    nth: int = 1
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What an agent says: a text, a value where one was asked for, and what it cost."""

    text: str = ""
    value: Any = None
    usage: Mapping[str, float] = field(default_factory=dict)


class Model(Protocol):
    """Request in, reply out. A failure of the provider is raised as EffectFailed."""

    async def reply(self, request: Request) -> Reply:
        """Answer one request."""
        ...
