"""Performs what the arena wants beside agents: a look at the identity, at what is remembered, and tasks in a workspace.

What cannot be done is an event that says why. A command whose worker is lost stays unknown: nothing here runs it again.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from moothall.agents.workspace import Execution, SandboxUnavailable
from moothall.errors import EffectFailed, Refused
from moothall.kernel.codec import decode, encode
from moothall.kernel.events import Event, GaveUp
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
from moothall.machines.arena.memory import RATINGS, TRACES, Trace, known_rating, nearest
from moothall.machines.arena.plan import Task
from moothall.runtime.ports import Context, Performer, Records

SHOWN = 4000
"""How much of a task's output the journal keeps, in characters."""
MOST_TRACES, MOST_RATINGS, NEWEST = 10_000, 1_000, 5
DEFINITION = "definition"


class Workspace(Protocol):
    """A folder that tasks work in."""

    async def run(self, command: str, *, within: float | None) -> Execution:
        """Run a shell command in the sandbox."""
        ...

    async def write(self, path: str, content: str) -> None:
        """Give a file this content."""
        ...

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Call a built-in tool."""
        ...

    async def has_file(self, path: str) -> bool:
        """Whether there is something at a path of the workspace."""
        ...

    async def save(self, name: str) -> str:
        """Save everything as it is; the id of the save."""
        ...

    async def restore(self, save: str) -> tuple[str, ...]:
        """Make everything again what it was; what is left."""
        ...


OpenWorkspace = Callable[[str], Workspace]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the arena finds around it: locks of the place, models of its agents, workspaces by their path."""

    locks: Callable[[str], Locks]
    models: Callable[[str, str], str]
    open: OpenWorkspace
    now: Callable[[], float] = time.time

    def performers(self) -> dict[str, Performer]:
        """Who performs the arena's own effects, by kind."""
        return {
            ReadIdentity.kind: Performer(ReadIdentity, self.read_identity),
            ReadContext.kind: Performer(ReadContext, self.read_context),
            ReadMemory.kind: Performer(ReadMemory, self.read_memory),
            SaveWorkspace.kind: Performer(SaveWorkspace, self.save),
            RestoreWorkspace.kind: Performer(RestoreWorkspace, self.restore),
            RunTask.kind: Performer(RunTask, self.run_task),
        }

    async def read_identity(self, effect: ReadIdentity, context: Context) -> Event:
        """What is locked here."""
        return IdentityRead(self.locks(effect.workspace), context.run)

    async def read_context(self, effect: ReadContext, context: Context) -> Event:
        """What earlier runs have left that concerns a request."""
        models = {agent: self.models(agent, effect.models.get(agent, "")) for agent in effect.agents}
        if context.records is None:
            return ContextRead(models)
        read = [
            known_rating(record.key, record.value)
            for agent in effect.agents
            for record in await context.records.records(RATINGS, prefix=f"{agent}|", most=MOST_RATINGS)
        ]
        ratings = tuple(rating for rating in read if rating.key.model in ("", models[rating.key.agent]))
        traces = await all_traces(context.records)
        newest = sorted(traces, key=lambda trace: (-trace.at, trace.id))[:NEWEST]
        return ContextRead(models, ratings, tuple(newest), tuple(nearest(effect.request, traces)))

    async def read_memory(self, effect: ReadMemory, context: Context) -> Event:
        """Ratings as they are now."""
        if context.records is None:
            return MemoryRead(self.now(), trace_id=context.run)
        found = [await context.records.records(RATINGS, key=key) for key in effect.keys]
        return MemoryRead(self.now(), tuple(record for records in found for record in records), context.run)

    async def save(self, effect: SaveWorkspace, context: Context) -> Event:
        """Save a workspace."""
        return await _unless_unable(self._save(effect, context))

    async def _save(self, effect: SaveWorkspace, context: Context) -> Event:
        return WorkspaceSaved(await self.open(effect.workspace).save(f"before {context.run}"))

    async def restore(self, effect: RestoreWorkspace, context: Context) -> Event:
        """Restore a workspace."""
        return await _unless_unable(self._restore(effect))

    async def _restore(self, effect: RestoreWorkspace) -> Event:
        return WorkspaceRestored(await self.open(effect.workspace).restore(effect.save))

    async def run_task(self, effect: RunTask, context: Context) -> Event:
        """Carry out a task, and look for what it was to leave behind."""
        return await _unless_unable(self._run_task(effect))

    async def _run_task(self, effect: RunTask) -> Event:
        workspace, expect = self.open(effect.workspace), effect.task.expect
        begun = time.monotonic()
        execution = await _carried_out(effect.task, workspace, effect.within)
        if not execution.duration:
            execution = replace(execution, duration=time.monotonic() - begun)
        wanted = expect.file_exists
        files = (wanted,) if wanted is not None and await workspace.has_file(wanted) else ()
        return TaskEnded(
            effect.id,
            execution.exit_code,
            execution.stdout[-SHOWN:],
            execution.stderr[-SHOWN:],
            round(execution.duration, 6),
            execution.level,
            files,
            expect.stdout_contains is None or expect.stdout_contains in execution.stdout,
        )


async def all_traces(records: Records) -> list[Trace]:
    """Every trace that is remembered."""
    return [
        decode(Trace, record.value, f"the trace {record.key}")
        for record in await records.records(TRACES, most=MOST_TRACES)
    ]


async def _carried_out(task: Task, workspace: Workspace, within: float | None) -> Execution:
    """What came of a task; a file that cannot be written and a tool that fails end with the exit code 1."""
    if task.kind == "command":
        return await workspace.run(task.command, within=within)
    try:
        if task.kind == "edit":
            await workspace.write(task.path, task.content)
            return Execution(0, "", "", 0.0, "workspace")
        value = await workspace.call(task.tool, task.arguments)
    except EffectFailed as failure:
        return Execution(1, "", str(failure), 0.0, "workspace")
    if isinstance(value, Mapping) and "exit_code" in value:
        said = {name: value[name] for name in ("exit_code", "stdout", "stderr", "duration", "level")}
        return decode(Execution, said, task.tool)
    return Execution(0, value if isinstance(value, str) else str(encode(value)), "", 0.0, "workspace")


async def _unless_unable(work: Awaitable[Event]) -> Event:
    """What came of some work; that there is no sandbox, or no workspace, is nothing that a repair would mend."""
    try:
        return await work
    except SandboxUnavailable as error:
        return GaveUp(f"{error.problem}; the arena runs no task unprotected, and `moot doctor` tries it", DEFINITION)
    except Refused as error:
        return GaveUp(str(error), DEFINITION)
    except EffectFailed as failure:
        if not failure.final:
            raise
        return GaveUp(str(failure))
