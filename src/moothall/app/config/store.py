"""A store's file as it lies there: looked at without making it, bringing it up to date, or changing a run."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal

from moothall.runtime.journal import RunId
from moothall.stores.sqlite import TABLES

Level = Literal["ok", "warning", "problem"]

MOUNTS = Path("/proc/mounts")
PROCESSES = Path("/proc")
NETWORK = re.compile(r"nfs\d?|cifs|smb\w*|9p|afs|ceph|fuse(\..+|blk)?")
"""Filesystems that lie elsewhere, or may: what is behind a fuse cannot be seen from here."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a look at the file has shown. The runs are there where the file is a store of today."""

    level: Level
    says: str
    runs: tuple[RunId, ...] | None = None
    has_log: bool = False


def look_at(file: Path) -> Seen:
    """See whether a file is a store that can be used, or may become one."""
    if not os.path.exists(file):
        return _missing(file)
    try:
        log = file.with_name(f"{file.name}-wal")
        size = file.stat().st_size + (log.stat().st_size if log.exists() else 0)
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=rw", uri=True, timeout=1)) as db:
            return _read(db, file, size)
    except (sqlite3.Error, OSError) as error:
        return Seen("problem", f"it cannot be opened: {error}")


def _missing(file: Path) -> Seen:
    if not may_be_made_in(file.parent):
        return Seen("problem", f"it is not there, and cannot be made in {nearest(file)}")
    return Seen("ok", "it is not there yet; the first run makes it")


def _read(db: sqlite3.Connection, file: Path, size: int) -> Seen:
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables:
        return Seen("ok", "an empty file; the first run makes a store of it")
    if not tables >= TABLES:
        return Seen("problem", "it is the database of another program, or of an older Moothall")
    (done,), known = db.execute("PRAGMA user_version").fetchone(), _migrations()
    if done > known:
        return Seen("problem", "it was written by a newer Moothall")
    if done < known:
        return Seen("warning", "it was written by an older Moothall; the next command brings it up to date")
    if why := _unwritable(db, file):
        return Seen("problem", why)
    (mode,) = db.execute("PRAGMA journal_mode").fetchone()
    runs = tuple(run for (run,) in db.execute("SELECT run FROM runs ORDER BY number"))
    return Seen("ok", f"{_size(size)}, can be written", runs, mode == "wal")


def _size(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"


def _unwritable(db: sqlite3.Connection, file: Path) -> str:
    """Why a store cannot be written; one that somebody writes to right now can."""
    if not os.access(file, os.W_OK) or not os.access(file.resolve().parent, os.W_OK):
        return "it cannot be written: no permission for the file or its folder"
    try:
        db.execute("BEGIN IMMEDIATE")
        db.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        return "" if "locked" in str(error) else f"it cannot be written: {error}"
    return ""


def _migrations() -> int:
    folder = files("moothall.stores").joinpath("migrations")
    return sum(file.name.endswith(".sql") for file in folder.iterdir())


def nearest(file: Path) -> Path:
    """The file itself, or what is there of the folders above it; a link counts that leads nowhere."""
    file = file.absolute()
    return next(path for path in (file, *file.parents) if os.path.lexists(path))


def may_be_made_in(folder: Path) -> bool:
    """Whether files can be made in a folder, which is made itself where it is not there."""
    there = nearest(folder)
    return os.path.isdir(there) and os.access(there, os.W_OK | os.X_OK)


def free_space(file: Path) -> int:
    """How many bytes are free where the file lies or will lie."""
    folder = next(path for path in file.absolute().parents if os.path.exists(path))
    return shutil.disk_usage(folder).free


def filesystem_of(path: Path, mounts: str | None = None) -> str:
    """The kind of filesystem that a path lies on, by the table of mounts; "" where it cannot be told."""
    if mounts is None:
        mounts = MOUNTS.read_text(errors="replace") if MOUNTS.exists() else ""
    best, found = 0, ""
    for line in mounts.splitlines():
        _, point, kind, *_ = (*line.split(), "", "", "")
        point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), point)
        if point.startswith("/") and path.is_relative_to(point) and len(point) >= best:
            best, found = len(point), kind
    return found


def is_elsewhere(filesystem: str) -> bool:
    """Whether a kind of filesystem lies on another machine, or may."""
    return NETWORK.fullmatch(filesystem) is not None


def others_at(file: Path) -> set[int]:
    """The other processes of this machine that have the file open, as far as we may see."""
    there = os.path.realpath(file)
    found = {int(process.name) for process in PROCESSES.glob("[0-9]*")} - {os.getpid()}
    return {process for process in found if there in _open_files(process)}


def _open_files(process: int) -> set[str]:
    try:
        return {os.readlink(link) for link in (PROCESSES / str(process) / "fd").iterdir()}
    except OSError:  # it is gone, or not ours
        return set()
