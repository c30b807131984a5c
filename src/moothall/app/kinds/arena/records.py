"""What the arena keeps beyond its runs, as doors show it: the store's identity, ratings with their history, traces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from moothall.app.kinds.arena.place import found_locks
from moothall.app.runs.moothall import Moothall
from moothall.errors import Refused
from moothall.kernel.codec import encode
from moothall.kernel.frozen import Frozen
from moothall.machines.arena.declaration import Declaration, declaration
from moothall.machines.arena.identity import COLLECTION, KEY, IdentityGuard, Locks
from moothall.machines.arena.memory import DUELS, RATINGS, Likeness, key_in, nearest
from moothall.machines.arena.ratings import Duel, Fitted, bradley_terry, rating_of
from moothall.performers.arena import all_traces
from moothall.runtime.ports import Records

MOST = 10_000


class Given(Frozen):
    """What somebody names that is to be locked, or held against the locks; the environment says the rest."""

    cloud_project: str = ""
    database: str = ""
    workspace: str = ""
    operator: str = ""


async def lock_store(hall: Moothall, given: Given, *, anew: bool = False) -> dict[str, Any]:
    """Lock a store to a place; one that is locked to another is left as it is, unless it is to be locked anew."""
    here = _found(given)
    locks = here if given.workspace else Locks(here.cloud_project, here.database, "", here.operator)
    outcome = await hall.run(declaration(), Declaration(locks, anew))
    if outcome.states == ("refused",):
        raise Refused("the store is locked already; look with `moot identity show`, or lock it anew with --force")
    return await identity_of(hall.store, given)


async def identity_of(store: Records, given: Given) -> dict[str, Any]:
    """What a store is locked to, and which locks do not hold here."""
    kept = await store.records(COLLECTION, key=KEY)
    stored = Locks(**dict(kept[0].value)) if kept else Locks()
    here = _found(given)
    if not given.workspace:
        here = Locks(here.cloud_project, here.database, stored.workspace, here.operator)
    wrong = IdentityGuard(stored=stored).mismatches(here)
    return {"locks": encode(stored), "here": encode(here), "holds": not wrong, "mismatches": list(wrong)}


def _found(given: Given) -> Locks:
    here = found_locks(str(Path(given.workspace or ".").resolve()))
    return Locks(
        given.cloud_project or here.cloud_project,
        given.database or here.database,
        here.workspace,
        given.operator or here.operator,
    )


async def standings(store: Records) -> dict[str, Any]:
    """Every rating, the live Elo beside the fit over all duels, and every duel with what it moved."""
    kept = await store.records(RATINGS, most=MOST)
    duels = await _duels(store)
    fitted = bradley_terry([Duel(_player(duel["first"]), _player(duel["second"]), duel["score"]) for duel in duels])
    return {"ratings": [_rating(record.key, record.value, fitted) for record in kept], "history": duels}


def _player(side: Mapping[str, Any]) -> str:
    return f"{side['agent']}|{side['model']}"


def _rating(record: str, value: Any, fitted: Mapping[str, Fitted]) -> dict[str, Any]:
    key, rating = key_in(record), rating_of(value)
    fit = fitted.get(f"{key.agent}|{key.model}") if key.model else None
    return {**encode(key), **encode(rating), "fit": None if fit is None else encode(fit)}


async def _duels(store: Records) -> list[dict[str, Any]]:
    kept = await store.records(DUELS, most=MOST)
    told = [
        {"trace_id": record.key, "at": record.value["at"], "kind": record.value["kind"], **duel}
        for record in kept
        for duel in record.value["duels"]
    ]
    return sorted(told, key=lambda duel: (duel["at"], duel["trace_id"]))


def rating_lines(told: Mapping[str, Any]) -> Iterator[str]:
    """The ratings for people."""
    for rating in told["ratings"]:
        whose = " ".join(filter(None, (rating["agent"], rating["model"], rating["kind"], rating["definition"])))
        fit = rating["fit"]
        beside = f"; fit {fit['rating']:.0f} ({fit['low']:.0f} to {fit['high']:.0f}, {fit['status']})" if fit else ""
        yield f"{rating['elo']:7.1f}  {rating['wins']:g} of {rating['games']:g} won  {whose}{beside}"


def history_lines(told: Mapping[str, Any]) -> Iterator[str]:
    """The duels for people, the oldest first."""
    for duel in told["history"]:
        first, second = duel["first"], duel["second"]
        verb = "beats" if duel["score"] > 0.5 else "loses to"
        moved = ", ".join(f"{side['agent']} {side['before']:.1f} → {side['after']:.1f}" for side in (first, second))
        yield f"{duel['trace_id']}  {duel['kind']}  {first['agent']} {verb} {second['agent']}  {moved}"


async def recalled(store: Records, text: str, most: int) -> list[Likeness]:
    """The traces that are most like a text."""
    return nearest(text, await all_traces(store), most=most)
