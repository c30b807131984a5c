"""What the arena keeps beyond its runs, as doors show and change it: the store's identity, traces, judgements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from moothall.app.kinds.arena.place import found_locks
from moothall.app.runs.moothall import Moothall
from moothall.errors import Refused
from moothall.kernel.codec import encode
from moothall.kernel.frozen import Frozen
from moothall.machines.arena.declaration import Declaration, declaration
from moothall.machines.arena.identity import COLLECTION, KEY, IdentityGuard, Locks
from moothall.machines.arena.memory import Likeness, nearest
from moothall.machines.arena.review import Review, review
from moothall.performers.arena import all_traces
from moothall.runtime.ports import Records


class Given(Frozen):
    """What somebody names that is to be locked, or held against the locks; the environment says the rest."""

    cloud_project: str = ""
    database: str = ""
    workspace: str = ""
    operator: str = ""


async def lock_store(hall: Moothall, given: Given, *, anew: bool = False) -> dict[str, Any]:
    """Lock a store to a place; one that is locked to another is left as it is, unless it is to be locked anew."""
    here = _locks_of(given)
    locks = here if given.workspace else Locks(here.cloud_project, here.database, "", here.operator)
    outcome = await hall.run(declaration(), Declaration(locks, anew))
    if outcome.states == ("refused",):
        raise Refused("the store is locked already; look with `moot identity show`, or lock it anew with --force")
    return await identity_of(hall.store, given)


async def identity_of(store: Records, given: Given) -> dict[str, Any]:
    """What a store is locked to, and which locks do not hold here."""
    kept = await store.records(COLLECTION, key=KEY)
    stored = Locks(**dict(kept[0].value)) if kept else Locks()
    here = _locks_of(given)
    if not given.workspace:
        here = Locks(here.cloud_project, here.database, stored.workspace, here.operator)
    wrong = IdentityGuard(stored=stored).mismatches(here)
    return {"locks": encode(stored), "here": encode(here), "holds": not wrong, "mismatches": list(wrong)}


def _locks_of(given: Given) -> Locks:
    here = found_locks(str(Path(given.workspace or ".").resolve()))
    return Locks(
        given.cloud_project or here.cloud_project,
        given.database or here.database,
        here.workspace,
        given.operator or here.operator,
    )


async def recall_traces(store: Records, text: str, most: int) -> list[Likeness]:
    """The traces that are most like a text."""
    return nearest(text, await all_traces(store), most=most)


async def judge_plan(hall: Moothall, trace_id: str, *, is_good: bool, by: str = "") -> str:
    """Say of a plan that was blocked whether it was good after all; it stays blocked, and who says so."""
    identity = await identity_of(hall.store, Given(operator=by))
    if not identity["holds"]:
        raise Refused("; ".join(identity["mismatches"]))
    who = str(identity["here"]["operator"])
    outcome = await hall.run(review(), Review(trace_id, is_good, who))
    if outcome.states == ("refused",):
        raise Refused(outcome.result)
    return who
