"""The first games of a simulated world through the whole arena: a run for each, with models that say what was drawn.

Every candidate is a scripted model, so that its ratings are its own. A plan is one command that succeeds or fails as
was observed; where the plan was blocked and somebody looked at it, a person judges it. Only the sandbox is left out.
"""

import asyncio
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from moothall import Final, GaveUp, Machine, Moothall, On, RecordsWritten, SharedRecord, State, WriteRecords
from moothall.app.kinds.arena.records import judge_plan
from moothall.machines.arena.case import Case
from moothall.machines.arena.consensus import Consensus, Vote
from moothall.machines.arena.definition import Configuration, Player
from moothall.machines.arena.effects import (
    RestoreWorkspace,
    RunTask,
    SaveWorkspace,
    TaskEnded,
    WorkspaceRestored,
    WorkspaceSaved,
)
from moothall.machines.arena.instructions import definition_of
from moothall.machines.arena.machine import arena
from moothall.machines.arena.memory import RATINGS, record_key
from moothall.machines.arena.plan import PANEL
from moothall.machines.arena.ratings import Rating, RatingKey, Settled, as_record, rating_of

KIND = "game"
Game = tuple[list[Vote], Consensus, Settled | None]


async def _save(effect: SaveWorkspace) -> WorkspaceSaved:
    return WorkspaceSaved("save")


async def _run(effect: RunTask) -> TaskEnded:
    return TaskEnded(effect.id, 0 if effect.task.command == "true" else 1, sandbox="simulated")


async def _restore(effect: RestoreWorkspace) -> WorkspaceRestored:
    return WorkspaceRestored(())


PERFORMERS: Any = {SaveWorkspace: _save, RunTask: _run, RestoreWorkspace: _restore}


def says_the_same(games: Sequence[Game], ratings: dict[str, Rating]) -> bool:
    """Whether the machine reaches the consensus of every game, and ends with these ratings."""
    with tempfile.TemporaryDirectory(prefix="moothall-") as folder:
        return asyncio.run(_plays(Path(folder), games, ratings))


async def _plays(folder: Path, games: Sequence[Game], ratings: dict[str, Rating]) -> bool:
    keys = _write_scripts(folder, games)
    os.environ.setdefault("MOOTHALL_LEVEL_BASE", "rehearsal")
    async with Moothall("memory", telemetry="") as hall:
        newcomers = [SharedRecord(RATINGS, record_key(key), as_record(Rating())) for key in keys.values()]
        await hall.run(_records(newcomers))
        for number, (votes, reached, settled) in enumerate(games):
            names = {vote.role: vote.agent for vote in votes} | {"classifier": "host", "planner": "host"}
            players = {agent: Player(_model(folder, name)) for agent, name in names.items()}
            case = Case(_request(number), str(folder), config=Configuration(agents=players))
            outcome = await hall.run(arena(), case, model="levels", performers=PERFORMERS, run_id=f"g{number}")
            if outcome.data.consensus.value != reached.value:
                return False
            if settled is not None and settled.by == "person":
                await judge_plan(hall, f"g{number}", is_good=bool(settled.good), by="somebody")
        kept = {record.key: rating_of(record.value) for record in await hall.store.records(RATINGS, most=10_000)}
    return all(kept[record_key(key)] == ratings.get(agent, Rating()) for agent, key in keys.items())


def _request(number: int) -> str:
    return f"play game <{number}>"


def _model(folder: Path, name: str) -> str:
    return f"scripted:{folder / name}.json"


def _write_scripts(folder: Path, games: Sequence[Game]) -> dict[str, RatingKey]:
    """Write what every candidate says in which game; the key of each one's rating.

    The last game comes first in a script, as prompts tell of earlier games that are alike.
    """
    said: dict[str, list[dict[str, Any]]] = {
        "host": [{"agent": "classifier", "value": {"kind": KIND, "confidence": 1}}]
    }
    roles: dict[str, str] = {}
    for number, (votes, _, settled) in reversed(list(enumerate(games))):
        fits = "true" if settled is None or settled.good else "false"
        tasks = [{"id": "play", "kind": "command", "command": fits}]
        said["host"].append({"agent": "planner", "contains": _request(number), "value": {"tasks": tasks}})
        for vote in votes:
            roles[vote.agent] = vote.role
            rules = said.setdefault(vote.agent, [{"contains": "Tasks of the plan failed", "value": {"diagnosis": ""}}])
            opinion = {"verdict": vote.verdict, "confidence": vote.confidence, "reasons": []}
            rules.append({"contains": _request(number), "value": opinion})
    for name, rules in said.items():
        (folder / f"{name}.json").write_text(json.dumps({"rules": rules}))
    assert set(roles.values()) == set(PANEL)
    return {agent: RatingKey(role, _model(folder, agent), KIND, definition_of(role)) for agent, role in roles.items()}


def _records(records: Sequence[SharedRecord]) -> Machine:
    """A machine that writes records."""
    return Machine(
        "records",
        data=dict,
        states=[State("writing", enter=WriteRecords(tuple(records))), Final("written"), Final("unwritten")],
        moves=[On("writing", RecordsWritten, to="written"), On("writing", GaveUp, to="unwritten")],
    )
