"""A store with a run of every kind, what it held at earlier moments, and what an attacker may do to it."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import orjson

from moothall.runtime.ports import Audit
from moothall.stores.anchors import PLACES
from moothall.stores.seals import SIZE, Sealing, chain_start
from moothall.stores.sqlite import SqliteStore
from tests.cli.process import started

Row = tuple[Any, ...]
Dump = dict[str, list[Row]]
TABLES = ("runs", "entries", "texts")
RESTING = ("done", "done-2-0", "done-10-0", "waiting", "deep", "deep-2-0", "fork", "again", "watch")
LIVE = "live"
RUNS = (*RESTING, LIVE)
COMMANDS: Sequence[tuple[str, ...]] = (
    ("run", "works.py:YARD", "lamp", "--run-id", "done"),
    ("answer", "done", "--text", "Ada"),
    ("answer", "done", "--yes"),
    ("run", "works.py:YARD", "boat", "--run-id", "waiting"),
    ("run", "works.py:YARD", "mast", "--run-id", "deep"),
    ("answer", "deep", "--text", "Bob"),
    ("fork", "done", "--at", "8", "--run-id", "fork"),
    ("fork", "fork", "--run-id", "again", "--budget", "calls=5"),
    ("answer", "fork", "--json", '{"outcome": "done", "value": "elsewhere"}'),
    ("run", "works.py:WATCH", "sail", "--run-id", "watch"),
    ("answer", "watch", "--yes"),
)


@dataclass
class Gallery:
    """The store, its earlier moments, and a way to put everything back."""

    folder: Path
    key: bytes
    dumps: list[Dump] = field(default_factory=list)
    anchors: bytes = b""

    def __post_init__(self) -> None:
        self.db = sqlite3.connect(self.folder / "moothall.db", isolation_level=None, timeout=30)
        self.db.execute("PRAGMA synchronous=OFF")
        self._store: SqliteStore | None = None
        self._loop = asyncio.new_event_loop()

    @property
    def anchor_file(self) -> Path:
        """The file with the anchors of the store."""
        return next(file for file in (self.folder / "anchors").iterdir() if file.name != PLACES)

    def look(self) -> None:
        """Keep what the store holds now."""
        self.dumps.append({table: self.db.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES})
        self.anchors = self.anchor_file.read_bytes()

    def put_back(self) -> None:
        """Make the store and its anchors what they were when somebody looked last."""
        self.db.execute("BEGIN")
        for table in TABLES:
            self.db.execute(f"DELETE FROM {table}")
            for row in self.dumps[-1][table]:
                self.db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
        self.db.execute("COMMIT")
        self.anchor_file.write_bytes(self.anchors)

    def audited(self, run: str, key: bytes | None = None) -> Audit:
        """What an audit says."""
        path, anchors = self.folder / "moothall.db", self.folder / "anchors"
        if key is None:
            self._store = self._store or SqliteStore(path, self.key, anchors=anchors)
            return self._loop.run_until_complete(self._store.audit(run))
        store = SqliteStore(path, key, anchors=anchors)
        try:
            return self._loop.run_until_complete(store.audit(run))
        finally:
            store.close()

    def close(self) -> None:
        """Let go of the store."""
        self.db.close()
        if self._store is not None:
            self._store.close()
        self._loop.close()

    def number(self, run: str) -> int:
        """The number of a run in the file."""
        found: int = self.db.execute("SELECT number FROM runs WHERE run = ?", (run,)).fetchone()[0]
        return found

    def seqs(self, run: str) -> list[int]:
        """The entries that a run has itself."""
        rows = self.db.execute("SELECT seq FROM entries WHERE run = ? ORDER BY seq", (self.number(run),))
        return [seq for (seq,) in rows]


def built(folder: Path, moot: Callable[..., Any]) -> Gallery:
    """The gallery, made with commands; one of them is killed in the middle of a tool."""
    for number, command in enumerate(COMMANDS):
        ran = moot(*command)
        assert ran.code in (0, 5), (command, ran.err)
        if number == 0:
            gallery = Gallery(folder, (folder / "audit.key").read_bytes())
        gallery.look()
    (folder / "hold").touch()
    with started("run", "works.py:LOOP", "oar", "--run-id", LIVE, home=folder) as process:
        _wait_for(lambda: '["pay", "oar"]' in (folder / "received.log").read_text(), process)
        process.kill()
        process.communicate()
    (folder / "hold").unlink()
    gallery.look()
    return gallery


def _wait_for(check: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 30
    while not check():
        assert time.monotonic() < end, "nothing was paid in time"
        assert process.poll() is None, "it ended before anything was paid"
        time.sleep(0.01)


# what an attacker does; each says the first entry that is then wrong, None where that cannot be known

Attack = Callable[[Gallery, Random, str], int | None]


def edited(gallery: Gallery, chance: Random, run: str) -> int | None:
    """Another content of an entry, and the seals left as they are."""
    seq = chance.choice(gallery.seqs(run))
    _set_body(gallery, run, seq, changed(_body(gallery, run, seq), chance))
    return seq


def flipped(gallery: Gallery, chance: Random, run: str) -> int | None:
    """One bit of an entry's body, cause or seal."""
    seq, column = chance.choice(gallery.seqs(run)), chance.choice(("body", "cause", "seal"))
    number = gallery.number(run)
    found = gallery.db.execute(f"SELECT {column} FROM entries WHERE run = ? AND seq = ?", (number, seq)).fetchone()[0]
    plain = bytearray(found if isinstance(found, bytes) else found.encode())
    plain[chance.randrange(len(plain))] ^= 1 << chance.randrange(7)
    value: Any = bytes(plain) if isinstance(found, bytes) else plain.decode()
    gallery.db.execute(f"UPDATE entries SET {column} = ? WHERE run = ? AND seq = ?", (value, number, seq))
    return seq


