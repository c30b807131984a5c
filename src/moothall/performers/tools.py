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

from moothall.agents.approval import Altered, InspectCall, Inspected, Look, call_digest, no_files
from moothall.agents.ask import KEY, CallTool, Returned, ToolFunction
from moothall.agents.toolserver import CallLost
from moothall.agents.workspace import INFRASTRUCTURE, Unequipped
from moothall.errors import DefinitionError
from moothall.kernel.codec import encode
from moothall.kernel.events import Doubted, Event, GaveUp
from moothall.performers.agents import misfit, require_awaitable, whole
from moothall.runtime.ports import Context

Save = Callable[[str], Awaitable[object]]
"""Saves the workspace under a name."""


@dataclass(frozen=True, slots=True)
class CallInspector:
    """Finds out what a call of a tool would do now, for a person to approve."""

    functions: Mapping[str, ToolFunction]
    look: Look = no_files

    async def __call__(self, effect: InspectCall, context: Context) -> Event:
        function = self.functions.get(effect.tool)
        if function is not None and (why := misfit(function, effect.arguments)):
            return GaveUp(f"{effect.tool} was not called: {why}")
        operands = await self.look(effect.tool, effect.arguments)
        return Inspected(effect.tool, call_digest(effect.tool, effect.arguments, operands), operands)


@dataclass(frozen=True, slots=True)
class ToolPerformer:
    """Calls the function that is known by the tool's name."""

    functions: Mapping[str, ToolFunction]
    checks: Mapping[str, ToolFunction] = field(default_factory=dict)
    look: Look = no_files
    save: Save | None = None
    lacks: str = ""

    async def __call__(self, effect: CallTool, context: Context) -> Event:
        try:
            return await self._event(effect, context)
        except Unequipped as error:
            return GaveUp(f"{effect.tool}: {error}", INFRASTRUCTURE)
        except CallLost as error:
            if effect.repeats != "at-most-once":
                raise
            return Doubted(f"{effect.tool}: {error}; whether it was done is unknown")

    async def _event(self, effect: CallTool, context: Context) -> Event:
        function = self.functions.get(effect.tool)
        if function is None and self.lacks:
            raise Unequipped(self.lacks)
        if function is None:
            raise DefinitionError(f"nothing here is the tool {effect.tool!r}: pass agents={{{effect.tool!r}: …}}")
        if effect.id and (why := misfit(function, effect.arguments)):
            return GaveUp(f"{effect.tool} was not called: {why}")
        if self.save is not None and effect.repeats == "at-most-once":
            await self.save(f"before {effect.tool}")
        if effect.approved:  # nothing is waited for between this look and the call
            digest = call_digest(effect.tool, effect.arguments, await self.look(effect.tool, effect.arguments))
            if digest != effect.approved:
                return Altered(effect.tool, digest, effect.approved)
        check = self.checks.get(effect.tool) if context.again and effect.repeats == "check-first" else None
        value = None if check is None else await _call(effect, check, context)
        if value is None:
            value = await _call(effect, function, context)
        try:
            kept = whole(encode(value))
            return Returned(effect.tool, kept, id=effect.id, executed=effect.approved)
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


def _call(effect: CallTool, function: ToolFunction, context: Context) -> Awaitable[Any]:
    given = {**effect.arguments, KEY: context.key} if _takes_key(function) else effect.arguments
    return require_awaitable(effect.tool, function(**given))


@lru_cache(maxsize=1024)
def _takes_key(function: Callable[..., Any]) -> bool:
    code = getattr(function, "__code__", None)
    if code is not None and not hasattr(function, "__wrapped__"):
        return KEY in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    try:
        return KEY in signature(function).parameters
    except (TypeError, ValueError):
        return False
