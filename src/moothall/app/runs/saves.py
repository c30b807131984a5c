"""The saves of a run's workspace: listed, taken, compared and gone back to; and the copy that a fork works in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

from moothall.agents.ask import Returned
from moothall.agents.workspace import BUILT_IN, Workspace
from moothall.app.kinds.kind import KINDS, kind_named
from moothall.app.runs.family import with_children
from moothall.app.toolbox import encode_workspace, saves_of
from moothall.errors import Refused
from moothall.kernel.codec import decode
from moothall.kernel.events import Doubted
from moothall.runtime.fork import Origin
from moothall.runtime.journal import Record, RunId
from moothall.runtime.ports import Store, Stored
from moothall.workspaces.saves import Difference, Restored, Save, Saves

RESCUE = "before the restore of "
ENDS = frozenset((Returned.name, Doubted.name))
"""The events in which a call ends that was made."""


async def list_saves(store: Store, run: RunId) -> tuple[Save, ...]:
    """The saves that were taken for a run, and those before a restore, the oldest first."""
    top, saves = await _saves_for(store, run)
    return _own(top, await saves.every())


async def take_save(store: Store, run: RunId, name: str) -> Save:
    """Save the workspace of a run now."""
    top, saves = await _saves_for(store, run)
    taken = await saves.save(f"{top}: {name}")
    return replace(taken, name=name)


async def diff(store: Store, run: RunId, save: str = "") -> Difference:
    """What has happened to the workspace of a run since a save, or since the run began."""
    top, saves = await _saves_for(store, run)
    if not save:
        known = _own(top, await saves.every())
        if not known:
            raise Refused(f"run {top} has no save of its workspace")
        save = known[0].id
    return await saves.diff(save)


async def restore(store: Store, run: RunId, save: str) -> Restored:
    """Make the workspace of a run what it was; what it is now is saved first."""
    _, saves = await _saves_for(store, run)
    return await saves.restore(save)


async def copy_for(store: Store, origin: Origin, fork: RunId) -> Mapping[str, Any]:
    """The copy of the workspace that a fork works in, as its record has it; nothing where there is no workspace.

    At the latest entry of its origin it is the workspace as it is now. Before that, it is what the last save had that
    was taken until then, or, if calls have changed something since that save, what the next one had, if none did until
    then.
    """
    top = (await _top(store, origin.stored.record.run)).record
    workspace = _workspace(top)
    if not workspace.folder:
        return top.tools
    saves, folder = saves_of(workspace), Path(workspace.folder)
    save = ""
    if origin.shared < origin.stored.seq:
        moment = (await store.entries(origin.stored.record.run, origin.shared, 1))[0]["at"]
        save = _nearest(_own(top.run, await saves.every()), await _changes(store, top.run), moment)
    target = folder.with_name(f"{folder.name}-{fork}")
    await saves.copy(target, save)
    return encode_workspace(replace(workspace, folder=str(target)))


def _nearest(saves: tuple[Save, ...], changes: list[float], moment: float) -> str:
    """The save that has the workspace as it was at a moment, as nearly as can be told; "" for what it is now."""
    before, after = ([save for save in saves if (save.at <= moment) is is_before] for is_before in (True, False))
    until = after[0].at if after else inf
    is_missing = not before or any(before[-1].at < at <= moment for at in changes)
    if before and (not is_missing or any(moment < at < until for at in changes)):
        return before[-1].id
    return after[0].id if after else ""


async def _changes(store: Store, top: RunId) -> list[float]:
    """When calls came back that may have changed the workspace, in a run and in those that it started."""
    changes = []
    for stored in with_children(await store.runs(), {top}):
        for entry in await store.entries(stored.record.run):
            event = entry["event"]
            if event["name"] in ENDS and BUILT_IN.get(event.get("tool", ""), ("",))[0] != "pure":
                changes.append(float(entry["at"]))
    return changes


async def drop_saves(stored: Stored, *, really: bool) -> int:
    """Delete the saves that were taken for a run, where that is really meant; how many there are."""
    saves = saves_kept(stored)
    if saves is None:
        return 0
    every = await saves.every()
    own = [save.id for save in every if _is_own(stored.record.run, save)]
    own += [save.id for save in every if save.name.removeprefix(RESCUE) in own]
    if really and own:
        await saves.drop(own)
    return len(own)


def _own(run: RunId, saves: tuple[Save, ...]) -> tuple[Save, ...]:
    own = [save for save in saves if _is_own(run, save) or save.name.startswith(RESCUE)]
    return tuple(replace(save, name=save.name.removeprefix(f"{run}: ")) for save in own)


def _is_own(run: RunId, save: Save) -> bool:
    """Whether a save was taken for a run, by its name; a kind that saves by itself names the run alone."""
    return save.name.startswith(f"{run}: ") or save.name == f"before {run}"


async def _saves_for(store: Store, run: RunId) -> tuple[RunId, Saves]:
    """The run at the top of a family, which has the workspace, and the saves of that."""
    top = await _top(store, run)
    saves = saves_kept(top)
    if saves is None:
        raise Refused(f"run {run} has no workspace; begin one with --workspace DIR")
    return top.record.run, saves


async def _top(store: Store, run: RunId) -> Stored:
    """The run at the top of a family."""
    stored = await store.load(run)
    while stored.record.parent:
        stored = await store.load(stored.record.parent)
    return stored


def saves_kept(stored: Stored) -> Saves | None:
    """The saves of a run's workspace: that of its tools, or the one that its kind works in by itself; None without."""
    workspace, source = _workspace(stored.record), stored.record.source
    if workspace.folder:
        return saves_of(workspace)
    return kind_named(source).own_saves(stored.head["snapshot"]["data"]) if source in KINDS and stored.head else None


def _workspace(record: Record) -> Workspace:
    return decode(Workspace, record.tools, "tools")
