"""Who performs what in a run: its functions, the model that plays the agents that are none, the machines it may start.

A child plays with what its parent brings: the functions of its parent's table, of its own, and of the caller. A machine
that is started by name is looked for in the parent's table, beside the parent, and among the built-in ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any, TypeVar

from moothall.agents.ask import AskAgent, Asking, Calling, CallTool, Starting, Turning
from moothall.agents.ports import Model
from moothall.agents.roles import Role, library_role, role_of, roles
from moothall.analysis import verify
from moothall.analysis.verify import Finding
from moothall.app.config.models import (
    BY_LEVEL,
    absolute_model,
    at_level,
    daily_payment,
    is_offline,
    open_model,
    require_usable,
)
from moothall.app.kinds.guests import adapt_guests
from moothall.app.kinds.kind import kind_of
from moothall.app.kinds.source import child_machine, source_of
from moothall.app.toolbox import EMPTY, Toolbox
from moothall.errors import DefinitionError
from moothall.kernel.effects import Effect, StartChild
from moothall.kernel.frozen import Frozen, slotted
from moothall.kernel.machine import Machine
from moothall.kernel.step import Scripted
from moothall.models.signed import SignedModel
from moothall.performers.agents import AgentPerformer, Hints, no_hints
from moothall.performers.own import OwnPerformers, own_performers
from moothall.performers.tools import ToolPerformer
from moothall.runtime.hall import Bindings, ChildSpec
from moothall.runtime.ports import Performer

T = TypeVar("T")
Functions = Mapping[str, Any]
"""Async functions by name, and agents of other libraries."""
SLUG = 64
"""How much of a machine's name is in the ids of its runs."""
_IN_TABLES = Asking | Turning | Starting | Scripted
"""Actions that name whom they ask, or leave that to their kind."""
ANYBODY = "its agents"
"""Stands for agents whose names are known when the machine runs."""


@slotted
class Provided(Frozen):
    """What a run and its children bring with them: functions, checks of tools, shapes of replies, a model."""

    model: str = ""
    functions: Functions = field(default_factory=dict)
    checks: Functions = field(default_factory=dict)
    shapes: Mapping[str, Any] = field(default_factory=dict)
    prompts: Mapping[str, str] = field(default_factory=dict)
    roles: Mapping[str, Any] = field(default_factory=dict)
    performers: OwnPerformers = field(default_factory=dict)
    toolbox: Toolbox = EMPTY

    @property
    def tool_functions(self) -> Functions:
        """The functions of tools: those that a run brings, and those of its workspace."""
        return {**self.toolbox.functions, **self.functions}

    @property
    def tool_checks(self) -> Functions:
        """What tells whether a lost call was made."""
        return {**self.toolbox.checks, **self.checks}

    def joined_by(self, machine: Machine) -> Provided:
        """The same with what stands in the table of a machine."""
        beside = Toolbox({tool.name: tool for tool in kind_of(machine).own_tools(machine)})
        functions = adapt_guests({**beside.functions, **bound_functions(machine), **self.functions})
        checks = {**beside.checks, **_checks(machine), **self.checks}
        shapes = {**machine.shapes, **self.shapes}
        prompts, personas = {**machine.prompts, **self.prompts}, {**machine.roles, **self.roles}
        return Provided(self.model, functions, checks, shapes, prompts, personas, self.performers, self.toolbox)

    def is_empty(self) -> bool:
        """Whether a run brings nothing with it, so that its machine's own functions are all there is."""
        brought = self.functions or self.checks or self.shapes or self.prompts or self.roles or self.performers
        return not (self.model or brought or self.toolbox is not EMPTY)


def bind(machine: Machine, provided: Provided) -> Bindings:
    """Who performs the effects of a run of this machine."""
    return kind_of(machine).bind(machine, provided)


def bind_functions(machine: Machine, provided: Provided, hints: Hints = no_hints) -> Bindings:
    """Performers that ask functions, and a model for the agents that are none; `hints` are for stand-ins."""
    provided = provided.joined_by(machine)
    models = RunModels(provided.model) if provided.model else None
    toolbox = provided.toolbox
    functions = provided.functions if toolbox is EMPTY else provided.tool_functions
    tools = ToolPerformer(functions, provided.tool_checks, toolbox.look, toolbox.save, toolbox.lacks)
    agents = AgentPerformer(
        functions,
        None,
        provided.shapes,
        prompts=provided.prompts,
        roles=_personas(provided.roles),
        models=models,
        pay_for=daily_payment(),
        hints=hints,
    )
    performers = {
        AskAgent.kind: Performer(AskAgent, agents),
        CallTool.kind: Performer(CallTool, tools),
        **own_performers(provided.performers),
    }
    return Bindings(performers, own_effects(machine), child=lambda name: child_part(machine, name, provided))


