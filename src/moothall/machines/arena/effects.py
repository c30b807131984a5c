"""What the arena wants done by others than agents and people, and the events in which that ends.

A command may be run at most once unless its task says otherwise; everything else here may be repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from moothall.kernel.effects import Effect, Repeats
from moothall.kernel.events import Event, SharedRecord
from moothall.kernel.frozen import RARE
from moothall.machines.arena.identity import Locks
from moothall.machines.arena.memory import KnownRating, Likeness, Trace
from moothall.machines.arena.plan import Task


class IdentityRead(Event):
    """What is found around the run that may be locked."""

    name = "arena.identity"
    found: Locks = Locks()
    trace_id: str = ""


class ReadIdentity(Effect):
    """Look at what may be locked, and at nothing else."""

    kind = "arena.identity"
    outcomes = (IdentityRead,)
    repeats = "pure"
    workspace: str = ""


class ContextRead(Event):
    """What is known from earlier runs, and which model plays whom in this one."""

    name = "arena.context"
    models: Mapping[str, str] = field(default_factory=dict)
    ratings: tuple[KnownRating, ...] = ()
    decisions: tuple[Trace, ...] = ()
    nearest: tuple[Likeness, ...] = ()


class ReadContext(Effect):
    """Look up ratings of these agents, the newest decisions, and the traces that are most like a request."""

    kind = "arena.context"
    outcomes = (ContextRead,)
    repeats = "pure"
    request: str
    agents: tuple[str, ...] = ()
    models: Mapping[str, str] = field(default_factory=dict)


class WorkspaceSaved(Event):
    """The workspace was saved as it is."""

    name = "arena.saved"
    save: str = ""


class SaveWorkspace(Effect):
    """Save the workspace, so that it can be made again what it is now."""

    kind = "arena.save"
    outcomes = (WorkspaceSaved,)
    workspace: str


class TaskEnded(Event):
    """A task came to its end: its exit code, the end of what it said, and what of its declared outcome was found."""

    name = "arena.task"
    task: str
    exit_code: int | None = None
    stdout: str = ""
    stderr: str = ""
    duration: float = 0.0
    sandbox: str = ""
    files: tuple[str, ...] = ()
    """Those of the files it was to make that are there."""
    says_expected: bool = True
    """Whether what it was to say is in its whole output."""


class RunTask(Effect):
    """Carry out one task of a plan in the sandbox."""

    kind = "arena.task"
    outcomes = (TaskEnded,)
    task: Task
    workspace: str
    within: float | None = None
    id: str = ""
    repeats: Repeats = field(default="at-most-once", kw_only=True, metadata=RARE)  # type: ignore[misc]

    def settled(self, value: Any) -> Event:
        """What a person says became of it, where its outcome was unknown: it was done."""
        expect = self.task.expect
        files = () if expect.file_exists is None else (expect.file_exists,)
        return TaskEnded(self.id, 0, str(value or ""), sandbox="a person's word", files=files)


class WorkspaceRestored(Event):
    """The workspace is what it was, but for what is left."""

    name = "arena.restored"
    left: tuple[str, ...] = ()


class RestoreWorkspace(Effect):
    """Make the workspace again what it was."""

    kind = "arena.restore"
    outcomes = (WorkspaceRestored,)
    workspace: str
    save: str


class MemoryRead(Event):
    """Records as they are now, the time, and the id under which this run is remembered."""

    name = "arena.memory"
    at: float = 0.0
    records: tuple[SharedRecord, ...] = ()
    trace_id: str = ""


class ReadMemory(Effect):
    """Read these ratings again, which are to be replaced."""

    kind = "arena.memory"
    outcomes = (MemoryRead,)
    repeats = "pure"
    keys: tuple[str, ...] = ()


EFFECTS: Mapping[str, type[Effect]] = {
    effect.kind: effect for effect in (ReadIdentity, ReadContext, SaveWorkspace, RunTask, RestoreWorkspace, ReadMemory)
}
