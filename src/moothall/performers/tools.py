"""Performs `CallTool`: calls an async function with the effect's arguments and makes one `Returned` of its value.

A function with a parameter `key` gets the key of the call, which stays the same when it is tried again. A tool that is
checked first is asked what an earlier attempt returned before it is called again. A tool that returned has done its
work, also where what it returned cannot be stored: one that must not be called again blindly is then in doubt. What an
agent wants a tool to be called with is held against its parameters first, and the key is none of them for an agent: it
never chooses it. A machine's own calls are its author's business.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from inspect import signature
from typing import Any

from moothall.agents.ask import KEY, CallTool, ToolFunction
from moothall.errors import DefinitionError
from moothall.kernel.codec import encode
from moothall.kernel.events import Doubted, Event, GaveUp
from moothall.performers.agents import awaited, misfit, whole
from moothall.runtime.ports import Context


@dataclass(frozen=True, slots=True)
class ToolPerformer:
    """Calls the function that is known by the tool's name."""

    functions: Mapping[str, ToolFunction]
    checks: Mapping[str, ToolFunction] = field(default_factory=dict)

    async def __call__(self, effect: CallTool, context: Context) -> Event:
        function = self.functions.get(effect.tool)
        if function is None:
            raise DefinitionError(f"nothing here is the tool {effect.tool!r}: pass agents={{{effect.tool!r}: …}}")
        if effect.id and (why := misfit(function, effect.arguments)):
            return GaveUp(f"{effect.tool} was not called: {why}")
        check = self.checks.get(effect.tool) if context.again and effect.repeats == "check-first" else None
        value = None if check is None else await _called(effect, check, context)
        if value is None:
            value = await _called(effect, function, context)
        try:
            return effect.settled(whole(encode(value)))
        except (DefinitionError, RecursionError) as error:
            return _unstorable(effect, error)


def _unstorable(effect: CallTool, error: Exception) -> Event:
    """The event in which a call ends that was made, and gave what cannot be stored."""
    why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
    if effect.repeats in ("pure", "idempotent"):
        raise DefinitionError(
            f"what it returned cannot be stored: {why}; let it return dataclasses, lists, dicts, texts and numbers"
        ) from error
    reason = f"{effect.tool} returned, but what it returned cannot be stored: {why}"
    return Doubted(f"{reason}; only a person can find out what it did")


def _called(effect: CallTool, function: ToolFunction, context: Context) -> Awaitable[Any]:
    given = {**effect.arguments, KEY: context.key} if _takes_key(function) else effect.arguments
    return awaited(effect.tool, function(**given))


@lru_cache(maxsize=1024)
def _takes_key(function: Callable[..., Any]) -> bool:
    code = getattr(function, "__code__", None)
    if code is not None and not hasattr(function, "__wrapped__"):
        return KEY in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    try:
        return KEY in signature(function).parameters
    except (TypeError, ValueError):
        return False