def deleted(gallery: Gallery, chance: Random, run: str) -> int | None:
    """One entry less."""
    seq = chance.choice(gallery.seqs(run))
    gallery.db.execute("DELETE FROM entries WHERE run = ? AND seq = ?", (gallery.number(run), seq))
    return seq


def closed_up(gallery: Gallery, chance: Random, run: str) -> int | None:
    """One entry less, and those behind it moved up."""
    number, seqs = gallery.number(run), gallery.seqs(run)
    seq = chance.choice(seqs)
    gallery.db.execute("DELETE FROM entries WHERE run = ? AND seq = ?", (number, seq))
    for one in seqs[seqs.index(seq) + 1 :]:
        gallery.db.execute("UPDATE entries SET seq = seq - 1 WHERE run = ? AND seq = ?", (number, one))
    gallery.db.execute("UPDATE runs SET seq = seq - 1 WHERE number = ?", (number,))
    return seq


def inserted(gallery: Gallery, chance: Random, run: str) -> int | None:
    """A copy of an entry put in somewhere, those behind it moved down."""
    number, seqs = gallery.number(run), gallery.seqs(run)
    seq, copied = chance.choice((*seqs, seqs[-1] + 1)), chance.choice(seqs)
    cause, body, seal = _entry(gallery, run, copied)
    for one in reversed([one for one in seqs if one >= seq]):
        gallery.db.execute("UPDATE entries SET seq = seq + 1 WHERE run = ? AND seq = ?", (number, one))
    gallery.db.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", (number, seq, cause, body, seal))
    if chance.random() < 0.5:
        gallery.db.execute("UPDATE runs SET seq = seq + 1 WHERE number = ?", (number,))
    return None if copied == seq else seq


def swapped(gallery: Gallery, chance: Random, run: str) -> int | None:
    """Two entries in each other's place."""
    number, seqs = gallery.number(run), gallery.seqs(run)
    if len(seqs) < 2:
        return edited(gallery, chance, run)
    one, other = sorted(chance.sample(seqs, 2))
    for old, new in ((one, -1), (other, one), (-1, other)):
        gallery.db.execute("UPDATE entries SET seq = ? WHERE run = ? AND seq = ?", (new, number, old))
    return one


