"""Evaluates the texts of workflows for the runtime: JavaScript in its own processes, `py:NAME` by registered functions.

A batch without functions of Python is one question to the engine. Where it has some, its texts are evaluated one after
the other, each with what those before it changed. A function gets a copy of common_data; of a script's function what it
returns is laid over common_data, or what it changed in its copy where it returns nothing.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import lru_cache
from inspect import isawaitable
from typing import Any

from moothall.agents.conversation import Seat, shown_to_scripts
from moothall.errors import words_of
from moothall.kernel.codec import encode
from moothall.kernel.frozen import Frozen
from moothall.kernel.step import Absent, Answer, Ask, Failed, Value
from moothall.machines.workflow.script import PYTHON
from moothall.performers.conversation import recent
from moothall.runtime.ports import ScriptContext
from moothall.scripting.workflow import Batch, Choice, Chosen, Script, Scripts, apply_change

Functions = Mapping[str, Callable[..., Any]]


@lru_cache(maxsize=1)
def engine() -> Scripts:
    """The engine of this process; it ends with the process."""
    scripts = Scripts()
    atexit.register(scripts.close)
    return scripts


class Evaluator(Frozen):
    """Answers what the texts of a workflow are asked."""

    functions: Functions

    async def __call__(self, ask: Ask, around: ScriptContext) -> Answer:
        choices = tuple(
            Choice(choice["condition"], tuple(Script(part["kind"], part["text"]) for part in choice["then"]))
            for choice in ask.script["choices"]
        )
        scope = {**ask.scope, **await _conversations(ask.scope, around)}
        batch = Batch(choices, scope, around.at, f"{around.run}.{around.cause}")
        has_python = any(text.startswith(PYTHON) for choice in choices for text in _texts(choice))
        chosen = await (self._one_by_one(batch) if has_python else engine().evaluate(batch))
        answers = {"conditions": list(map(encode, chosen.conditions)), "then": list(map(encode, chosen.then))}
        return Value({"index": chosen.index, **answers})

    async def _one_by_one(self, batch: Batch) -> Chosen:
        conditions: list[Answer] = []
        for index, choice in enumerate(batch.choices):
            answer, holds = await self._condition(choice.condition, batch)
            conditions.append(answer)
            if isinstance(answer, Failed):
                return Chosen(None, tuple(conditions))
            if holds:
                return Chosen(index, tuple(conditions), await self._then(choice.then, batch))
        return Chosen(None, tuple(conditions))

    async def _condition(self, text: str, batch: Batch) -> tuple[Answer, bool]:
        if text.startswith(PYTHON):
            answer = await self._call(text, batch.scope["common_data"])
            return answer, isinstance(answer, Value) and bool(answer.value)
        chosen = await engine().evaluate(Batch((Choice(text),), batch.scope, batch.now, batch.seed))
        return chosen.conditions[0], chosen.index is not None

    async def _then(self, texts: tuple[Script, ...], batch: Batch) -> tuple[Answer, ...]:
        answers: list[Answer] = []
        scope = dict(batch.scope)
        for text in texts:
            answers.append(await self._text(text, Batch((), scope, batch.now, f"{batch.seed}.{len(answers)}")))
            last = answers[-1]
            if isinstance(last, Failed):
                break
            if text.kind == "script" and isinstance(last, Value):
                scope = {**scope, "common_data": apply_change(scope["common_data"], last.value)}
        return tuple(answers)

    async def _text(self, script: Script, batch: Batch) -> Answer:
        if not script.text.startswith(PYTHON):
            chosen = await engine().evaluate(Batch((Choice("true", (script,)),), batch.scope, batch.now, batch.seed))
            return chosen.then[0]
        before = batch.scope["common_data"]
        if script.kind != "script":
            answer = await self._call(script.text, before)
            is_missing = script.kind == "input" and isinstance(answer, Absent)
            return Failed("the function gave None, and somebody is to be told something") if is_missing else answer
        copy = deepcopy(dict(before))
        answer = await self._call(script.text, copy)
        if isinstance(answer, Failed):
            return answer
        after = copy if isinstance(answer, Absent) else {**before, **answer.value}
        different = {key: value for key, value in after.items() if key not in before or before[key] != value}
        return Value({"set": encode(different), "removed": [key for key in before if key not in after]})

    async def _call(self, text: str, given: Any) -> Answer:
        name = text.removeprefix(PYTHON).strip()
        function = self.functions.get(name)
        if function is None:
            there = ", ".join(sorted(self.functions)) or "none"
            return Failed(f"no function {name!r} is registered; there are {there}; give a module with --functions")
        try:
            found = function(given)
            found = await found if isawaitable(found) else found
            return Absent() if found is None else Value(encode(found))
        except (Exception, SystemExit) as error:  # a user's function may raise anything
            return Failed(words_of(error))


def _texts(choice: Choice) -> list[str]:
    return [choice.condition, *(script.text for script in choice.then)]


async def _conversations(scope: Mapping[str, Any], around: ScriptContext) -> dict[str, Any]:
    """The conversations as scripts see them, where any of them is read."""
    if "contexts" not in scope:
        return {}
    shown = {}
    for name, context in scope["contexts"].items():
        seat = Seat("", name, "assistant", context["max_length"], tuple(context["starting"]))
        said = await recent(around.messages, seat, context["fresh"])
        shown[name] = {"messages": shown_to_scripts(seat, said), "max_length": context["max_length"]}
    return {"contexts": shown}
