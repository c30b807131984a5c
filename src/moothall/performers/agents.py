"""Performs `AskAgent`: renders the prompt, asks a function or the model, and makes one `Replied` of the reply.

A model that fails ends the attempt, or where that would last the effect. A reply of a model that does not have the
shape that was asked for is shown back to it once, as an attempt of its own; in a turn with tools, the turn shows it
back. So is one with a value that this request does not allow; what is said then is taken as it is.

A prompt that has something before it, the examples of a role or what others said in a thread, is the last message of
a conversation.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from inspect import isawaitable, isroutine, signature
from types import CoroutineType
from typing import Any, get_type_hints

import orjson

from moothall.agents.ask import KEY, UNUSABLE, AskAgent, Replied, ToolCall, Unusable, render
from moothall.agents.narrow import find_stray, narrow_schema
from moothall.agents.ports import Guest, Model, Offered, PayFor, Reply, Request, unlimited
from moothall.agents.roles import Role, library_role
from moothall.agents.thread import as_text, seen_by
from moothall.errors import MOST_USED, DefinitionError, EffectFailed, MoothallError, Refused
from moothall.kernel.codec import decode, encode, schema
from moothall.kernel.events import AttemptFailed, Event, GaveUp
from moothall.kernel.schema import misfits
from moothall.runtime.cleaner import fitted
from moothall.runtime.ports import Clean, Context, Excerpt

PROVIDER = "provider"
Said = tuple[Any, ...]
Hints = Callable[[int], Mapping[str, Any]]
"""What stand-ins are likely to say in the fields of their n-th reply, where a role does not say otherwise."""
_NOBODY = Role()


def no_hints(nth: int) -> Mapping[str, Any]:
    """Nothing is likely."""
    return {}


@dataclass(frozen=True, slots=True)
class AgentPerformer:
    """Asks the function that is known by the agent's name, else the model."""

    functions: Mapping[str, Callable[..., Any]]
    model: Model | None
    shapes: Mapping[str, Any]
    shown_back: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    prompts: Mapping[str, str] = field(default_factory=dict)
    roles: Callable[[str], Role] = library_role
    models: Callable[[AskAgent, str], Model] | None = None
    pay_for: PayFor = unlimited
    hints: Hints = no_hints

    async def __call__(self, effect: AskAgent, context: Context) -> Event:
        shown = self.shown_back.pop(context.key, ())
        request = await self._request(effect, context, shown)
        try:
            reply = await self._reply(effect, context, request)
        except EffectFailed as failure:
            if effect.agent in self.functions:
                raise
            return failure_event(effect.agent, failure)
        return self._event(effect, context, reply, was_shown=bool(shown) or _shows_back(request))

    async def _request(self, effect: AskAgent, context: Context, shown: Said) -> Request:
        """What an agent is asked: what it is told about itself, what was said before, the prompt, what was said since.

        In a turn with tools the thread has what was said since the prompt, else what was said before it.
        """
        clean, role = context.clean, self.roles(effect.role) if effect.role else _NOBODY
        said = tuple(await context.messages(effect.thread)) if effect.thread else ()
        before, since = ((), said) if effect.tools else (seen_by(effect.agent, said), shown)
        before = (*({"role": example.role, "text": example.content} for example in role.examples), *before)
        arguments = {**effect.arguments, **(await _texts(effect, context) if effect.windows else {})}
        prompt = clean("\n\n".join(filter(None, (self._text(effect.template, arguments), role.reminder))))
        if before:
            prompt, since = "", (*before, {"role": "user", "text": prompt}, *since)
        system = self._system(effect, arguments) if effect.system else role.systemMessage
        shape = self.shapes.get(effect.shape)
        return Request(
            effect.agent,
            prompt,
            context.key,
            context.nth,
            None if shape is None else narrow_schema(schema(shape), effect.narrow),
            since and clean(since),
            tuple(_clean_tool(offer_tool(name, self.functions.get(name)), clean) for name in effect.tools),
            context.ear(effect.agent),
            clean(system),
            effect.temperature,
            {**self.hints(context.nth), **role.rehearsal},
            context.metered,
            context.turns,
        )

    def _text(self, template: str, arguments: Mapping[str, Any]) -> str:
        """A template, or the prompt of that name, with its arguments."""
        return render(self.prompts.get(template, template), arguments)

    def _system(self, effect: AskAgent, arguments: Mapping[str, Any]) -> str:
        """What an agent is told about itself: a prompt by its name, with the arguments, or a text as it is."""
        return render(self.prompts[effect.system], arguments) if effect.system in self.prompts else effect.system

    def _event(self, effect: AskAgent, context: Context, reply: Reply, *, was_shown: bool) -> Event:
        """The event that a reply makes."""
        clean, usage, id = context.clean, usage_of(effect.agent, reply, context.clean), effect.id
        model = whole(reply.model)
        if reply.calls and effect.tools:
            return replace(wanting(effect.agent, whole(reply.text), clean(reply.calls), usage), id=id, model=model)
        try:
            value = _kept(reply.value) if effect.shape else None
        except DefinitionError as error:
            if effect.agent in self.functions:
                raise
            return GaveUp(f"{effect.agent}: {error}", PROVIDER, usage, id, model=model)
        text = whole(reply.text) or (json.dumps(value, ensure_ascii=False) if effect.shape else "")
        reason = self._misshapen(effect, value, clean)
        if not reason and effect.narrow and not was_shown:
            reason = clean(find_stray(value, effect.narrow))
        if reason and effect.tools:
            return Unusable(effect.agent, text, reason, usage, id=id, model=model)
        if reason and not was_shown and effect.agent not in self.functions:
            self.shown_back[context.key] = _back(clean(text), reason)
            why = f"{effect.agent}: the reply has the wrong shape: {reason}"
            return AttemptFailed(why, 0, usage, PROVIDER, model=model)
        return Replied(effect.agent, text, value, effect.shape, usage, id=id, model=model)

    async def _reply(self, effect: AskAgent, context: Context, request: Request) -> Reply:
        function = self.functions.get(effect.agent)
        if function is not None:
            return await self.pay_for(lambda: _ask_function(effect, function, request))
        if self.models is not None:
            level = effect.level or (self.roles(effect.role).level if effect.role else "base")
            return await self.models(effect, level).reply(request)
        if self.model is None:
            agent = repr(effect.agent)
            raise DefinitionError(f"agent {agent} has no function and no model: pass agents={{{agent}: …}}, or a model")
        return await self.model.reply(request)

    def _misshapen(self, effect: AskAgent, value: Any, clean: Clean) -> str:
        """What is wrong with a reply's value; "" where nothing is."""
        shape = self.shapes.get(effect.shape)
        try:
            if shape is not None:
                fitted(lambda given: decode(shape, given, effect.shape), value, clean)
        except MoothallError as error:
            return str(error)
        return ""


