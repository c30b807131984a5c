"""A world for the arena as a machine: agents that say what they are told to, tasks that are noted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from moothall.agents.ask import AskAgent, Replied
from moothall.kernel.codec import decode
from moothall.kernel.effects import AskPerson, Effect, ReadRecords, WriteRecords
from moothall.kernel.events import Event, GaveUp, RecordsRead, RecordsWritten, SharedRecord
from moothall.kernel.simulate import Simulation
from moothall.machines.arena.case import Case
from moothall.machines.arena.effects import (
    ContextRead,
    IdentityRead,
    MemoryRead,
    ReadContext,
    ReadIdentity,
    ReadMemory,
    RestoreWorkspace,
    RunTask,
    SaveWorkspace,
    TaskEnded,
    WorkspaceRestored,
    WorkspaceSaved,
)
from moothall.machines.arena.identity import Locks
from moothall.machines.arena.machine import arena
from moothall.machines.arena.memory import KnownRating, Likeness
from moothall.machines.arena.plan import AGENTS, PANEL

TRACE = "case-1"
SHAPES = arena().shapes


def vote(verdict: str = "approve", confidence: float = 0.9, *reasons: str, **more: Any) -> dict[str, Any]:
    """What an agent of the panel replies."""
    return {"verdict": verdict, "confidence": confidence, "reasons": list(reasons), **more}


def task(id: str, command: str = "true", **more: Any) -> dict[str, Any]:
    """A task that runs a command."""
    return {"id": id, "kind": "command", "command": command, **more}


@dataclass
class ArenaWorld:
    """What happens around an arena. An agent's replies come in order, and the last one again and again."""

    tasks: Sequence[Mapping[str, Any]] = ()
    said: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    codes: Mapping[str, int] = field(default_factory=dict)
    """The exit codes of commands; others end with 0."""
    printed: Mapping[str, str] = field(default_factory=dict)
    """What commands print; others print nothing."""
    locks: Locks = field(default_factory=Locks)
    stored: Mapping[str, str] = field(default_factory=dict)
    ratings: tuple[KnownRating, ...] = ()
    nearest: tuple[Likeness, ...] = ()
    left: tuple[str, ...] = ()
    asked: list[AskAgent] = field(default_factory=list)
    run: list[str] = field(default_factory=list)
    written: list[SharedRecord] = field(default_factory=list)

    def begin(self, case: Case) -> Simulation:
        """A run in this world."""
        return Simulation(arena(), case, perform=self.perform)

    def reply(self, effect: AskAgent) -> Event:
        """What an agent says."""
        self.asked.append(effect)
        if effect.agent not in AGENTS:
            return Replied(effect.agent, "as you like", id=effect.id)
        number = sum(asked.agent == effect.agent for asked in self.asked)
        replies = self.said.get(effect.agent) or [self._usual(effect.agent)]
        value = replies[min(number, len(replies)) - 1]
        if value is None:
            return GaveUp("it said nothing", id=effect.id)
        return Replied(effect.agent, "", decode(SHAPES[effect.shape], value, "reply"), effect.shape, id=effect.id)

    def _usual(self, agent: str) -> Any:
        if agent == "classifier":
            return {"kind": "chore", "tags": ["a"], "confidence": 0.9}
        return vote() if agent in PANEL else {"tasks": list(self.tasks)}

    def perform(self, effect: Effect) -> Event | None:
        """What comes of an effect at once; questions to people stay open."""
        match effect:
            case AskAgent():
                return self.reply(effect)
            case AskPerson():
                return None
            case ReadRecords():
                return RecordsRead((SharedRecord("identity", "store", dict(self.stored), 1),) if self.stored else ())
            case ReadIdentity():
                return IdentityRead(replace(self.locks, workspace=effect.workspace), TRACE)
            case ReadContext():
                return ContextRead(dict.fromkeys(PANEL, "m"), self.ratings, (), self.nearest)
            case ReadMemory():
                return MemoryRead(1.0)
            case WriteRecords():
                self.written += effect.records
                return RecordsWritten(tuple(record.version + 1 for record in effect.records))
            case SaveWorkspace():
                return WorkspaceSaved("1")
            case RestoreWorkspace():
                return WorkspaceRestored(self.left)
            case RunTask():
                self.run.append(effect.id)
                command = effect.task.command
                return TaskEnded(effect.id, self.codes.get(command, 0), self.printed.get(command, ""), sandbox="none")
        raise AssertionError(f"nobody performs {effect}")
