"""Performs `CallTool`: calls an async function with the effect's arguments and makes one `Returned` of its value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moothall.agents.asking import CallTool, Returned, ToolFunction
from moothall.errors import DefinitionError
from moothall.kernel.codec import encode
from moothall.kernel.events import Event
from moothall.performers.agents import awaited
from moothall.runtime.ports import Context


@dataclass(frozen=True, slots=True)
class ToolPerformer:
    """Calls the function that is known by the tool's name."""

    functions: Mapping[str, ToolFunction]

    async def __call__(self, effect: CallTool, context: Context) -> Event:
        function = self.functions.get(effect.tool)
        if function is None:
            raise DefinitionError(f"nothing here is the tool {effect.tool!r}: pass agents={{{effect.tool!r}: …}}")
        return Returned(effect.tool, encode(await awaited(effect.tool, function(**effect.arguments))))