def _personas(given: Mapping[str, Any]) -> Callable[[str], Role]:
    """Roles by name: those of a machine, laid over those of the library, which is read where it is needed."""
    if not given:
        return library_role
    known = roles(given, "the roles of the machine")
    return lambda name: role_of(name, known)


class RunModels:
    """The models of a run, opened when first asked: the one that an ask names, that of an agent's level, else its own.

    A run that is played offline, by a stand-in, a script or a cassette, asks nobody else. What another model says than
    the one that the run is known by is signed with its name.
    """

    def __init__(self, named: str) -> None:
        self._named = named
        self._open: dict[str, Model] = {}

    def __call__(self, asked: AskAgent, level: str) -> Model:
        """The model that plays an agent of this level when it is asked like this."""
        if is_offline(self._named):
            return self._model(self._named)
        return self._model("|".join((asked.model or self._name_at(level), *asked.fallback)))

    def at(self, level: str) -> Model:
        """The model that plays agents of this level."""
        return self._model(self._name_at(level))

    def _name_at(self, level: str) -> str:
        return at_level(level) if self._named == BY_LEVEL else self._named

    def _model(self, name: str) -> Model:
        if name not in self._open:
            model = open_model(name)
            self._open[name] = model if name == self._named else SignedModel(model, absolute_model(name))
        return self._open[name]


def child_part(parent: Machine, name: str, provided: Provided) -> ChildSpec:
    """A machine that a run of another may start, whatever kinds both are of."""
    machine = child_machine(parent, name)
    kind = kind_of(machine)
    tools = {**{tool.name: tool for tool in kind_of(parent).own_tools(parent)}, **provided.toolbox.tools}
    policies = replace(provided.toolbox, tools=tools).policies
    machine = kind.variant(machine, policies)
    return ChildSpec(
        machine,
        source_of(machine),
        endless(machine) is not None,
        lambda given: kind.child_data(machine, kind.under(given, policies, tools)),
        kind.bind(machine, provided),
        kind.ended,
        kind.settled,
    )


def endless_below(machine: Machine, above: frozenset[str] = frozenset()) -> Finding | None:
    """Why a child of a machine may never end, where neither its start nor its own machine says what it may spend."""
    if not _children(machine):
        return None
    above |= {machine.name}
    bounded = {
        action.child for action in machine.actions() if isinstance(action, Starting) and action.budget is not None
    }
    for child in _child_machines(machine, above | bounded):
        found = endless(child) if child.budget is None else None
        if found := found or endless_below(child, above):
            return found
    return None


def names_asked(machine: Machine, above: frozenset[str] = frozenset()) -> set[str]:
    """The agents and tools that a machine and its children ask for by name."""
    names = {name for action in machine.actions() for name in _names(action)} | kind_of(machine).asked(machine)
    names |= {ANYBODY} if _moves_ask(machine) or _moves_emit(machine, StartChild) else set()
    above |= {machine.name}
    return names.union(*(names_asked(child, above) for child in _child_machines(machine, above)))


def _child_machines(machine: Machine, above: frozenset[str]) -> list[Machine]:
    """The machines that one starts, without those that are above it: a family may go round in circles."""
    return [child_machine(machine, name) for name in sorted(_children(machine) - above)]


def _names(action: Any) -> Iterator[str]:
    match action:
        case Asking(agent=agent):
            yield agent
        case Calling(tool=tool):
            yield tool.name
        case Turning(asking=asking, tools=tools):
            yield asking.agent
            yield from (tool.name for tool in tools)


def known_agents(machine: Machine, given: Any) -> Functions:
    """The functions that the caller brings, if the machine asks for all of them."""
    if not isinstance(given, Mapping):
        raise DefinitionError(f"write agents={{'name': function}}, not {given!r}")
    if given and (astray := sorted(given.keys() - (asked := names_asked(machine)))) and ANYBODY not in asked:
        raise DefinitionError(
            f"machine {machine.name} asks no agent or tool {astray[0]!r}; it asks {', '.join(sorted(asked))}"
        )
    return given


def missing_agents(machine: Machine, given: Functions, above: frozenset[str] = frozenset()) -> list[str]:
    """The agents of a machine and its children that are not functions."""
    missing = _unbound(machine) - given.keys()
    missing |= {ANYBODY} if not given and _moves_ask(machine) else set()
    if _children(machine):
        brought = {**bound_functions(machine), **given}
        above |= {machine.name}
        for child in _child_machines(machine, above):
            missing |= set(missing_agents(child, brought, above))
    return sorted(missing)