def rehashed_without_the_key(gallery: Gallery, chance: Random, run: str) -> int | None:
    """Another content, and all seals behind it made anew: without a key, or with a guessed one."""
    _rehash(gallery, chance, run, Sealing(chance.choice((b"", b"a guess"))))
    return None


def rehashed_with_the_key(gallery: Gallery, chance: Random, run: str) -> int | None:
    """Another content, and all seals behind it made anew by somebody who has the key."""
    _rehash(gallery, chance, run, Sealing(gallery.key))
    return None


def forged_signature(gallery: Gallery, chance: Random, run: str) -> int | None:
    """Another content, the seals made anew, with signatures that pretend to be ours."""
    seq = _rehash(gallery, chance, run, Sealing(b""))
    ours = Sealing(gallery.key).entry(b"", 0, b"")[-4:]
    number = gallery.number(run)
    forged = chance.randbytes(12) + ours
    for one in gallery.seqs(run):
        if one >= seq:
            *_, seal = _entry(gallery, run, one)
            row = (seal[:16] + forged, number, one)
            gallery.db.execute("UPDATE entries SET seal = ? WHERE run = ? AND seq = ?", row)
    return seq


def truncated(gallery: Gallery, chance: Random, run: str) -> int | None:
    """The end cut off, and the number of the latest entry put right."""
    number, seqs = gallery.number(run), gallery.seqs(run)
    seq = chance.choice(seqs)
    gallery.db.execute("DELETE FROM entries WHERE run = ? AND seq >= ?", (number, seq))
    if chance.random() < 0.7:
        gallery.db.execute("UPDATE runs SET seq = ? WHERE number = ?", (seq - 1, number))
    return seq


def put_back_old_copy(gallery: Gallery, chance: Random, run: str) -> int | None:
    """The whole run as it once was, head and all; where it never was another, its tail is cut off."""
    number = gallery.number(run)
    now = next(row for row in gallery.dumps[-1]["runs"] if row[0] == number)
    older = [dump for dump in gallery.dumps if any(row[0] == number and row[4] < now[4] for row in dump["runs"])]
    if not older:
        return truncated(gallery, chance, run)
    dump = chance.choice(older)
    for table, column in (("runs", "number"), ("entries", "run"), ("texts", "run")):
        gallery.db.execute(f"DELETE FROM {table} WHERE {column} = ?", (number,))
        for row in dump[table]:
            if row[0] == number:
                gallery.db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    return gallery.seqs(run)[-1] + 1


def cut_to_old_head(gallery: Gallery, chance: Random, run: str) -> int | None:
    """The end cut off, with the head that the run had there put back."""
    number = gallery.number(run)
    now = next(row for row in gallery.dumps[-1]["runs"] if row[0] == number)
    older = [row for dump in gallery.dumps for row in dump["runs"] if row[0] == number and row[4] < now[4]]
    if not older:
        return truncated(gallery, chance, run)
    row = chance.choice(older)
    gallery.db.execute("DELETE FROM entries WHERE run = ? AND seq > ?", (number, row[4]))
    gallery.db.execute("DELETE FROM runs WHERE number = ?", (number,))
    gallery.db.execute(f"INSERT INTO runs VALUES ({', '.join('?' * len(row))})", row)
    return int(row[4]) + 1


def removed(gallery: Gallery, chance: Random, run: str) -> int | None:
    """The run deleted, with or without its entries."""
    number = gallery.number(run)
    gallery.db.execute("DELETE FROM runs WHERE number = ?", (number,))
    if chance.random() < 0.5:
        gallery.db.execute("DELETE FROM entries WHERE run = ?", (number,))
    return None