async def _texts(effect: AskAgent, context: Context) -> dict[str, str]:
    """What is read from threads for a prompt."""
    return {
        name: as_text(await context.messages(window.thread, Excerpt(window.last or None)))
        for name, window in effect.windows.items()
    }


def failure_event(agent: str, failure: EffectFailed) -> Event:
    """The event in which an attempt at asking a model ends that failed."""
    reason = whole(f"{agent}: {failure}")
    if failure.final:
        return GaveUp(reason, PROVIDER, failure.usage, model=failure.model)
    return AttemptFailed(reason, failure.retry_after, failure.usage, PROVIDER, model=failure.model)


def _back(text: str, reason: str) -> tuple[Any, ...]:
    """A reply and what is wrong with it, as the messages that a model sees."""
    said = {"role": "assistant", "text": text, "calls": []}
    return said, {"role": "user", "text": UNUSABLE.format(reason=reason)}


def _shows_back(request: Request) -> bool:
    """Whether an agent is shown a reply of its own that cannot be used."""
    beginning = UNUSABLE.partition("{")[0]
    said = [message for message in request.messages if message.get("role") == "user"]
    return bool(said) and str(said[-1].get("text", "")).startswith(beginning)


def _clean_tool(tool: Offered, clean: Clean) -> Offered:
    """A tool without what its docstring gives away."""
    said = clean(tool.description)
    return tool if said is tool.description else replace(tool, description=said)


def wanting(agent: str, text: str, calls: Sequence[ToolCall], usage: Mapping[str, float]) -> Replied | Unusable:
    """A reply that wants tools called; unusable where it does not say which and with what."""
    try:
        known = [decode(ToolCall, whole(encode(call)), f"calls[{number}]") for number, call in enumerate(calls)]
    except MoothallError as error:
        return Unusable(agent, text, str(error), usage)
    return Replied(agent, text, usage=usage, calls=_number_calls(known))


