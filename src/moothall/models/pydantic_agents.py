"""An Agent of pydantic-ai as an agent: it gets the prompt, and brings its own model, tools and instructions.

Where the table asks for a shape and the Agent gives texts, it is asked for that shape; an Agent with an output type of
its own is left alone, and what it gives has to fit. What it raises is tried again like what a function raises, and what
it had used by then is charged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic_ai import StructuredDict
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.exceptions import UserError
from pydantic_ai.usage import RunUsage
from pydantic_core import to_jsonable_python

from moothall.agents.ports import Guest, Reply
from moothall.errors import DefinitionError, EffectFailed, words_of
from moothall.models.shapes import value_of, wrap_schema


class PydanticAgent(Guest):
    """An Agent that replies."""

    def __init__(self, agent: AbstractAgent[Any, Any]) -> None:
        self._agent = agent

    async def __call__(self, prompt: str, schema: Mapping[str, Any] | None = None) -> Reply:
        usage = RunUsage()
        is_shaped = schema is not None and schema.get("type") != "string" and self._agent.output_type is str
        output_type = StructuredDict(wrap_schema(schema), name="reply") if is_shaped and schema is not None else None
        try:
            result = await self._agent.run(prompt, output_type=output_type, usage=usage, infer_name=False)
        except UserError as error:
            raise DefinitionError(f"pydantic-ai: {error.message}") from error
        except Exception as error:  # whatever it is, what was used by then is not lost
            if not (spent := spent_of(usage)):
                raise
            raise EffectFailed(words_of(error), usage=spent) from error
        given = result.output
        if isinstance(given, str):
            return Reply(given, given, spent_of(usage))
        value = to_jsonable_python(given)
        if is_shaped and schema is not None:
            value = value_of(schema, value)
        return Reply("" if schema is not None else json.dumps(value, ensure_ascii=False), value, spent_of(usage))


def spent_of(usage: RunUsage) -> dict[str, float]:
    """What was used, as far as it is known."""
    found: dict[str, float] = {"tokens": usage.total_tokens} if usage.total_tokens else {}
    return found if usage.cost is None else {**found, "usd": float(usage.cost)}
