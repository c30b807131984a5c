"""Forgetting the texts of a run, or of a person: out of journals, records, mirrors and the saves of workspaces.

A run is forgotten together with those that it started and those that were forked from it, which have its texts too.
Only what is over can be forgotten: nothing could go on from placeholders. The chain of every journal stays whole, and
an audit says what was forgotten, when and by whom.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from moothall.app.kinds.kind import KINDS
from moothall.app.runs.mirror import open_mirror
from moothall.app.runs.saves import drop_saves
from moothall.errors import EffectFailed, Refused
from moothall.kernel.frozen import Frozen
from moothall.runtime.journal import RunId
from moothall.runtime.mirror import pump
from moothall.runtime.ports import SET_ASIDE, Redaction, Store, Stored
from moothall.runtime.redaction import (
    Note,
    Words,
    forget_entry,
    forget_head,
    forget_texts,
    forget_words,
    forget_words_in_head,
    records_written,
    words_of,
)

LONGEST = 200
"""The most letters that the name of whoever forgets may have."""
Runs = Mapping[RunId, Stored]


class ForgottenTexts(Frozen):
    """What was forgotten, or would be: runs, entries, records and saves; and what has to be done elsewhere."""

    runs: tuple[RunId, ...]
    entries: int
    records: int
    saves: int
    is_done: bool
    left: tuple[str, ...] = ()
    """What could not be done, and what to do about it."""


class _Plan(Frozen):
    """What takes the place of what is forgotten."""

    redactions: tuple[Redaction, ...]
    saved: tuple[Stored, ...] = ()
    """The runs whose saves go with their texts."""


async def forget_run(store: Store, run: RunId, *, by: str, really: bool) -> ForgottenTexts:
    """Forget the texts of a run, of those that it started and of those that were forked from it."""
    record = (await store.load(run)).record
    if record.parent:
        raise Refused(f"run {run} was started by run {record.parent}, which has its texts: moot forget {record.parent}")
    if record.origin:
        raise Refused(
            f"run {run} was forked from run {record.origin} and shares entries with it; forget both at once: "
            f"moot forget {record.origin}"
        )
    runs = {stored.record.run: stored for stored in await store.runs()}
    family = [name for name in runs if run in _lineage(runs, name)]
    _require_ends([runs[name] for name in family], run)
    note = _note(by, "run")
    redactions = [await _forget_all(store, runs[name], note) for name in family]
    families = tuple(runs[name] for name in family)
    return await _carry_out(store, _Plan(tuple(redactions), families), really=really)


async def forget_person(store: Store, name: str, *, by: str, really: bool) -> ForgottenTexts:
    """Forget what a person answered or said in any run, and the person's name there."""
    runs = {stored.record.run: stored for stored in await store.runs()}
    families: dict[RunId, list[RunId]] = {}
    for run in runs:
        families.setdefault(_lineage(runs, run)[-1], []).append(run)
    redactions: list[Redaction] = []
    for family in families.values():
        journals = {run: await store.entries(run) for run in family}
        words = words_of(name, (entry for entries in journals.values() for entry in entries))
        if words is not None:
            _require_ends([runs[run] for run in family])
            redactions += [_forget_words(runs[run], journals[run], words, _note(by, "person")) for run in family]
    if not redactions:
        raise Refused(
            f"{name!r} has answered or said nothing in this store; give the name that was given with --as. "
            "The texts of a whole run go with `moot forget RUN`"
        )
    touched = tuple(redaction for redaction in redactions if redaction.entries)
    return await _carry_out(store, _Plan(touched), really=really)


def _note(by: str, what: Literal["run", "person"]) -> Note:
    return Note(round(time.time(), 3), by[:LONGEST], what)


def _lineage(runs: Runs, run: RunId) -> list[RunId]:
    """A run, the one that started it or that it was forked from, and so on."""
    line = [run]
    while (stored := runs.get(line[-1])) is not None:
        above = stored.record.parent or stored.record.origin
        if not above or above in line or above not in runs:
            break
        line.append(above)
    return line


def _require_ends(family: Iterable[Stored], of: RunId = "") -> None:
    """Refuse to forget what is not over; a run of another name says why it is in the way of the one that was named."""
    for stored in family:
        record = stored.record
        run = record.run
        if of and run != of:
            above = f"forked from run {record.origin}" if record.origin else f"started by run {record.parent}"
            kin = f", which was {above} and is forgotten with it,"
        else:
            kin = ""
        if not stored.head:
            raise Refused(
                f"run {run}{kin} is damaged, so its texts cannot be replaced; delete it, or see moot audit {run}"
            )
        if stored.status == "live" or stored.status.startswith(SET_ASIDE) or stored.head["pending"]:
            raise Refused(f"run {run}{kin} is not over and needs its texts; let it end, or end it:  moot cancel {run}")


async def _forget_all(store: Store, stored: Stored, note: Note) -> Redaction:
    run = stored.record.run
    entries = await store.entries(run, stored.record.shared + 1)
    records = [
        type(record)(record.collection, record.key, forget_texts(record.value), record.version)
        for record in records_written(entries)
    ]
    new = {entry["seq"]: forget_entry(entry, note) for entry in entries}
    return Redaction(run, new, forget_head(stored.head, note), tuple(records))


def _forget_words(stored: Stored, entries: list[Mapping[str, Any]], words: Words, note: Note) -> Redaction:
    own = [entry for entry in entries if entry["seq"] > stored.record.shared]
    new = {entry["seq"]: changed for entry in own if (changed := forget_words(entry, words, note)) != entry}
    change = words.change()
    records = [
        type(record)(record.collection, record.key, changed, record.version)
        for record in records_written(own)
        if (changed := change(record.value)) != record.value
    ]
    return Redaction(stored.record.run, new, forget_words_in_head(stored.head, words, note), tuple(records))


async def _require_no_rule(store: Store, redactions: Iterable[Redaction]) -> None:
    """Refuse to take texts out of a record by which the whole store is ruled, while it is the one that counts."""
    anew = {collection: command for listing in KINDS.values() for collection, command in listing.rules.items()}
    for redaction in redactions:
        for record in redaction.records:
            if record.collection in anew and any(
                kept.version == record.version for kept in await store.records(record.collection, key=record.key)
            ):
                raise Refused(
                    f"run {redaction.run} wrote the {record.collection} of this store, which still counts; write "
                    f"it anew, then forget the run:  {anew[record.collection]}"
                )


async def _carry_out(store: Store, plan: _Plan, *, really: bool) -> ForgottenTexts:
    await _require_no_rule(store, plan.redactions)
    saves = sum([await drop_saves(stored, really=really) for stored in plan.saved])
    runs = tuple(redaction.run for redaction in plan.redactions)
    entries = sum(len(redaction.entries) for redaction in plan.redactions)
    records = sum(len(redaction.records) for redaction in plan.redactions)
    left: list[str] = []
    if really:
        for redaction in plan.redactions:
            await store.redact(redaction)
        left = [why for why in (await store.scrub(), await _mirror_records(store, records)) if why]
    return ForgottenTexts(runs, entries, records, saves, really, tuple(left))


async def _mirror_records(store: Store, records: int) -> str:
    """Send the mirror what stands in its copies from now on; why that could not be done."""
    mirror = open_mirror() if records else None
    if mirror is None:
        return ""
    try:
        await pump(store, mirror)
    except EffectFailed as failure:
        return f"the mirror still has the old records, and gets the new ones when it can be reached: {failure}"
    return ""
