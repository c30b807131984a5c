"""Performs `Converse`: shows an agent its conversation and makes one `Replied` of what it says.

The conversation is read from the thread when the agent is asked, no more of it than is shown; so is what the agent is
told about itself, from its role. A reply whose calls of tools cannot be read is an attempt that went wrong. A call of a
parsing tool whose arguments do not have its shape is shown back once, as an attempt of its own; then the effect has
failed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from moothall.agents.ask import Replied, Unusable
from moothall.agents.conversation import Converse, Message, Seat, is_enough, speech, view_of
from moothall.agents.ports import Model, Offered, PayFor, Reply, Request, unlimited
from moothall.agents.roles import ParsingTool, Role
from moothall.agents.shapes import misfit_of
from moothall.errors import DefinitionError, EffectFailed
from moothall.kernel.codec import encode
from moothall.kernel.events import AttemptFailed, Event, GaveUp
from moothall.performers.agents import PROVIDER, failure_event, offer_tool, require_awaitable, usage_of, wanting, whole
from moothall.runtime.ports import Context, Excerpt, Messages

FEW = 32
"""How many messages are read at first; mostly they are all that is shown."""
Functions = Mapping[str, Callable[..., Any]]


@dataclass(frozen=True, slots=True)
class ConversePerformer:
    """Asks the function that is known by the agent's name, else the model for the agent's level."""

    seats: Mapping[str, Seat]
    roles: Mapping[str, Role]
    functions: Functions
    model: Callable[[str], Model]
    parsing: frozenset[str] = field(default_factory=frozenset)
    shown_back: dict[str, tuple[Message, ...]] = field(default_factory=dict)
    pay_for: PayFor = unlimited

    async def __call__(self, effect: Converse, context: Context) -> Event:
        shown = self.shown_back.pop(context.key, ())
        said = await recent(context.messages, self.seats[effect.agent])
        request = self.request(effect, context, said)
        request = replace(request, messages=(*request.messages, *shown)) if shown else request
        try:
            reply = await self._reply(effect, request)
        except EffectFailed as failure:
            if effect.agent in self.functions:
                raise
            return failure_event(effect.agent, failure)
        usage, model = usage_of(effect.agent, reply, context.clean), whole(reply.model)
        if not reply.calls:
            return Replied(effect.agent, whole(reply.text), usage=usage, model=model)
        event = wanting(effect.agent, whole(reply.text), context.clean(reply.calls), usage)
        if isinstance(event, Unusable):
            why = f"{effect.agent}: its calls of tools cannot be read: {event.reason}"
            return AttemptFailed(why, 0, usage, PROVIDER, model=model)
        event = replace(event, model=model)
        if effect.agent not in self.functions:
            return self._checked(event, context.key, was_shown=bool(shown))
        return event

    def _checked(self, replied: Replied, key: str, *, was_shown: bool) -> Event:
        """A reply whose decisions have the shapes that the role asks for, or what comes of one that has not."""
        shapes = {tool.function.name: tool.function.parameters for tool in self.roles[replied.agent].parsingTools}
        wrongs = {call.id: misfit_of(shapes.get(call.tool), call.arguments, call.tool) for call in replied.calls}
        wrong = next(filter(None, wrongs.values()), "")
        if not wrong:
            return replied
        reason = f"{replied.agent}: {wrong}"
        if was_shown:
            return GaveUp(reason, PROVIDER, replied.usage, model=replied.model)
        calls = encode(replied.calls)
        results = [
            {
                "role": "tool",
                "id": call.id,
                "tool": call.tool,
                "error": f"{wrongs[call.id] or 'not done'}; call it again",
            }
            for call in replied.calls
        ]
        self.shown_back[key] = (speech("assistant", replied.text, calls), *results)
        return AttemptFailed(reason, 0, replied.usage, PROVIDER, model=replied.model)

    def request(self, effect: Converse, context: Context, said: list[Any]) -> Request:
        """What an agent is shown."""
        seat, role = self.seats[effect.agent], self.roles[effect.agent]
        messages = (*_examples(role), *_with_reminder(role, view_of(seat, said, self.parsing)))
        tools = (*(self._offered(name) for name in effect.tools), *map(_parsing, role.parsingTools))
        hear = context.ear(effect.agent)
        key, nth, clean = context.key, context.nth, context.clean
        return Request(
            *(effect.agent, "", key, nth, None, clean(messages), tools, hear),
            system=clean(role.systemMessage),
            hints=role.rehearsal,
            metered=context.metered,
            turns=context.turns,
        )

    def _offered(self, name: str) -> Offered:
        return offer_tool(name, self.functions.get(name))

    async def _reply(self, effect: Converse, request: Request) -> Reply:
        function = self.functions.get(effect.agent)
        if function is None:
            return await self.model(self.roles[effect.agent].level).reply(request)
        prompt = "\n\n".join(
            message["text"] for message in ({"text": request.system}, *request.messages) if message.get("text")
        )

        async def call() -> Reply:
            given = await require_awaitable(effect.agent, function(prompt))
            if isinstance(given, Reply | str):
                return given if isinstance(given, Reply) else Reply(given)
            raise DefinitionError(f"{effect.agent} returned {type(given).__name__}; return a text or a Reply")

        return await self.pay_for(call)


async def recent(messages: Messages, seat: Seat, fresh: Sequence[Message] = ()) -> list[Any]:
    """As many of the latest messages of a conversation as can be left of it; the fresh ones are not kept yet."""
    last = FEW
    while True:
        said = [*await messages(seat.thread, Excerpt(last)), *fresh]
        if len(said) < last + len(fresh) or is_enough(seat, said):
            return said
        last *= 4


def _examples(role: Role) -> list[Message]:
    return [speech(example.role, example.content) for example in role.examples]


def _parsing(tool: ParsingTool) -> Offered:
    """A decision of a role, as a model is offered it."""
    shape = tool.function
    return Offered(shape.name, shape.description, shape.parameters, parsing=True)


def _with_reminder(role: Role, messages: tuple[Message, ...]) -> list[Message]:
    """The conversation with the role's reminder behind what was last asked."""
    found = list(messages)
    last = next((at for at in reversed(range(len(found))) if found[at]["role"] == "user"), None)
    if role.reminder and last is not None:
        found[last] = {**found[last], "text": f"{found[last]['text']}\n\n{role.reminder}"}
    return found
