"""Asking agents, tools and people: the effects, the events in which they end, and the words for a table.

`ask`, `call`, `child` and `question` stand in a machine's table. They are actions: given data they want one effect.
An effect names a template and its arguments; the performer renders it, so that nothing is stored twice.

A move that asks whom it finds in its data makes the effects itself, as many at once as its row declares. Each has an
`id` of its own then, and the event in which it ends has the same, be it a reply or a failure:

    @emitting(AskAgent, most=5)
    def ask_panel(debate, event):
        asks = [AskAgent(name, "propose", {"topic": debate.topic}, "Proposal", id=name) for name in debate.panel]
        return Move(debate, effects=tuple(asks))
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from inspect import iscoroutinefunction, isfunction, isroutine
from string import Formatter
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, get_args, get_origin, get_type_hints, overload

from moothall.agents.narrow import Narrow
from moothall.agents.outside import Outside, library_of
from moothall.agents.workspace import BUILT_IN, Policy
from moothall.errors import DefinitionError
from moothall.kernel.codec import encode, is_json, require_storable, schema
from moothall.kernel.effects import AskPerson, Effect, Repeats, StartChild
from moothall.kernel.events import Answered, ChildDone, Event, Expired
from moothall.kernel.frozen import RARE, Frozen, maker
from moothall.kernel.machine import Budget, Machine

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    V = TypeVar("V", default=Any)
else:  # defaults are for type checkers alone
    from typing import TypeVar

    V = TypeVar("V")

YesNo = bool
"""The shape of an answer that is yes or no."""

KEY = "key"
"""The parameter of a tool that gets the key of the call, under which a repeat of it is known."""

TEXTS = "$texts"
"""The only field of an argument that is several texts."""

TURN = "turn-"
"""What the machines of agents with tools are called, with the number of rounds behind it."""

ASKS = "-asks"
"""And what is behind that where a person may be asked before a tool is called."""

Picks = tuple[tuple[str, tuple[str, ...]], ...]
"""Paths of fields, each with its parts."""

UNUSABLE = "This reply cannot be used: {reason}. Please reply again."
"""What an agent is told whose reply is shown back to it."""

AgentFunction = Callable[[str], Awaitable[Any]]
ToolFunction = Callable[..., Awaitable[Any]]


class ToolCall(Frozen):
    """An agent wants a tool to be called before it goes on."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""


class Replied(Event, Generic[V]):
    """An agent replied: its text, the value where a shape was asked for, the calls where it wants tools first.

    A move for a reply with a shape may say so: `reply: Replied[Verdict]`.
    """

    agent: str
    text: str = ""
    value: V = None  # type: ignore[assignment]
    shape: str = ""
    usage: Mapping[str, float] = field(default_factory=dict)
    calls: tuple[ToolCall, ...] = ()
    id: str = field(default="", kw_only=True, metadata=RARE)
    model: str = field(default="", kw_only=True, metadata=RARE)
    """The model that said it, where that is not simply the run's."""


class Returned(Event, Generic[V]):
    """A tool returned a value; a move may say of which type: `returned: Returned[Receipt]`."""

    tool: str
    value: V = None  # type: ignore[assignment]
    usage: Mapping[str, float] = field(default_factory=dict)
    id: str = ""
    executed: str = field(default="", kw_only=True, metadata=RARE)
    """The hash of what was executed, where a person had approved it."""

    @property
    def shape(self) -> str:
        """The name under which a machine keeps the type that the tool says it returns."""
        return f"{self.tool}()"


class Unusable(Event):
    """An agent's reply does not have the shape that was asked for."""

    agent: str
    text: str = ""
    reason: str = ""
    usage: Mapping[str, float] = field(default_factory=dict)
    id: str = field(default="", kw_only=True, metadata=RARE)
    model: str = field(default="", kw_only=True, metadata=RARE)


class Window(Frozen):
    """What was last said in a thread, as a part of a prompt; all of it where no number is given."""

    thread: str
    last: int = 0


Level = Literal["base", "smart", "fast"]


