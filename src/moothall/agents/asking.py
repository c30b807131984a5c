"""Asking agents, tools and people: the effects, the events in which they end, and the words for a table.

`ask`, `call` and `question` stand in a machine's table. They are actions: given data they want one effect.
An effect names a template and its arguments; the performer renders it, so that nothing is stored twice.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from inspect import iscoroutinefunction, isfunction
from string import Formatter
from typing import Any, ClassVar

from moothall.errors import DefinitionError
from moothall.kernel.codec import encode, schema
from moothall.kernel.effects import AskPerson, Effect
from moothall.kernel.events import Answered, Event, Expired

YesNo = bool
"""The shape of an answer that is yes or no."""

AgentFunction = Callable[[str], Awaitable[Any]]
ToolFunction = Callable[..., Awaitable[Any]]


class Replied(Event):
    """An agent replied: its text, and the value where a shape was asked for."""

    agent: str
    text: str = ""
    value: Any = None
    shape: str = ""
    usage: Mapping[str, float] = field(default_factory=dict)


class Returned(Event):
    """A tool returned a value."""

    tool: str
    value: Any = None
    usage: Mapping[str, float] = field(default_factory=dict)


class AskAgent(Effect):
    """Ask an agent: a template, its arguments, and the shape of the reply."""

    kind = "ask.agent"
    outcomes = (Replied,)
    costs: ClassVar[Mapping[str, float]] = {"calls": 1}
    agent: str
    template: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    shape: str = ""


class CallTool(Effect):
    """Call a tool with arguments by name."""

    kind = "call.tool"
    outcomes = (Returned,)
    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Asking:
    """`ask(...)` in a table."""

    agent: str
    template: str
    paths: tuple[str, ...]
    reply: Any
    function: AgentFunction | None
    emits: ClassVar[Mapping[str, int]] = {AskAgent.kind: 1}
    outcomes: ClassVar[tuple[type[Event], ...]] = (Replied,)

    @property
    def label(self) -> str:
        shape = f" -> {shape_name(self.reply)}" if self.reply is not None else ""
        return f"ask {self.agent}{shape}: {self.template}"

    @property
    def shapes(self) -> Mapping[str, Any]:
        return {} if self.reply is None else {shape_name(self.reply): self.reply}

    def __call__(self, data: Any, event: Any) -> AskAgent:
        arguments = {path: encode(_found(data, path)) for path in self.paths}
        return AskAgent(self.agent, self.template, arguments, shape_name(self.reply))


@dataclass(frozen=True, slots=True)
class Calling:
    """`call(...)` in a table."""

    tool: str
    paths: tuple[str, ...]
    function: ToolFunction | None
    emits: ClassVar[Mapping[str, int]] = {CallTool.kind: 1}
    outcomes: ClassVar[tuple[type[Event], ...]] = (Returned,)

    @property
    def label(self) -> str:
        return f"call {self.tool}({', '.join(self.paths)})"

    def __call__(self, data: Any, event: Any) -> CallTool:
        return CallTool(self.tool, {name: encode(_found(data, name)) for name in self.paths})


@dataclass(frozen=True, slots=True)
class Questioning:
    """`question(...)` in a table."""

    prompt: str
    paths: tuple[str, ...]
    answer: Any
    within: float | None
    emits: ClassVar[Mapping[str, int]] = {AskPerson.kind: 1}

    @property
    def outcomes(self) -> tuple[type[Event], ...]:
        return (Answered,) if self.within is None else (Answered, Expired)

    @property
    def label(self) -> str:
        return f"question: {self.prompt}"

    @property
    def shapes(self) -> Mapping[str, Any]:
        return {shape_name(self.answer): self.answer}

    def __call__(self, data: Any, event: Any) -> AskPerson:
        prompt = render(self.prompt, {path: encode(_found(data, path)) for path in self.paths})
        return AskPerson(prompt, schema(self.answer), shape_name(self.answer), self.within)


def ask(agent: str | AgentFunction, template: str, *, reply: Any = None) -> Asking:
    """Ask an agent, by name or by its async function; `{field}` in the template takes a field of the run's data."""
    name, function = _called(agent)
    return Asking(name, template, _paths(template, f"ask {name}"), reply, function)


def call(tool: str | ToolFunction, *fields: str) -> Calling:
    """Call a tool, by name or by its async function, with these fields of the run's data as keyword arguments."""
    name, function = _called(tool)
    return Calling(name, fields, function)


def question(prompt: str, answer: Any = YesNo, *, within: float | None = None) -> Questioning:
    """Ask a person; the run waits for an answer of this type, or until `within` seconds have passed."""
    return Questioning(prompt, _paths(prompt, "question"), answer, within)


def yes(data: Any, event: Answered) -> bool:
    """The guard that holds when the answer is yes."""
    return event.value is True


def minutes(number: float) -> float:
    """Minutes in seconds."""
    return number * 60


def hours(number: float) -> float:
    """Hours in seconds."""
    return number * 3600


def days(number: float) -> float:
    """Days in seconds."""
    return number * 86400


def shape_name(kind: Any) -> str:
    """The name under which a machine keeps the type of a reply; "" for plain text."""
    return "" if kind is None else getattr(kind, "__name__", None) or str(kind)


def render(template: str, arguments: Mapping[str, Any]) -> str:
    """A template with its arguments filled in; what is not a text is shown as JSON."""
    return "".join(literal + _shown(arguments, path) for literal, path in _parsed(template))


def _shown(arguments: Mapping[str, Any], path: str | None) -> str:
    if path is None:
        return ""
    value = arguments[path]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@lru_cache(maxsize=1024)
def _parsed(template: str) -> tuple[tuple[str, str | None], ...]:
    return tuple((literal, path) for literal, path, _, _ in Formatter().parse(template))


def _called(one: str | Callable[..., Any]) -> tuple[str, Callable[..., Any] | None]:
    if isinstance(one, str):
        return one, None
    if not callable(one):
        raise DefinitionError(f"{one!r} is neither a name nor an async function")
    name = getattr(one, "__name__", type(one).__name__)
    if isfunction(one) and not iscoroutinefunction(one):
        raise DefinitionError(f"{name} is not async: write `async def {name}`")
    return name, one


def _paths(template: str, where: str) -> tuple[str, ...]:
    try:
        parts = [part for part in Formatter().parse(template) if part[1] is not None]
    except ValueError as error:
        raise DefinitionError(
            f"{where}: {error} in {template!r}; write {{{{ and }}}} for braces in the text"
        ) from error
    for _, path, format_, conversion in parts:
        if not path or not all(part.isidentifier() for part in path.split(".")):
            raise DefinitionError(f"{where}: {{{path}}} names no field of the data; write {{{{ and }}}} for braces")
        if format_ or conversion:
            raise DefinitionError(f"{where}: write {{{path}}} alone; formats have no meaning here")
    return tuple(dict.fromkeys(path for _, path, _, _ in parts if path))


def _found(data: Any, path: str) -> Any:
    """A field of the data by its dotted path."""
    for part in path.split("."):
        data = data[part] if isinstance(data, Mapping) else getattr(data, part)
    return data
