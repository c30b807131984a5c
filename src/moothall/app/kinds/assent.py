"""Calls of tools that a person approves: each is a run of its own, beside the turn of the agent that wants it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from moothall.agents.approval import InspectCall, Waiting
from moothall.agents.ask import CallTool, Returned
from moothall.app.kinds.bindings import Provided, bind_functions
from moothall.app.kinds.kind import Kind
from moothall.app.kinds.python import PythonKind
from moothall.kernel.codec import decode
from moothall.kernel.effects import Effect, StartChild
from moothall.kernel.events import Event
from moothall.kernel.machine import Machine
from moothall.machines.assent import APPROVAL, said_in_the_end
from moothall.performers.tools import CallInspector
from moothall.runtime.hall import Bindings
from moothall.runtime.ports import Performer


class ApprovalKind(PythonKind):
    """The machine of a call that a person has to approve."""

    name = "assent"
    effects: Mapping[str, type[Effect]] = {InspectCall.kind: InspectCall, CallTool.kind: CallTool}

    def find(self, source: str) -> Machine | None:
        """The machine that is called so."""
        return self.named(source)

    def named(self, name: str) -> Machine | None:
        """The only machine of this kind."""
        return APPROVAL if name == self.name else None

    def beside(self, machine: Machine, name: str, kept: Any = None) -> Machine | None:
        """It starts no others."""
        return None

    def bind(self, machine: Machine, provided: Provided) -> Bindings:
        """Its tools are those of the run that starts it."""
        bindings = bind_functions(machine, provided)
        inspector = CallInspector(provided.tool_functions, provided.toolbox.look)
        return replace(
            bindings, performers={**bindings.performers, InspectCall.kind: Performer(InspectCall, inspector)}
        )

    def ended(self, effect: StartChild, output: Any) -> Event:
        """Whoever wants the call hears of it as of any other."""
        return said_in_the_end(decode(Waiting, effect.input["call"], self.name), output)

    def settled(self, effect: StartChild, value: Any) -> Event:
        """What the tool returned, where a person reports it."""
        call = decode(Waiting, effect.input["call"], self.name)
        return Returned(call.tool, value, id=call.id)


KIND: Kind = ApprovalKind()