def _number_calls(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """Calls that can be told apart: each with an id of its own."""
    ids = [call.id for call in calls]
    if all(ids) and len(set(ids)) == len(ids):
        return tuple(calls)
    return tuple(ToolCall(call.tool, call.arguments, f"call-{number}") for number, call in enumerate(calls))


def _whole_request(request: Request) -> str:
    """All that an agent is asked, for functions, which take one text."""
    if request.prompt or not request.messages:
        said = [request.prompt, *(json.dumps(message, ensure_ascii=False) for message in request.messages)]
    else:
        said = [str(message.get("text", "")) for message in request.messages]
    return "\n\n".join([request.system, *said] if request.system else said)


@lru_cache(maxsize=1024)
def offer_tool(name: str, function: Callable[..., Any] | None) -> Offered:
    """A tool as a model sees it: what its docstring says, and the schema of its parameters."""
    if function is None:
        return Offered(name)
    if isinstance(offer := getattr(function, "offer", None), Offered):  # a tool that others describe
        return offer
    hints, every = _hints(function), signature(function).parameters.values()
    named = [
        parameter
        for parameter in every
        if parameter.name != KEY and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    shape = {
        "type": "object",
        "properties": {parameter.name: schema(hints.get(parameter.name, Any)) for parameter in named},
        "required": [parameter.name for parameter in named if parameter.default is parameter.empty],
        "additionalProperties": any(parameter.kind is parameter.VAR_KEYWORD for parameter in every),
    }
    return Offered(name, (function.__doc__ or "").strip(), shape)


def misfit(function: Callable[..., Any], arguments: Mapping[str, Any]) -> str:
    """Why what an agent gives a tool is not what the tool takes; "" where it is."""
    if isinstance(offer := getattr(function, "offer", None), Offered):
        return "; ".join(str(misfit) for misfit in misfits(offer.schema, arguments))
    hints, shape = _hints(function), offer_tool("", function).schema
    for name, value in arguments.items():
        is_free = shape["additionalProperties"] and not (name == KEY and KEY in signature(function).parameters)
        if name not in shape["properties"] and not is_free:
            return f"there is no argument {name!r}; there are {', '.join(shape['properties']) or 'none'}"
        try:
            decode(hints.get(name, Any), value, name)
        except Refused as refusal:
            return str(refusal)
        except DefinitionError:  # a type that JSON has no word for: the tool itself has to look
            continue
    missing = [name for name in shape["required"] if name not in arguments]
    return f"the argument {missing[0]!r} is missing" if missing else ""


def _hints(function: Callable[..., Any]) -> Mapping[str, Any]:
    """The types of a function's parameters; none where only a type checker knows them."""
    plain = function if isroutine(function) else getattr(function, "func", type(function).__call__)
    try:
        return get_type_hints(plain)
    except (NameError, TypeError):
        return {}


def require_awaitable(name: str, work: Any) -> Awaitable[Any]:
    """What an async function gave, or a word to its author where it is not async."""
    if type(work) is not CoroutineType and not isawaitable(work):
        raise DefinitionError(f"{name} is not async: write `async def {name}`")
    return work


async def _ask_function(effect: AskAgent, function: Callable[..., Any], request: Request) -> Reply:
    """What an agent says that is a function, or comes from another library."""
    if not isinstance(function, Guest):
        return _as_reply(effect, await require_awaitable(effect.agent, function(_whole_request(request))))
    if effect.tools:
        raise DefinitionError(f"{effect.agent} brings tools of its own; ask it without tools=")
    return await function(_whole_request(request), request.schema)


def _as_reply(effect: AskAgent, given: Any) -> Reply:
    """What an agent's function returned: a whole Reply, a text, or the value itself."""
    if isinstance(given, Reply) and isinstance(given.text, str):
        return given
    if isinstance(given, str):
        return Reply(text=given, value=given)
    if isinstance(given, Reply):
        raise DefinitionError(f"{effect.agent} returned a Reply with the text {given.text!r}, which is not a text")
    if not effect.shape:
        raise DefinitionError(
            f"{effect.agent} returned {type(given).__name__}; return a text, or ask for a value with reply="
        )
    return Reply(value=given)


_UNCUT = frozenset((type(None), bool, float))


def whole(said: Any) -> Any:
    """What was said, with a question mark for half a character, as replies that were cut off have it."""
    if type(said) in _UNCUT or (type(said) is str and said.isascii()):
        return said
    try:
        orjson.dumps(said)
    except orjson.JSONEncodeError:  # half a character, or what cannot be stored at all
        return _storable(json.loads(json.dumps(said, ensure_ascii=False).encode(errors="replace")))
    return said


def _kept(given: Any) -> Any:
    try:
        return whole(encode(given))
    except RecursionError as error:
        raise DefinitionError("what it gives cannot be stored as JSON: it is nested too deeply") from error


def _storable(said: Any) -> Any:
    try:
        orjson.dumps(said)
    except orjson.JSONEncodeError as error:  # a number that is too large, or too many lists in each other
        raise DefinitionError(f"what it gives cannot be stored as JSON: {error}") from error
    return said


def usage_of(agent: str, reply: Reply, clean: Clean) -> dict[str, float]:
    """What a reply cost; nothing can cost less than nothing, for that would be there to be spent once more."""
    if not reply.usage:
        return {}
    try:
        usage = fitted(lambda given: decode(dict[str, float], given, "usage"), whole(encode(reply.usage)), clean)
        for name, amount in usage.items():
            if not 0 <= amount <= MOST_USED:
                raise Refused(f"usage.{name}: expected a number from 0 to 2**53, got {amount:g}")
    except MoothallError as error:
        raise DefinitionError(f"the usage that {agent} reports cannot be counted: {error}") from error
    return usage
