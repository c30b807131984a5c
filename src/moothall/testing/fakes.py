"""Fakes of agents and tools: they give what a test has scripted, and remember what they were asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import isawaitable
from typing import Any

from moothall.errors import EffectFailed


class Fake:
    """Stands in for an agent or a tool: gives these replies in order. An error among them is raised.

    A function among them is called with the prompt, or with the arguments of the tool, and gives the reply. `calls` has
    what it was asked: the prompts of an agent, the arguments of a tool.
    """

    def __init__(self, *replies: Any, name: str = "this fake") -> None:
        self.name = name
        self.calls: list[Any] = []
        self._replies = replies
        self._next = 0
        self._always = False

    @classmethod
    def always(cls, reply: Any, name: str = "this fake") -> Fake:
        """A fake that gives the same reply every time."""
        made = cls(reply, name=name)
        made._always = True
        return made

    async def __call__(self, *prompt: str, **arguments: Any) -> Any:
        """Give the next reply."""
        self.calls.append(prompt[0] if prompt else arguments)
        if self._always:
            reply = self._replies[0]
        elif self._next < len(self._replies):
            reply = self._replies[self._next]
        else:
            has = f"{len(self._replies)} replies" if len(self._replies) != 1 else "one reply"
            raise EffectFailed(f"{self.name} was called again, and its script has {has}; add one", final=True)
        self._next += 1
        if isinstance(reply, BaseException) or (isinstance(reply, type) and issubclass(reply, BaseException)):
            raise reply
        if callable(reply) and not isinstance(reply, type):
            reply = reply(*prompt, **arguments)
        return await reply if isawaitable(reply) else reply

    def fresh(self, skip: int = 0) -> Fake:
        """The same script for another life of the run, without as many replies as it has heard already."""
        made = Fake(*self._replies, name=self.name)
        made._always, made._next = self._always, skip
        return made


def fakes_of(given: Mapping[str, Any] | None) -> dict[str, Callable[..., Any]]:
    """Agents and tools by name, as a test writes them: a list is a script, a function itself, all else given always."""
    found: dict[str, Callable[..., Any]] = {}
    for name, reply in (given or {}).items():
        if isinstance(reply, Fake):
            reply.name = name
            found[name] = reply
        elif isinstance(reply, list):
            found[name] = Fake(*reply, name=name)
        else:
            found[name] = reply if callable(reply) else Fake.always(reply, name=name)
    return found
