"""What the agent world needs from outside: a model that replies to a request, or an agent of another library."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from typing import Any, Protocol, runtime_checkable

from moothall.agents.ask import ToolCall
from moothall.kernel.frozen import Frozen


class Offered(Frozen):
    """A tool that a model may have called: its name, what it says of itself, and the schema of its arguments.

    Of a `parsing` tool nothing is done when it is called: the call is the answer.
    """

    name: str
    description: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict)
    parsing: bool = False


class Turns(Protocol):
    """Counts what everybody begins within a minute, also elsewhere."""

    async def take_turn(self, name: str, per_minute: int) -> float:
        """Begin something now, and 0.0; or how many seconds it has to wait."""
        ...


class Request(Frozen):
    """One call of a model: who speaks, the prompt, the shape of the reply, and the effect's key as seed.

    `nth` counts the calls of this agent in this run from 1, so that offline models know where they are. `messages`
    are what was said since the prompt: the agent's own calls of tools, and what these returned; in a conversation they
    are all of it, and the prompt is empty. `system` is what the agent is told about itself. `hear`, where somebody
    listens, gets the text piece by piece as it comes, and an empty piece where it begins anew; what was heard is no
    reply yet. `temperature` is how freely it is to speak, where that is not left to the provider, `hints`
    what stand-ins may say. `metered` says that what it uses must be counted, by an estimate where nobody tells.
    `turns`, where there is one, counts the calls of everybody who may ask a provider only so often.
    """

    agent: str
    prompt: str
    key: str
    nth: int = 1
    schema: Mapping[str, Any] | None = None
    messages: tuple[Any, ...] = ()
    tools: tuple[Offered, ...] = ()
    hear: Callable[[str], None] | None = None
    system: str = ""
    temperature: float | None = None
    hints: Mapping[str, Any] = field(default_factory=dict)
    metered: bool = False
    turns: Turns | None = None


class Reply(Frozen):
    """What an agent says: a text, a value where one was asked for, what it cost, and the tools that it wants called.

    `model` is whose words these are, where that is not simply the model of the run.
    """

    text: str = ""
    value: Any = None
    usage: Mapping[str, float] = field(default_factory=dict)
    calls: tuple[ToolCall, ...] = ()
    model: str = ""


Call = Callable[[], Awaitable[Reply]]
PayFor = Callable[[Call], Awaitable[Reply]]
"""Makes a call of an agent if there is money for it, and pays what it cost."""


def unlimited(call: Call) -> Awaitable[Reply]:
    """Make a call, whatever it costs."""
    return call()


class Model(Protocol):
    """Request in, reply out. A failure of the provider is raised as EffectFailed, a final one where it would last."""

    async def reply(self, request: Request) -> Reply:
        """Answer one request."""
        ...


@runtime_checkable
class Opening(Protocol):
    """A model that can be opened before it is asked: its client and a connection, and nothing that costs."""

    async def open(self) -> None:
        """Open what a reply will need."""
        ...


async def open_ahead(model: Model) -> None:
    """Open a model before it is asked, where there is anything to open."""
    if isinstance(model, Opening):
        await model.open()


class Guest:
    """An agent of another library at work: a function of a prompt, and of the reply's schema where one is asked for."""

    def __call__(self, prompt: str, schema: Mapping[str, Any] | None = None) -> Awaitable[Reply]:
        """Reply to a prompt."""
        raise NotImplementedError
