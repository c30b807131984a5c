"""What survives a kill: the journal in the store's file, and the files in which models and tools note what they do."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from moothall.errors import Refused
from moothall.stores.sqlite import SqliteStore
from tests.cli.process import started

NEVER = 3_600
Journal = list[Mapping[str, Any]]
Told = tuple[str, tuple[str, ...], tuple[str, ...], tuple[tuple[str, str], ...], str]


def entries(folder: Path, run: str) -> Journal:
    """A journal, read from the file without any command."""
    store = SqliteStore(folder / "moothall.db")
    try:
        return asyncio.run(store.entries(run))
    except Refused:
        return []
    finally:
        store.close()


def committed(folder: Path, run: str) -> frozenset[str]:
    """The keys of the effects whose ends are in the journal."""
    return frozenset(f"{run}.{entry['cause']}" for entry in entries(folder, run))


def noted(log: Path) -> list[str]:
    """The keys in a file of notes, in their order."""
    return [line.split()[0] for line in log.read_text().splitlines()] if log.exists() else []


def told(journal: Journal) -> list[Told]:
    """What a journal says, without times and keys."""
    return [
        (
            entry["event"]["name"],
            tuple(entry["from"]),
            tuple(entry["to"]),
            tuple((effect["kind"], effect["effect"].get("agent", "")) for effect in entry["effects"]),
            json.dumps([entry["event"].get("text"), entry["event"].get("value")]),
        )
        for entry in journal
    ]


def hang(script: Mapping[str, list[dict[str, Any]]], calls: Sequence[str], number: int) -> None:
    """Change a script so that the reply to this one of the calls, counted from 0, never comes."""
    who = calls[number]
    script[who][calls[:number].count(who)]["seconds"] = NEVER


def kill_when(reached: Callable[[], bool], arguments: Sequence[str], folder: Path) -> None:
    """Start a command and kill it as soon as this is so."""
    with started(*arguments, home=folder) as process:
        while not reached():
            assert process.poll() is None
        process.kill()