class AskAgent(Effect):
    """Ask an agent: a template, its arguments, the shape of the reply, what was said before, and the tools it has.

    The template is a text, or the name of one of the machine's prompts; `windows` are further arguments, which the
    performer reads from threads. `thread` is the conversation that the agent takes part in. `system` is what the agent
    is told about itself, in place of what its `role` says: a text, or the name of a prompt. `model` plays it in place
    of the run's, `fallback` where that fails; a run that is played offline stays offline. `narrow` is what fields of
    the reply may be in this request.
    """

    kind = "ask.agent"
    outcomes = (Replied,)
    costs: ClassVar[Mapping[str, float]] = {"calls": 1}
    words = ("template", "arguments", "narrow")
    agent: str
    template: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    shape: str = ""
    timeout: float | None = field(default=None, kw_only=True)  # type: ignore[misc]
    thread: str = ""
    tools: tuple[str, ...] = ()
    id: str = field(default="", kw_only=True, metadata=RARE)
    role: str = field(default="", kw_only=True, metadata=RARE)
    system: str = field(default="", kw_only=True, metadata=RARE)
    model: str = field(default="", kw_only=True, metadata=RARE)
    level: Level | Literal[""] = field(default="", kw_only=True, metadata=RARE)
    temperature: float | None = field(default=None, kw_only=True, metadata=RARE)
    fallback: tuple[str, ...] = field(default=(), kw_only=True, metadata=RARE)
    attempts: int = field(default=3, kw_only=True, metadata=RARE)  # type: ignore[misc]
    windows: Mapping[str, Window] = field(default_factory=dict, kw_only=True, metadata=RARE)
    narrow: Narrow = field(default_factory=dict, kw_only=True, metadata=RARE)

    def settled(self, value: Any) -> Event:
        """The reply that a person reports: a text, or a value of the shape that was asked for."""
        if not self.shape:
            return Replied(self.agent, value, id=self.id)
        text = value if isinstance(value, str) else json.dumps(encode(value), ensure_ascii=False)
        return Replied(self.agent, text, value, self.shape, id=self.id)


class Manner(Frozen):
    """How an agent is asked, where that is not left to the run: the fields of `AskAgent` of these names."""

    thread: str = ""
    id: str = ""
    role: str = ""
    system: str = ""
    model: str = ""
    level: Level | Literal[""] = ""
    temperature: float | None = None
    fallback: tuple[str, ...] = ()
    attempts: int = 3

    def __str__(self) -> str:
        plain = Manner()
        said = {name: value for name, value in self.__dict__.items() if value != getattr(plain, name)}
        return "".join(f" {name}={value!r}" for name, value in said.items())


_AS_THE_RUN_SAYS = Manner()


class CallTool(Effect):
    """Call a tool with arguments by name."""

    kind = "call.tool"
    outcomes = (Returned,)
    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    repeats: Repeats = field(default="idempotent", kw_only=True)  # type: ignore[misc]
    timeout: float | None = field(default=None, kw_only=True)  # type: ignore[misc]
    id: str = ""
    approved: str = field(default="", kw_only=True, metadata=RARE)
    """The hash of what a person approved; "" where nobody was asked."""

    def settled(self, value: Any) -> Event:
        return Returned(self.tool, value, id=self.id)


make_ask_agent = maker(AskAgent)
make_call_tool = maker(CallTool)


class Tool(Frozen):
    """A tool as an agent may use it: its function, what may happen to a call that was lost, and how to check it."""

    name: str
    function: ToolFunction | None = None
    repeats: Repeats = "idempotent"
    check: ToolFunction | None = None
    timeout: float | None = None
    policy: Policy = "allow"


