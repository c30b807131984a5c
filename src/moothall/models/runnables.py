"""A Runnable of LangChain as an agent: a chat model, or a chain that takes one text.

Where the table asks for a shape, a chat model that can is asked for it; of all others a value is taken as it comes, and
a text that is JSON is read. What it raises is tried again like what a function raises, and the tokens that its models
reported by then are charged. Nobody tells their price.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables import Runnable
from pydantic_core import to_jsonable_python

from moothall.agents.ports import Guest, Reply
from moothall.errors import EffectFailed, words_of
from moothall.models.shapes import value_of, wrap_schema

NAME, SAYS = "reply", "The reply itself."
"""How the tool is called by which a chat model gives a value: types have names that no tool may have."""


class RunnableAgent(Guest):
    """A Runnable that replies."""

    def __init__(self, runnable: Runnable[Any, Any]) -> None:
        self._runnable = runnable

    async def __call__(self, prompt: str, schema: Mapping[str, Any] | None = None) -> Reply:
        counted = _Counted()
        shaped = self._shaped(schema) if schema is not None and schema.get("type") != "string" else None
        try:
            given = await (shaped or self._runnable).ainvoke(prompt, {"callbacks": [counted]})
        except Exception as error:  # whatever it is, what was used by then is not lost
            if not counted.usage:
                raise
            raise EffectFailed(words_of(error), usage=counted.usage) from error
        if isinstance(given, BaseMessage):
            given = str(given.text)
        if isinstance(given, str):
            return Reply(given, _read(given) if schema and schema.get("type") != "string" else given, counted.usage)
        value = to_jsonable_python(given)
        if schema is None:
            return Reply(json.dumps(value, ensure_ascii=False), value, counted.usage)
        return Reply("", value_of(schema, value) if shaped is not None else value, counted.usage)

    def _shaped(self, schema: Mapping[str, Any]) -> Runnable[Any, Any] | None:
        """A model that gives values of this shape, where it can."""
        if not isinstance(self._runnable, BaseChatModel):
            return None
        with suppress(NotImplementedError):
            return self._runnable.with_structured_output({"description": SAYS, **wrap_schema(schema), "title": NAME})
        return None


class _Counted(BaseCallbackHandler):
    """Counts the tokens that models report, wherever in a chain they are."""

    def __init__(self) -> None:
        self.usage: dict[str, float] = {}

    def on_llm_end(self, response: LLMResult, **_: Any) -> None:
        """A model has replied."""
        for generation in (generation for several in response.generations for generation in several):
            used = (
                getattr(generation.message, "usage_metadata", None) if isinstance(generation, ChatGeneration) else None
            )
            if used:
                self.usage["tokens"] = self.usage.get("tokens", 0) + used["total_tokens"]


def _read(text: str) -> Any:
    """The value that a whole text is the JSON of, else the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
