"""Who performs what in a run: its functions, the model that plays the agents that are none, the machines it may start.

A child plays with what its parent brings: the functions of its parent's table, of its own, and of the caller. A machine
that is started by name is looked for in the parent's table, beside the parent, and among the built-in ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Any, TypeVar

from moothall.agents.ask import AskAgent, Asking, Calling, CallTool, Starting, Turning
from moothall.analysis import verify
from moothall.analysis.verify import Finding
from moothall.app.config.models import open_model
from moothall.app.kinds.guests import welcomed
from moothall.app.kinds.kind import kind_of
from moothall.app.kinds.source import child_machine, source_of
from moothall.errors import DefinitionError
from moothall.kernel.frozen import Frozen, slotted
from moothall.kernel.machine import Machine
from moothall.performers.agents import AgentPerformer
from moothall.performers.tools import ToolPerformer
from moothall.runtime.hall import Cast, Part
from moothall.runtime.ports import Performer

T = TypeVar("T")
Functions = Mapping[str, Any]
"""Async functions by name, and agents of other libraries."""
SLUG = 64
"""How much of a machine's name is in the ids of its runs."""


@slotted
class Provided(Frozen):
    """What a run and its children bring with them: functions, checks of tools, shapes of replies, a model."""

    model: str = ""
    functions: Functions = field(default_factory=dict)
    checks: Functions = field(default_factory=dict)
    shapes: Mapping[str, Any] = field(default_factory=dict)

    def joined_by(self, machine: Machine) -> Provided:
        """The same with what stands in the table of a machine."""
        functions = welcomed({**bound_functions(machine), **self.functions})
        checks, shapes = {**_checks(machine), **self.checks}, {**machine.shapes, **self.shapes}
        return Provided(self.model, functions, checks, shapes)

    def is_empty(self) -> bool:
        """Whether a run brings nothing with it, so that its machine's own functions are all there is."""
        return not (self.model or self.functions or self.checks or self.shapes)


def bind(machine: Machine, provided: Provided) -> Cast:
    """Who performs the effects of a run of this machine."""
    return kind_of(machine).bind(machine, provided)


def bind_functions(machine: Machine, provided: Provided) -> Cast:
    """Performers that ask functions, and a model for the agents that are none."""
    provided = provided.joined_by(machine)
    model = open_model(provided.model) if provided.model else None
    performers = {
        AskAgent.kind: Performer(AskAgent, AgentPerformer(provided.functions, model, provided.shapes)),
        CallTool.kind: Performer(CallTool, ToolPerformer(provided.functions, provided.checks)),
    }
    return Cast(performers, child=lambda name: child_part(machine, name, provided))


def child_part(parent: Machine, name: str, provided: Provided) -> Part:
    """A machine that a run of another may start, whatever kinds both are of."""
    machine = child_machine(parent, name)
    kind = kind_of(machine)
    return Part(
        machine,
        source_of(machine),
        endless(machine) is not None,
        lambda given: kind.child_data(machine, given),
        kind.bind(machine, provided),
        kind.ended,
    )


def endless_below(machine: Machine, above: frozenset[str] = frozenset()) -> Finding | None:
    """Why a child of a machine may never end, where neither its start nor its own machine says what it may spend."""
    if not _children(machine):
        return None
    above |= {machine.name}
    bounded = {one.child for one in machine.actions() if isinstance(one, Starting) and one.budget is not None}
    for one in _started(machine, above | bounded):
        found = endless(one) if one.budget is None else None
        if found := found or endless_below(one, above):
            return found
    return None


def asked_for(machine: Machine, above: frozenset[str] = frozenset()) -> set[str]:
    """The agents and tools that a machine and its children ask for by name."""
    names = {name for action in machine.actions() for name in _names(action)} | kind_of(machine).asked(machine)
    above |= {machine.name}
    return names.union(*(asked_for(one, above) for one in _started(machine, above)))


def _started(machine: Machine, above: frozenset[str]) -> list[Machine]:
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
            yield from (one.name for one in tools)


def known_agents(machine: Machine, given: Any) -> Functions:
    """The functions that the caller brings, if the machine asks for all of them."""
    if not isinstance(given, Mapping):
        raise DefinitionError(f"write agents={{'name': function}}, not {given!r}")
    if given and (astray := sorted(given.keys() - (asked := asked_for(machine)))):
        raise DefinitionError(
            f"machine {machine.name} asks nobody called {astray[0]!r}; it asks {', '.join(sorted(asked))}"
        )
    return given


def unplayed(machine: Machine, given: Functions, above: frozenset[str] = frozenset()) -> list[str]:
    """The agents of a machine and its children that are no functions."""
    missing = _unbound(machine) - given.keys()
    if _children(machine):
        brought = {**bound_functions(machine), **given}
        above |= {machine.name}
        for one in _started(machine, above):
            missing |= set(unplayed(one, brought, above))
    return sorted(missing)


def _once(look: Callable[[Machine], T]) -> Callable[[Machine], T]:
    """What is seen in a machine's table, looked for once: a definition does not change.

    It is kept in the machine, as its cached properties are: a cast knows its machine, and a table of ours that has
    the cast would hold the machine for ever.
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
def unchanging_bindings(machine: Machine) -> Cast:
    """Who performs in a machine whose functions all stand in its table: the same for all its runs."""
    return bind_functions(machine, Provided())


@_once
def agents_in(machine: Machine) -> frozenset[str]:
    """The agents that the table asks, by name."""
    asked = {one.agent for one in machine.actions() if isinstance(one, Asking)}
    return frozenset(asked | {one.asking.agent for one in machine.actions() if isinstance(one, Turning)})


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
    started = (one for one in machine.actions() if not isinstance(one, Turning))
    return frozenset(name for one in started if (name := getattr(one, "child", "")))


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