@dataclass(frozen=True, slots=True)
class Asking:
    """`ask(...)` in a table."""

    agent: str
    template: str
    paths: tuple[str, ...]
    reply: Any
    function: AgentFunction | None
    timeout: float | None = None
    manner: Manner = _AS_THE_RUN_SAYS
    _picks: Picks = field(init=False, repr=False, compare=False)
    _shape: str = field(init=False, repr=False, compare=False)
    emits: ClassVar[Mapping[str, int]] = {AskAgent.kind: 1}
    outcomes: ClassVar[tuple[type[Event], ...]] = (Replied,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_picks", _picks(self.paths))
        object.__setattr__(self, "_shape", shape_name(self.reply))

    @property
    def label(self) -> str:
        shape = f" -> {shape_name(self.reply)}" if self.reply is not None else ""
        return f"ask {self.agent}{shape}{self.manner}: {self.template}"

    @property
    def decides(self) -> str:
        return f"ask {self.agent} -> {shape_name(self.reply)} within {self.timeout}"

    @property
    def shapes(self) -> Mapping[str, Any]:
        return {} if self.reply is None else {shape_name(self.reply): self.reply}

    @property
    def functions(self) -> Mapping[str, AgentFunction]:
        return {} if self.function is None else {self.agent: self.function}

    def __call__(self, data: Any, event: Any) -> AskAgent:
        picked = _pick_fields(self, data, self._picks)
        manner = self.manner
        return make_ask_agent(
            self.agent,
            self.template,
            picked,
            self._shape,
            manner.thread,
            (),
            timeout=self.timeout,
            id=manner.id,
            role=manner.role,
            system=manner.system,
            model=manner.model,
            level=manner.level,
            temperature=manner.temperature,
            fallback=manner.fallback,
            attempts=manner.attempts,
            windows=_NO_WINDOWS,
            narrow=_NOT_NARROW,
        )


@dataclass(frozen=True, slots=True)
class Turning:
    """`ask(..., tools=...)` in a table: an agent that may call tools takes its turn as a run of its own."""

    asking: Asking
    tools: tuple[Tool, ...]
    rounds: int
    emits: ClassVar[Mapping[str, int]] = {StartChild.kind: 1}
    outcomes: ClassVar[tuple[type[Event], ...]] = (Replied,)
    words: ClassVar[Mapping[str, tuple[str, ...]]] = {
        StartChild.kind: ("input.ask.template", "input.ask.arguments", "input.ask.narrow")
    }

    @property
    def child(self) -> str:
        return turn_name(self.tools, self.rounds)

    @property
    def label(self) -> str:
        return f"{self.asking.label} with {self._tools}, at most {self.rounds} rounds"

    @property
    def decides(self) -> str:
        return f"{self.asking.decides} with {self._tools}, at most {self.rounds} rounds"

    @property
    def _tools(self) -> str:
        asked = {"allow": "", "ask": ", a person is asked", "deny": ", denied"}
        return ", ".join(f"{tool.name} ({tool.repeats}{asked[tool.policy]})" for tool in self.tools)

    @property
    def paths(self) -> tuple[str, ...]:
        return self.asking.paths

    @property
    def shapes(self) -> Mapping[str, Any]:
        return self.asking.shapes

    @property
    def functions(self) -> Mapping[str, Callable[..., Awaitable[Any]]]:
        return {
            **self.asking.functions,
            **{tool.name: tool.function for tool in self.tools if tool.function is not None},
        }

    @property
    def checks(self) -> Mapping[str, ToolFunction]:
        return {tool.name: tool.check for tool in self.tools if tool.check is not None}

    def __call__(self, data: Any, event: Any) -> StartChild:
        return turn_of(self.asking(data, event), self.tools, self.rounds)


@dataclass(frozen=True, slots=True)
class Calling:
    """`call(...)` in a table."""

    tool: Tool
    paths: tuple[str, ...]
    _picks: Picks = field(init=False, repr=False, compare=False)
    emits: ClassVar[Mapping[str, int]] = {CallTool.kind: 1}
    outcomes: ClassVar[tuple[type[Event], ...]] = (Returned,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_picks", _picks(self.paths))

    @property
    def label(self) -> str:
        repeats = "" if self.tool.repeats == "idempotent" else f" {self.tool.repeats}"
        return f"call {self.tool.name}({', '.join(self.paths)}){repeats}"

    @property
    def shapes(self) -> Mapping[str, Any]:
        kind = None if self.tool.function is None else returned_type(self.tool.function)
        return {} if kind is None else {Returned(self.tool.name).shape: kind}

    @property
    def functions(self) -> Mapping[str, ToolFunction]:
        return {} if self.tool.function is None else {self.tool.name: self.tool.function}

    @property
    def checks(self) -> Mapping[str, ToolFunction]:
        return {} if self.tool.check is None else {self.tool.name: self.tool.check}

    def __call__(self, data: Any, event: Any) -> CallTool:
        tool, picked = self.tool, _pick_fields(self, data, self._picks)
        return make_call_tool(tool.name, picked, repeats=tool.repeats, timeout=tool.timeout, id="", approved="")


@dataclass(frozen=True, slots=True)
class Starting:
    """`child(...)` in a table."""

    child: str
    paths: tuple[str, ...]
    id: str
    budget: Budget | None
    machine: Machine | None
    emits: ClassVar[Mapping[str, int]] = {StartChild.kind: 1}
    outcomes: ClassVar[tuple[type[Event], ...]] = (ChildDone,)

    @property
    def label(self) -> str:
        return f"child {self.child}({', '.join(self.paths)})" + (f" as {self.id}" if self.id else "")

    def __call__(self, data: Any, event: Any) -> StartChild:
        picked = _pick_fields(self, data, _picks(self.paths))
        given = {path.rpartition(".")[2]: value for path, value in picked.items()}
        return StartChild(self.child, given, self.id, self.budget.limits() if self.budget is not None else {})


@dataclass(frozen=True, slots=True)
class Questioning:
    """`question(...)` in a table."""

    prompt: str
    paths: tuple[str, ...]
    answer: Any
    within: float | None
    who: str = ""
    emits: ClassVar[Mapping[str, int]] = {AskPerson.kind: 1}

    @property
    def outcomes(self) -> tuple[type[Event], ...]:
        return (Answered,) if self.within is None else (Answered, Expired)

    @property
    def label(self) -> str:
        return f"question for {self.who}: {self.prompt}" if self.who else f"question: {self.prompt}"

    @property
    def decides(self) -> str:
        return f"question for {self.who or 'anybody'} -> {shape_name(self.answer)} within {self.within}"

    @property
    def shapes(self) -> Mapping[str, Any]:
        return {shape_name(self.answer): self.answer}

    def __call__(self, data: Any, event: Any) -> AskPerson:
        prompt = render(self.prompt, _pick_fields(self, data, _picks(self.paths)))
        return AskPerson(prompt, schema(self.answer), shape_name(self.answer), self.within, self.who)


@overload
def ask(
    agent: str | AgentFunction | Outside,
    template: str,
    *,
    reply: Any = None,
    timeout: float | None = None,
    thread: str = "",
    id: str = "",
    role: str = "",
    system: str = "",
    model: str = "",
    level: Level | Literal[""] = "",
    temperature: float | None = None,
    fallback: Sequence[str] = (),
    attempts: int = 3,
) -> Asking: ...
@overload
def ask(
    agent: str | AgentFunction | Outside,
    template: str,
    *,
    reply: Any = None,
    tools: Sequence[str | ToolFunction | Tool],
    rounds: int = 8,
    timeout: float | None = None,
    id: str = "",
    role: str = "",
    system: str = "",
    model: str = "",
    level: Level | Literal[""] = "",
    temperature: float | None = None,
    fallback: Sequence[str] = (),
    attempts: int = 3,
) -> Turning: ...
def ask(
    agent: str | AgentFunction | Outside,
    template: str,
    *,
    reply: Any = None,
    tools: Sequence[str | ToolFunction | Tool] = (),
    rounds: int = 8,
    timeout: float | None = None,
    thread: str = "",
    id: str = "",
    role: str = "",
    system: str = "",
    model: str = "",
    level: Level | Literal[""] = "",
    temperature: float | None = None,
    fallback: Sequence[str] = (),
    attempts: int = 3,
) -> Asking | Turning:
    """Ask an agent, by name or by its async function; `{field}` in the template takes a field of the run's data.

    An Agent of pydantic-ai and a Runnable of LangChain count as functions, by the name that they have. The output type
    of an Agent is the shape of its reply where `reply` names none.

    With tools, the agent may have them called, in at most `rounds` rounds, before it replies; each call is an effect of
    its own, so that a crash repeats at most those that were under way.

    `role` names a persona, `system` is what the agent is told about itself in its place, and `thread` is a conversation
    that it shares with others. `model`, `level`, `temperature`, `fallback` (models) and `attempts` are for this ask
    alone; `id` is found again in the event in which it ends.
    """
    name, function = _outside(agent) or _name_and_function(agent)
    if reply is None and library_of(agent):
        reply = output_shape(agent)
    if type(rounds) is not int or rounds < 1:
        raise DefinitionError(f"ask {name}: rounds is a whole number of at least 1, not {rounds!r}")
    if thread and tools:
        raise DefinitionError(f"ask {name}: an agent with tools has a thread of its own; ask without thread= or tools=")
    _require_seconds(f"ask {name}: timeout", timeout)
    manner = Manner(thread, id, role, system, model, level, temperature, tuple(fallback), attempts)
    _require_manner(f"ask {name}", manner)
    asking = Asking(name, template, template_fields(template, f"ask {name}"), reply, function, timeout, manner)
    return Turning(asking, tuple(map(as_tool, tools)), rounds) if tools else asking


def _require_manner(what: str, manner: Manner) -> None:
    if manner.level not in ("", *get_args(Level)):
        raise DefinitionError(f"{what}: level is one of {', '.join(get_args(Level))}, not {manner.level!r}")
    if type(manner.attempts) is not int or manner.attempts < 1:
        raise DefinitionError(f"{what}: attempts is a whole number of at least 1, not {manner.attempts!r}")
    given: object = manner.temperature
    if given is not None and not (isinstance(given, int | float) and given >= 0):
        raise DefinitionError(f"{what}: temperature is a number of at least 0, not {given!r}")


def turn_of(
    asked: AskAgent, tools: Sequence[str | ToolFunction | Tool], rounds: int = 8, *, calls: int = 0
) -> StartChild:
    """The same ask of an agent that may have tools called first: it takes its turn as a run of its own.

    It ends in `Replied` or `GaveUp` with the ask's id. Functions of tools stand in the table, or come with `agents=`.
    `calls` is the most that it may have called in all rounds together; 0 leaves that to the rounds.
    """
    given = tuple(map(as_tool, tools))
    used = [encode(_use_of(tool)) for tool in given]
    most = {"most": calls} if calls else {}
    return StartChild(turn_name(given, rounds), {"ask": encode(asked), "tools": used, **most}, asked.id)


def _use_of(tool: Tool) -> dict[str, Any]:
    """A tool as the turn of an agent knows it."""
    plain = {"name": tool.name, "repeats": tool.repeats, "timeout": tool.timeout}
    return plain if tool.policy == "allow" else {**plain, "policy": tool.policy}


def turn_name(tools: Sequence[Tool], rounds: int) -> str:
    """The machine of an agent with these tools: another one where a person may have to be asked."""
    return f"{TURN}{rounds}{ASKS if any(tool.policy == 'ask' for tool in tools) else ''}"


def tool(
    function: str | ToolFunction,
    *,
    repeats: Repeats = "idempotent",
    check: ToolFunction | None = None,
    timeout: float | None = None,
    policy: Policy = "allow",
) -> Tool:
    """A tool and what may happen to a call that was lost in a crash.

    `pure` and `idempotent` ones are called again with the same key (a parameter `key` gets it). `check-first` asks
    `check`, with the same arguments, what the lost call returned, and calls again where that gives None.
    `at-most-once` is never called again: a person is asked.

    With the policy `ask` a person approves each call that an agent wants, with `deny` none is made.
    """
    name, found = _name_and_function(function)
    if repeats not in get_args(Repeats):
        raise DefinitionError(f"tool {name}: repeats is one of {', '.join(get_args(Repeats))}, not {repeats!r}")
    if (check is None) == (repeats == "check-first"):
        raise DefinitionError(f"tool {name}: `check` and repeats='check-first' belong together")
    if policy not in get_args(Policy):
        raise DefinitionError(f"tool {name}: policy is one of {', '.join(get_args(Policy))}, not {policy!r}")
    _require_seconds(f"tool {name}: timeout", timeout)
    return Tool(name, found, repeats, check, timeout, policy)


def as_tool(given: str | ToolFunction | Tool) -> Tool:
    """A tool as it was given: itself, its function or its name, which may be that of a built-in one."""
    if isinstance(given, str) and given in BUILT_IN:
        repeats, policy = BUILT_IN[given]
        return Tool(given, repeats=repeats, policy=policy)
    return given if isinstance(given, Tool) else tool(given)


def call(given: str | ToolFunction | Tool, *fields: str) -> Calling:
    """Call a tool, by name or by its async function, with these fields of the run's data as keyword arguments."""
    called = as_tool(given)
    if KEY in fields:
        raise DefinitionError(f"call {called.name}: {KEY!r} is the key of the call itself; rename the field")
    return Calling(called, fields)


def child(machine: str | Machine, *fields: str, id: str = "", budget: Budget | None = None) -> Starting:
    """Start another machine as a run of its own, with these fields of the data as its input; it ends in `ChildDone`.

    `budget` is what it may spend at most, out of what this run has left. When the state is left, it is cancelled.
    """
    known = machine if isinstance(machine, Machine) else None
    return Starting(known.name if known is not None else str(machine), fields, id, budget, known)


def question(prompt: str, answer: Any = YesNo, *, within: float | None = None, who: str = "") -> Questioning:
    """Ask a person; the run waits for an answer of this type, or until `within` seconds have passed.

    `who` is the only one whose answer counts; without it, anybody's does.
    """
    _require_seconds(f"question {prompt!r}: within", within)
    return Questioning(prompt, template_fields(prompt, "question"), answer, within, who)


TEXT: Mapping[str, Any] = {"type": "string", "minLength": 1, "pattern": r"\S"}
"""The schema of an answer in words; "NA" is one, nothing at all is none."""


class FormField(Frozen):
    """One of several questions that are put to a person together: what is asked, by whom, and the earlier answer."""

    id: str
    text: str
    by: str = ""
    earlier: Any = None
    schema: Mapping[str, Any] = field(default_factory=lambda: TEXT)
    optional: bool = False


def form(
    prompt: str, fields: Sequence[FormField], *, within: float | None = None, who: str = "", id: str = ""
) -> AskPerson:
    """Several questions in one, made of data: the answer is an object with a value for each, by its id.

    What each is about stands in the schema, so that every door can show it: `description` is the text, `asked_by` who
    wants to know, `earlier` what was answered before.
    """
    if not fields:
        raise DefinitionError(f"form {prompt!r}: it asks nothing; give it at least one field")
    ids = [field.id for field in fields]
    if len(set(ids)) < len(ids):
        raise DefinitionError(f"form {prompt!r}: two fields have the same id; they are {', '.join(ids)}")
    wanted = {
        "type": "object",
        "properties": {field.id: _describe_form(field) for field in fields},
        "required": [field.id for field in fields if not field.optional],
        "additionalProperties": False,
    }
    return AskPerson(prompt, wanted, "", within, who, id=id)


def _describe_form(asked: FormField) -> dict[str, Any]:
    found = {**asked.schema, "description": asked.text}
    if asked.by:
        found["asked_by"] = asked.by
    return found if asked.earlier is None else {**found, "earlier": encode(asked.earlier)}


def _require_seconds(what: str, given: object) -> None:
    if given is not None and not (isinstance(given, int | float) and given > 0):
        raise DefinitionError(f"{what} is a number of seconds above 0, not {given!r}")


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


def returned_type(function: Callable[..., Any]) -> Any:
    """The type that a function says it returns; None where it says nothing, or nothing that JSON would not keep."""
    plain = function if isroutine(function) else getattr(function, "func", type(function).__call__)
    try:
        kind = get_type_hints(plain).get("return")
        require_storable(kind, "")
    except (NameError, TypeError, DefinitionError):  # only a type checker knows it, or it has no place in JSON
        return None
    return None if kind is NoneType or is_json(kind) else kind


def render(template: str, arguments: Mapping[str, Any]) -> str:
    """A template with its arguments filled in; what is not a text is shown as JSON."""
    try:
        return "".join(literal + _format_argument(arguments, path) for literal, path in _parse_template(template))
    except KeyError as error:
        has = ", ".join(arguments) or "none"
        raise DefinitionError(f"{template[:LONGEST_LABEL]!r} wants the argument {error}; it was given {has}") from error


def texts(*parts: str) -> Mapping[str, Any]:
    """An argument that a prompt shows as several texts, one below the other.

    Each is kept by itself, so that a long text that stands in many prompts is stored once.
    """
    return {TEXTS: list(parts)}


def _format_argument(arguments: Mapping[str, Any], path: str | None) -> str:
    if path is None:
        return ""
    value = arguments[path]
    if isinstance(value, Mapping) and value.keys() == {TEXTS}:
        return "\n".join(value[TEXTS])
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@lru_cache(maxsize=1024)
def _parse_template(template: str) -> tuple[tuple[str, str | None], ...]:
    return tuple((literal, path) for literal, path, _, _ in Formatter().parse(template))


def output_shape(agent: object) -> Any:
    """The type that an agent of another library says it gives; None where that is a text, or says nothing."""
    kind = getattr(agent, "output_type", None)
    if kind is None or kind is str or not (isinstance(kind, type) or get_origin(kind) is not None):
        return None
    try:
        require_storable(kind, "")
    except DefinitionError:  # functions that give the output, or what has no place in JSON
        return None
    return kind


def _outside(tool: object) -> tuple[str, Any] | None:
    """An agent of another library, by the name that it has; None where it is none."""
    if not library_of(tool):
        return None
    name = getattr(tool, "name", None)
    if not isinstance(name, str) or not name:
        kind = type(tool).__name__
        raise DefinitionError(f"this {kind} has no name; name it, or ask('NAME', …) and pass agents={{'NAME': …}}")
    return name, tool


def _name_and_function(tool: Any) -> tuple[str, Callable[..., Any] | None]:
    if isinstance(tool, str):
        return tool, None
    if not callable(tool):
        raise DefinitionError(f"{tool!r} is neither a name nor an async function")
    name = getattr(tool, "__name__", type(tool).__name__)
    if isfunction(tool) and not iscoroutinefunction(tool):
        raise DefinitionError(f"{name} is not async: write `async def {name}`")
    return name, tool


def template_fields(template: str, where: str) -> tuple[str, ...]:
    """The fields that a template names in braces."""
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


def _picks(paths: Sequence[str]) -> Picks:
    return tuple((path, tuple(path.split("."))) for path in paths)


def _pick_fields(action: Picking, data: Any, picks: Picks) -> dict[str, Any]:
    """Fields of the data as plain JSON, by their dotted paths."""
    found = {}
    for path, parts in picks:
        value = data
        try:
            for part in parts:
                is_object = hasattr(value, "__dataclass_fields__") or not isinstance(value, Mapping)
                value = getattr(value, part) if is_object else value[part]
            found[path] = encode(value)
        except (AttributeError, DefinitionError) as error:  # a text has methods, which are not JSON
            if not (advice := _advice(action, path, data)):
                raise
            raise type(error)(f"{error}; {advice}") from error
    return found


def _advice(action: Picking, path: str, data: Any) -> str:
    """What to do about a field that is wanted of data that have none; "" where they have fields."""
    kind = next((name for types, name in _WITHOUT_FIELDS if isinstance(data, types)), "")
    if not kind:
        return ""
    wants = f"{action.label[:LONGEST_LABEL]!r} wants the field {path.partition('.')[0]!r}, and the data is {kind}"
    return f"{wants}: give a JSON object with that field as input, or the machine data=CLASS with that field"


Picking = Asking | Calling | Starting | Questioning
"""The actions that take fields of the data."""
LONGEST_LABEL = 80
_NO_WINDOWS: Mapping[str, Window] = {}
_NOT_NARROW: Narrow = {}
_WITHOUT_FIELDS = ((NoneType, "nothing"), (str, "a text"), (list, "a list"), (bool | int | float, "a number"))
"""What data can be that are no object, in words."""
