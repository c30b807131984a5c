"""The machine that locks a store to a place: it reads the identity record, and writes it over the version it read."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from moothall.kernel.codec import encode
from moothall.kernel.effects import ReadRecords, WriteRecords
from moothall.kernel.events import Conflicted, Event, RecordsRead, RecordsWritten, SharedRecord
from moothall.kernel.frozen import Frozen
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State, emitting
from moothall.machines.arena.identity import COLLECTION, KEY, Locks

DECLARATION = "arena-identity"
MOST_CONFLICTS = 20


class Declaration(Frozen):
    """What a store is to be locked to, and whether it may be locked already."""

    locks: Locks
    anew: bool = False
    was: Locks | None = None


def keep_former(declaration: Declaration, read: RecordsRead) -> Declaration:
    """Keep what the store was locked to."""
    return replace(declaration, was=Locks(**dict(read.records[0].value)))


def is_locked(declaration: Declaration, read: RecordsRead) -> bool:
    """Whether the store is locked to something else, and may not be locked anew."""
    return bool(read.records) and not declaration.anew and dict(read.records[0].value) != encode(declaration.locks)


@emitting(WriteRecords)
def lock(declaration: Declaration, read: RecordsRead) -> WriteRecords:
    """Lock the store."""
    record = read.records[0] if read.records else SharedRecord(COLLECTION, KEY)
    return WriteRecords((replace(record, value=encode(declaration.locks)),))


def locks_of(declaration: Declaration, _: Event) -> Locks:
    """What the store is locked to now."""
    return declaration.was or declaration.locks


@cache
def declaration() -> Machine:
    """The machine that locks a store."""
    return Machine(
        DECLARATION,
        data=Declaration,
        kind="arena",
        states=[
            State("reading", enter=ReadRecords(COLLECTION, KEY)),
            State("writing"),
            Final("locked", result=locks_of),
            Final("refused", result=locks_of),
        ],
        moves=[
            On("reading", RecordsRead, to="refused", when=is_locked, do=keep_former),
            On("reading", RecordsRead, to="writing", do=lock),
            On("writing", RecordsWritten, to="locked"),
            On("writing", Conflicted, to="reading", at_most=MOST_CONFLICTS),
        ],
    )
