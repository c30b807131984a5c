"""Workflows as they are kept with a run: the workflow, its roles, and every workflow below it, as JSON.

A run goes on under the definition that it began with, also where its file was moved, edited or deleted. What is kept
is what was compiled, not the text of the file. Functions of the author are code, and are found where they are when a
run goes on; to look at a run, what is known of them here is enough.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

from moothall.agents.roles import Role
from moothall.app.kinds.source import child_machine, remember, source_of
from moothall.errors import DefinitionError
from moothall.kernel.codec import decode, encode
from moothall.kernel.machine import Machine
from moothall.machines.turn import Use
from moothall.machines.workflow.compiler import WorkflowMachine, machine_of
from moothall.machines.workflow.definition import Workflow
from moothall.machines.workflow.plan import Rules

_kept: WeakKeyDictionary[Machine, Mapping[str, Any]] = WeakKeyDictionary()
"""What was kept with the machines that were made from it."""


def definition_with_all_below(machine: Machine) -> Mapping[str, Any]:
    """A workflow as it is kept: by name, with all that it starts, and their sources."""
    if machine in _kept:
        return _kept[machine]
    workflows: dict[str, Any] = {}
    _gather(machine, workflows)
    return {"name": machine.name, "workflows": workflows}


def _gather(machine: Machine, workflows: dict[str, Any]) -> None:
    if not isinstance(machine, WorkflowMachine) or machine.name in workflows:
        return
    plan = machine.plan
    workflows[machine.name] = {
        "workflow": encode(plan.workflow),
        "roles": encode(plan.roles),
        "tools": encode(plan.tools),
        "source": source_of(machine),
        "rules": encode(plan.rules),
    }
    for name in {getattr(action, "child", "") for action in machine.actions()} - {""}:
        try:
            _gather(child_machine(machine, name), workflows)
        except DefinitionError:  # the run itself is told when it comes to it
            continue


def machine_stored(source: str, definition: Mapping[str, Any]) -> Machine:
    """The machine of a workflow that was kept."""
    return _compile(source, json.dumps(definition))


@lru_cache(maxsize=64)
def _compile(source: str, text: str) -> Machine:
    definition = json.loads(text)
    kept = definition["workflows"][definition["name"]]
    tools = decode(tuple[Use, ...], kept["tools"], "tools")
    roles = decode(dict[str, Role], kept["roles"], "roles")
    workflow = decode(Workflow, kept["workflow"], definition["name"])
    machine = machine_of(workflow, roles, tools, decode(Rules, kept.get("rules", {}), "rules"))
    remember(machine, source)
    _kept[machine] = definition
    return machine


def stored_beside(machine: Machine, name: str) -> Machine | None:
    """The workflow of this name that was kept with another; None where none was."""
    definition = _kept.get(machine, {})
    below = definition.get("workflows", {}).get(name)
    return None if below is None else machine_stored(below["source"], {**definition, "name": name})
