"""Agents that call tools before they reply: each takes its turn as a run of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, get_args

from moothall.agents.ask import ASKS, AskAgent, Tool, turn_of
from moothall.agents.roles import role_of, roles
from moothall.agents.workspace import Policy
from moothall.app.kinds.bindings import Provided, bind_functions
from moothall.app.kinds.kind import Kind, Presented, size_in
from moothall.app.kinds.python import PythonKind
from moothall.app.kinds.roles import roles_in
from moothall.app.runs.outcome import Outcome
from moothall.app.toolbox import Given, chosen_workspace, toolbox_of, under_policies
from moothall.kernel.codec import decode
from moothall.kernel.effects import Repeats, StartChild
from moothall.kernel.events import Event
from moothall.kernel.machine import Machine
from moothall.machines.turn import said_in_the_end, turn
from moothall.runtime.hall import Bindings
from moothall.runtime.ports import Store

ROUNDS, SINGLE = 8, 50
"""How many rounds a turn has where nobody says it, and that of an agent that works alone."""


class TurnKind(PythonKind):
    """The machine of an agent with tools, in as many rounds as its name says."""

    name = "turn"

    def find(self, source: str) -> Machine | None:
        """The machine that is called so."""
        return self.named(source)

    def named(self, name: str) -> Machine | None:
        """The machine with so many rounds."""
        size, asks = size_in(name.removesuffix(ASKS), self.name), name.endswith(ASKS)
        return None if size is None else turn(size or ROUNDS, asks=asks)

    def variant(self, machine: Machine, policies: Mapping[str, Policy]) -> Machine:
        """The machine that can ask a person, where a policy says that one is asked."""
        asks = "ask" in policies.values() and not machine.name.endswith(ASKS)
        return self.named(f"{machine.name}{ASKS}") or machine if asks else machine

    def under(self, given: Any, policies: Mapping[str, Policy], tools: Mapping[str, Tool]) -> Any:
        """The turn with the policies that count for its agent, and with what its tools say of themselves."""
        uses = [_use(use, tools[use["name"]]) if use["name"] in tools else use for use in given["tools"]]
        if policies:
            agent, role = given["ask"]["agent"], given["ask"].get("role", "")
            uses = [{**use, "policy": _policy(use, (role, agent), policies)} for use in uses]
        return {**given, "tools": uses}

    async def present(self, store: Store, machine: Machine, outcome: Outcome) -> Presented:
        """What the agent said, where it is a run of its own."""
        usual = await super().present(store, machine, outcome)
        said = outcome.result if isinstance(outcome.result, Mapping) else {}
        return replace(usual, text=str(said.get("text", "")))

    def beside(self, machine: Machine, name: str, kept: Any = None) -> Machine | None:
        """It starts no others."""
        return None

    def bind(self, machine: Machine, provided: Provided) -> Bindings:
        """It brings nothing itself: the agent and its tools are those of the run that starts it."""
        return bind_functions(machine, provided)

    def ended(self, effect: StartChild, output: Any) -> Event:
        """Whoever asked hears a reply, as of an agent without tools."""
        return said_in_the_end(decode(AskAgent, effect.input["ask"], self.name), output)

    def settled(self, effect: StartChild, value: Any) -> Event:
        """A reply as well, where a person reports it."""
        return decode(AskAgent, effect.input["ask"], self.name).settled(value)


KIND: Kind = TurnKind()


def _use(use: Mapping[str, Any], tool: Tool) -> Mapping[str, Any]:
    """A tool that a machine names, which may be repeated no more freely than the tool itself allows."""
    repeats = max(use["repeats"], tool.repeats, key=get_args(Repeats).index)
    timeout = tool.timeout if use.get("timeout") is None else use["timeout"]
    return {**use, "repeats": repeats, "timeout": timeout}


def _policy(use: Mapping[str, Any], names: Iterable[str], policies: Mapping[str, Policy]) -> Policy:
    usual: Policy = use.get("policy", "allow")
    keys = (*(f"{name}:{use['name']}" for name in names if name), use["name"])
    return next((policies[key] for key in keys if key in policies), usual)


def single_turn(role: str, task: str, *, workspace: Given, roles_from: str = "") -> tuple[Machine, Any]:
    """The turn of a single agent that carries out a task with all tools that its role has, and what it is given."""
    chosen = chosen_workspace(workspace)
    persona = role_of(role, roles(roles_in(roles_from), roles_from or "the roles"))
    given = toolbox_of(chosen, role).tools.values()
    tools = under_policies([tool for tool in given if persona.may_use(tool.name)], role, chosen.policies)
    reminder = f"\n\n{persona.reminder}".replace("{", "{{").replace("}", "}}") if persona.reminder else ""
    asked = AskAgent(role, "{task}" + reminder, {"task": task}, system=persona.systemMessage, level=persona.level)
    started = turn_of(asked, tools, SINGLE)
    machine = KIND.named(started.machine)
    assert machine is not None
    return machine, started.input