def renamed(gallery: Gallery, chance: Random, run: str) -> int | None:
    """The run under another id; what is audited is the id that it had."""
    gallery.db.execute("UPDATE runs SET run = 'other' WHERE run = ?", (run,))
    return None


def borrowed(gallery: Gallery, chance: Random, run: str) -> int | None:
    """An entry of another run in the place of one of this run."""
    seq = chance.choice(gallery.seqs(run))
    others = "SELECT cause, body, seal FROM entries WHERE run <> ?"
    rows = gallery.db.execute(others, (gallery.number(run),)).fetchall()
    row = (*chance.choice(rows), gallery.number(run), seq)
    gallery.db.execute("UPDATE entries SET cause = ?, body = ?, seal = ? WHERE run = ? AND seq = ?", row)
    return seq


def changed_head(gallery: Gallery, chance: Random, run: str) -> int | None:
    """Another head, its seal left, made anew without the key, or with it."""
    number = gallery.number(run)
    head, tip, sealed = gallery.db.execute("SELECT head, tip, record FROM runs WHERE number = ?", (number,)).fetchone()
    plain = orjson.loads(head)
    plain["spent"] = {**plain["spent"], "calls": chance.randrange(100, 999)}
    head = orjson.dumps(plain)
    gallery.db.execute("UPDATE runs SET head = ? WHERE number = ?", (head, number))
    if (sealing := chance.choice((None, Sealing(b""), Sealing(b"a guess"), Sealing(gallery.key)))) is not None:
        seal = sealing.head(tip, sealed[SIZE:], head)
        gallery.db.execute("UPDATE runs SET seal = ? WHERE number = ?", (seal, number))
    return None


def changed_record(gallery: Gallery, chance: Random, run: str) -> int | None:
    """Another record of how the run began, its seal left, made anew without the key, or with it and the head's too."""
    number = gallery.number(run)
    head, tip, sealed = gallery.db.execute("SELECT head, tip, record FROM runs WHERE number = ?", (number,)).fetchone()
    plain = orjson.loads(sealed[SIZE:])
    plain["limits"] = {**plain["limits"], "calls": chance.randrange(1000, 9999)}
    record = orjson.dumps(plain)
    sealing = chance.choice((None, Sealing(b""), Sealing(b"a guess"), Sealing(gallery.key)))
    seal = sealed[:SIZE] if sealing is None else sealing.record(run, record)
    gallery.db.execute("UPDATE runs SET record = ? WHERE number = ?", (seal + record, number))
    if sealing is not None and chance.random() < 0.7:
        row = (sealing.head(tip, record, head), number)
        gallery.db.execute("UPDATE runs SET seal = ? WHERE number = ?", row)
    return None


def lost_text(gallery: Gallery, chance: Random, run: str) -> int | None:
    """A long text changed or deleted; where the run has none, an entry is changed."""
    number = gallery.number(run)
    rows = gallery.db.execute("SELECT digest FROM texts WHERE run = ?", (number,)).fetchall()
    if not rows:
        return edited(gallery, chance, run)
    (digest,) = chance.choice(rows)
    if chance.random() < 0.5:
        gallery.db.execute("DELETE FROM texts WHERE run = ? AND digest = ?", (number, digest))
    else:
        gallery.db.execute("UPDATE texts SET body = body || '!' WHERE run = ? AND digest = ?", (number, digest))
    return None


def shared_part(gallery: Gallery, chance: Random, run: str) -> int | None:
    """The part of a fork that stands with its origin; any other run is changed itself."""
    if run not in ("fork", "again"):
        return edited(gallery, chance, run)
    seq = chance.randrange(8)
    _set_body(gallery, "done", seq, changed(_body(gallery, "done", seq), chance))
    return seq


def lost_origin(gallery: Gallery, chance: Random, run: str) -> int | None:
    """The run that a fork comes from deleted; any other run is deleted itself."""
    return removed(gallery, chance, "done" if run in ("fork", "again") else run)


