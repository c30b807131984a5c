"""Performs effects that authors bring: an async function of the effect, or of the effect and its context.

What it returns is the event in which the effect ends, or the value of that event. Raising means: try again with the
same key, which the context has. The same rules count for it as for every performer: JSON in and out, and what may be
done at most once says so with `repeats`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from inspect import Parameter, signature
from typing import Any

from moothall.errors import DefinitionError
from moothall.kernel.effects import Effect
from moothall.kernel.events import Event
from moothall.performers.agents import require_awaitable
from moothall.runtime.ports import Context, Performer

OwnPerformers = Mapping[type[Effect], Callable[..., Awaitable[Any]]]


def own_performers(given: OwnPerformers) -> dict[str, Performer]:
    """Functions that perform an author's own effects, by kind."""
    if not isinstance(given, Mapping):
        raise DefinitionError(f"write performers={{MyEffect: function}}, not {given!r}")
    found: dict[str, Performer] = {}
    effect: Any
    for effect, function in given.items():
        if not (isinstance(effect, type) and issubclass(effect, Effect) and effect.kind):
            raise DefinitionError(f"performers: {effect!r} is not a subclass of Effect that has a `kind`")
        if effect.kind in found:
            raise DefinitionError(f"performers: two effects have the kind {effect.kind!r}; rename one")
        found[effect.kind] = Performer(effect, _perform(effect, function))
    return found


def _perform(kind: type[Effect], function: Callable[..., Awaitable[Any]]) -> Callable[[Any, Context], Awaitable[Event]]:
    name = getattr(function, "__name__", kind.kind)
    takes_context = _places(function) > 1

    async def perform(effect: Effect, context: Context) -> Event:
        given = await require_awaitable(name, function(effect, context) if takes_context else function(effect))
        if isinstance(given, Event):
            return given
        if not effect.outcomes:
            raise DefinitionError(
                f"{name} returned {type(given).__name__}; return an event, or give {kind.__name__} outcomes"
            )
        return effect.settled(given)

    return perform


def _places(function: Callable[..., Any]) -> int:
    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    return sum(parameter.kind in kinds for parameter in signature(function).parameters.values())
