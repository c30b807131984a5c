"""A folder in which real commands work, and what the store there holds, read without any command."""

import asyncio
import json
import sqlite3
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from moothall.stores.sqlite import SqliteStore
from tests.cli.process import moot, started
from tests.faults.machines import MACHINES

RUN = "mine"
SOON = 120.0
LOOK = 0.01
Entries = Sequence[Mapping[str, Any]]


def wait_for(check: Callable[[], Any], what: str) -> Any:
    """What this says as soon as it is something; another process does the work, so there is nothing to await."""
    end = time.monotonic() + SOON
    while time.monotonic() < end:
        if found := check():
            return found
        time.sleep(LOOK)
    return pytest.fail(f"{what} did not happen in time")


def told(entries: Entries) -> list[dict[str, Any]]:
    """A journal without its times."""
    return [{key: value for key, value in entry.items() if key != "at"} for entry in entries]


def check_whole(entries: Entries) -> None:
    """A journal has no gap, no repeat, and no cause twice."""
    causes = [entry["cause"] for entry in entries]
    assert [entry["seq"] for entry in entries] == list(range(len(entries)))
    assert len(set(causes)) == len(causes)


def row_of(file: Path, run: str) -> dict[str, Any]:
    """A run as the file of a store has it; empty where it has none."""
    db = sqlite3.connect(file)
    db.row_factory = sqlite3.Row
    try:
        found = db.execute("SELECT * FROM runs WHERE run = ?", (run,)).fetchone()
        return dict(found) if found is not None else {}
    except sqlite3.OperationalError:
        return {}
    finally:
        db.close()


def begin_together(processes: Sequence[subprocess.Popen[str]]) -> None:
    """Wait until all of these say that they are there, and let them go on at the same time."""
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("now\n")
        process.stdin.flush()


@dataclass(frozen=True)
class Place:
    """The folder, its commands, and its store."""

    folder: Path
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def file(self) -> Path:
        """The store's file."""
        return self.folder / "moothall.db"

    def prepare(self) -> None:
        """Put the machines there."""
        (self.folder / "machines.py").write_text(MACHINES)

    def moot(self, *arguments: str, more: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run one command to its end."""
        return moot(*arguments, home=self.folder, more=more)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start one command and leave it running."""
        self.processes.append(started(*arguments, home=self.folder))
        return self.processes[-1]

    def calls(self) -> list[str]:
        """All calls made so far."""
        log = self.folder / "calls.log"
        return log.read_text().splitlines() if log.exists() else []

    def under_way(self, calls: int) -> None:
        """Come back when so many calls have begun."""
        wait_for(lambda: len(self.calls()) >= calls, f"call {calls}")

    def hold(self, *steps: int) -> None:
        """Let these steps be under way until they are let go on."""
        for step in steps:
            (self.folder / f"hold-{step}").touch()

    def let(self, *steps: int) -> None:
        """Let these steps end."""
        for step in steps:
            (self.folder / f"hold-{step}").unlink()

    def entries(self, run: str = RUN, file: Path | None = None) -> Entries:
        """The journal of a run, checked against its seals; empty where there is none."""
        store = SqliteStore(file or self.file)
        try:
            return asyncio.run(store.entries(run))
        finally:
            store.close()

    def row(self, run: str = RUN) -> dict[str, Any]:
        """A run as the file has it; empty where it has none."""
        return row_of(self.file, run)

    def change(self, statement: str, *values: Any) -> None:
        """Do something to the file beside the store."""
        with closing(sqlite3.connect(self.file, timeout=SOON)) as db, db:
            db.execute(statement, values)
        db.close()

    def listed(self) -> list[dict[str, Any]]:
        """What `moot ls` says."""
        ran = self.moot("ls", "--json")
        assert ran.returncode == 0, ran.stderr
        found: list[dict[str, Any]] = json.loads(ran.stdout)
        return found