def _once(look: Callable[[Machine], T]) -> Callable[[Machine], T]:
    """What is seen in a machine's table, looked for once: a definition does not change.

    It is kept in the machine, as its cached properties are: bindings know their machine, and a table of ours that has
    the bindings would hold the machine for ever.
    """
    name = f"{look.__module__}.{look.__name__}"

    def looked(machine: Machine) -> T:
        known = machine.__dict__
        if name not in known:
            known[name] = look(machine)
        found: T = known[name]
        return found

    return looked


endless = _once(verify.endless)


@_once
def unchanging_bindings(machine: Machine) -> Bindings:
    """Who performs in a machine whose functions all stand in its table: the same for all its runs."""
    return bind_functions(machine, Provided())


@_once
def agents_in(machine: Machine) -> frozenset[str]:
    """The agents that the table asks, by name."""
    asked = {action.agent for action in machine.actions() if isinstance(action, Asking)}
    return frozenset(asked | {action.asking.agent for action in machine.actions() if isinstance(action, Turning)})


@_once
def _moves_ask(machine: Machine) -> bool:
    """Whether a move asks agents itself."""
    return _moves_emit(machine, AskAgent)


def _moves_emit(machine: Machine, effect: type[Effect]) -> bool:
    """Whether a move makes such effects itself, so that whom they concern does not stand in the table."""
    moves = (action for action in machine.actions() if not isinstance(action, _IN_TABLES))
    declared = any(effect.kind in getattr(move, "emits", {}) for move in moves)
    return declared or any(effect in (on.emits or {}) for on in machine.moves)


@_once
def own_effects(machine: Machine) -> Mapping[str, type[Effect]]:
    """The effects of its author that a machine declares, by kind; those that come with Moothall are known anyway."""
    declared = [effect for action in machine.actions() for effect in getattr(action, "effects", ())]
    declared += [effect for on in machine.moves for effect in on.emits or ()]
    return {effect.kind: effect for effect in declared if not effect.__module__.startswith("moothall.")}


def require_performers(machine: Machine, given: OwnPerformers) -> None:
    """Refuse to drive a machine whose own effects nobody performs."""
    kinds = own_performers(given).keys()
    for kind, effect in own_effects(machine).items():
        if kind not in kinds:
            raise DefinitionError(f"there is no performer of {kind!r}: pass performers={{{effect.__name__}: …}}")


def require_models(machine: Machine, data: Any, provided: Provided) -> None:
    """Refuse to drive a machine whose models nobody can ask from here: the run's, and those that its agents name."""
    if not provided.model:
        return
    require_usable(provided.model)
    if not is_offline(provided.model):
        for name in kind_of(machine).models(machine, data, provided.model, provided.functions):
            require_usable(name)


@_once
def models_in(machine: Machine) -> tuple[tuple[str, str], ...]:
    """The agents that the table asks by models of their own, each with the model."""
    actions = (action.asking if isinstance(action, Turning) else action for action in machine.actions())
    asked = (action for action in actions if isinstance(action, Asking) and action.function is None)
    return tuple((ask.agent, name) for ask in asked for name in (ask.manner.model, *ask.manner.fallback) if name)


@_once
def _unbound(machine: Machine) -> frozenset[str]:
    """The agents that the table asks and has no functions for."""
    return kind_of(machine).asked(machine) - bound_functions(machine).keys()


@_once
def own_limits(machine: Machine) -> Mapping[str, float]:
    """What the table says that a run may spend."""
    return machine.budget.limits() if machine.budget is not None else {}


@_once
def slug(machine: Machine) -> str:
    """The name of a machine as ids of its runs begin, cut where it is long."""
    return re.sub(r"[^A-Za-z0-9]+", "-", machine.name)[:SLUG].strip("-") or "run"


@_once
def _children(machine: Machine) -> frozenset[str]:
    started = (action for action in machine.actions() if not isinstance(action, Turning))
    return frozenset(name for action in started if (name := getattr(action, "child", "")))


@_once
def bound_functions(machine: Machine) -> Functions:
    """The functions that stand in the table itself, by name."""
    found: dict[str, Callable[..., Any]] = {}
    for action in machine.actions():
        if isinstance(action, Asking | Calling | Turning):
            for name, function in action.functions.items():
                if found.setdefault(name, function) is not function:
                    raise DefinitionError(f"machine {machine.name}: two functions are called {name!r}; rename one")
    return found


@_once
def _checks(machine: Machine) -> Functions:
    found: dict[str, Callable[..., Any]] = {}
    for action in machine.actions():
        if isinstance(action, Calling | Turning):
            found.update(action.checks)
    return found
