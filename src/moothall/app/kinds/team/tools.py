"""The tools that personas of a team have: those of the workspace, of servers, and functions that the person registered.

A persona has the tools that its team file names for it, as far as they are here, each under the policy that counts for
this persona. How much autonomy a conversation has changes nothing about that.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from moothall.agents.ask import Tool
from moothall.agents.workspace import Policy, Workspace, policy_for
from moothall.app.kinds.functions import tools_in
from moothall.app.toolbox import Given
from moothall.errors import DefinitionError
from moothall.machines.team.definition import Roster
from moothall.machines.turn import Use


def team_tools(functions: str) -> tuple[Tool, ...]:
    """The functions of a module that a team file may name: tools, hooks and sources."""
    return tuple(tool for tool in tools_in(functions) if tool.function is not None)


def functions_of(tools: Sequence[Tool]) -> dict[str, Any]:
    """The functions of tools by name."""
    return {tool.name: tool.function for tool in tools if tool.function is not None}


def own_use(tool: Tool) -> Use:
    """A tool of the person's own as it may be called. Nobody checks what a lost call did: it is not repeated."""
    repeats = "at-most-once" if tool.repeats == "check-first" else tool.repeats
    return Use(tool.name, repeats, tool.timeout, policy=tool.policy)


def uses_of(
    roster: Roster, tools: Sequence[Tool], own: Sequence[Use], policies: Mapping[str, Policy]
) -> tuple[Use, ...]:
    """The tools that personas name and that are here, with the policies that count; a person's own come first."""
    here = {use.name: use for use in own}
    for tool in tools:
        here.setdefault(tool.name, Use(tool.name, tool.repeats, tool.timeout, policy=tool.policy))
    named: dict[str, list[str]] = {}
    for persona in roster.team.personas:
        for name in persona.tools:
            named.setdefault(name, []).append(persona.id)
    return tuple(_under(here[name], users, policies) for name, users in named.items() if name in here)


def _under(use: Use, personas: Sequence[str], policies: Mapping[str, Policy]) -> Use:
    usual = policies.get(use.name, use.policy)
    known = {persona: policy_for(use.name, persona, policies, usual) for persona in personas}
    others = {persona: policy for persona, policy in known.items() if policy != usual}
    return replace(use, policy=usual, roles=others)


def made_workspace(given: Given) -> Workspace:
    """A workspace as a person names it; its folder is made where it is not there yet."""
    place = given if isinstance(given, Workspace) else Workspace(os.fspath(given) if given is not None else "")
    if not place.folder:
        return place
    try:
        Path(place.folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DefinitionError(f"the workspace {place.folder} cannot be made: {error.strerror}") from error
    return replace(place, folder=os.path.realpath(place.folder))
