"""Agents that call tools before they reply: each takes its turn as a run of its own."""

from __future__ import annotations

from typing import Any

from moothall.agents.ask import AskAgent
from moothall.app.kinds.bindings import Provided, bind_functions
from moothall.app.kinds.kind import Kind, size_in
from moothall.app.kinds.python import PythonKind
from moothall.kernel.codec import decode
from moothall.kernel.effects import StartChild
from moothall.kernel.events import Event
from moothall.kernel.machine import Machine
from moothall.machines.turn import said_in_the_end, turn
from moothall.runtime.hall import Cast


class TurnKind(PythonKind):
    """The machine of an agent with tools, in as many rounds as its name says."""

    name = "turn"

    def find(self, source: str) -> Machine | None:
        """The machine that is called so."""
        return self.named(source)

    def named(self, name: str) -> Machine | None:
        """The machine with so many rounds."""
        size = size_in(name, self.name)
        return None if size is None else turn(size) if size else turn()

    def beside(self, machine: Machine, name: str, kept: Any = None) -> Machine | None:
        """It starts no others."""
        return None

    def bind(self, machine: Machine, provided: Provided) -> Cast:
        """It brings nothing itself: the agent and its tools are those of the run that starts it."""
        return bind_functions(machine, provided)

    def ended(self, effect: StartChild, output: Any) -> Event:
        """Whoever asked hears a reply, as of an agent without tools."""
        return said_in_the_end(decode(AskAgent, effect.input["ask"], self.name), output)


KIND: Kind = TurnKind()