ATTACKS: tuple[Attack, ...] = (
    edited,
    flipped,
    deleted,
    closed_up,
    inserted,
    swapped,
    rehashed_without_the_key,
    rehashed_with_the_key,
    forged_signature,
    truncated,
    put_back_old_copy,
    cut_to_old_head,
    removed,
    renamed,
    borrowed,
    changed_head,
    changed_record,
    lost_text,
    shared_part,
    lost_origin,
)


def changed(entry: dict[str, Any], chance: Random, parts: Sequence[str] = ()) -> dict[str, Any]:
    """An entry with another content in one of its parts."""
    part = chance.choice(parts or ("event", "from", "to", "taken", "effects", "appends", "status", "reason", "within"))
    match part:
        case "event":
            return {**entry, part: {**entry[part], "name": f"{entry[part]['name']}.x"}}
        case "from" | "to" | "taken":
            return {**entry, part: [*entry[part], "elsewhere"] if chance.random() < 0.5 else ["nowhere"]}
        case "effects":
            more = {"key": "99.0", "kind": "ask.person", "effect": {"prompt": "Pay?"}, "nth": 1}
            return {**entry, part: entry[part][:-1] if entry[part] else [more]}
        case "appends":
            return {**entry, part: [] if entry.get(part) else [{"thread": "talk", "message": "yes"}]}
    return {**entry, part: "cancelled" if entry.get(part) != "cancelled" else "failed"}


def _entry(gallery: Gallery, run: str, seq: int) -> tuple[str, bytes, bytes]:
    query = "SELECT cause, body, seal FROM entries WHERE run = ? AND seq = ?"
    found: tuple[str, bytes, bytes] = gallery.db.execute(query, (gallery.number(run), seq)).fetchone()
    return found


def _body(gallery: Gallery, run: str, seq: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_entry(gallery, run, seq)[1])
    return found


def _set_body(gallery: Gallery, run: str, seq: int, body: dict[str, Any]) -> None:
    row = (orjson.dumps(body), gallery.number(run), seq)
    gallery.db.execute("UPDATE entries SET body = ? WHERE run = ? AND seq = ?", row)


def _rehash(gallery: Gallery, chance: Random, run: str, sealing: Sealing) -> int:
    """Change an entry and make all seals from there on anew, the head's too; the entry."""
    seq = chance.choice(gallery.seqs(run))
    _set_body(gallery, run, seq, changed(_body(gallery, run, seq), chance))
    resealed(gallery, run, seq, sealing)
    return seq


def resealed(gallery: Gallery, run: str, seq: int, sealing: Sealing) -> None:
    """Make the seals of a run anew from an entry on."""
    number, seqs = gallery.number(run), gallery.seqs(run)
    before = _entry(gallery, run, seq - 1)[2] if seq > seqs[0] else _start(gallery, run)
    for one in seqs[seqs.index(seq) :]:
        before = sealing.entry(before, one, _entry(gallery, run, one)[1])
        row = (before, number, one)
        gallery.db.execute("UPDATE entries SET seal = ? WHERE run = ? AND seq = ?", row)
    head, sealed = gallery.db.execute("SELECT head, record FROM runs WHERE number = ?", (number,)).fetchone()
    seal = sealing.head(before, sealed[SIZE:], head)
    gallery.db.execute("UPDATE runs SET tip = ?, seal = ? WHERE number = ?", (before, seal, number))


def _start(gallery: Gallery, run: str) -> bytes:
    (sealed,) = gallery.db.execute("SELECT record FROM runs WHERE run = ?", (run,)).fetchone()
    record = orjson.loads(sealed[SIZE:])
    origin, shared = record.get("origin", ""), record.get("shared", -1)
    while origin and shared < gallery.seqs(origin)[0]:
        (sealed,) = gallery.db.execute("SELECT record FROM runs WHERE run = ?", (origin,)).fetchone()
        origin = orjson.loads(sealed[SIZE:])["origin"]
    return chain_start(run, _entry(gallery, origin, shared)[2] if origin else b"")
