"""Decides again every journal that a test made: what the machines of the tests decide, they decide twice.

Whatever a hall of this process keeps is noted, and read back as after a crash: it must be the same as it was live.
After the test the entries of each run are put in a row; a journal that is whole is decided again and compared. One that
another process wrote a part of is counted, and not compared.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from moothall.errors import MoothallError
from moothall.kernel.events import Named, Started
from moothall.runtime import hall as halls
from moothall.runtime.decide import Decision
from moothall.runtime.hall import Hall, OpenRun
from moothall.runtime.journal import Entry, Reader, Run, RunId, encode_entry, encode_event, encode_head
from moothall.runtime.ports import Clean, as_it_is
from moothall.runtime.rebuild import Difference, compared
from moothall.stores.plain import read, to_bytes

counted: Counter[str] = Counter()
"""What was decided again so far: journals, entries, and journals of which a part was written elsewhere."""


@dataclass
class Kept:
    """What halls of this process kept of one run."""

    run: Run
    effects: Mapping[str, Any]
    store: Any
    """Held on to, so that no other store of the test gets its number."""
    clean: Clean = as_it_is
    entries: dict[int, Entry] = field(default_factory=dict)


class Notes:
    """What the halls of one test kept, by store and run."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Any, RunId, float], Kept] = {}
        self._unlike: list[str] = []

    def take(self, hall: Hall, run: RunId, decision: Decision) -> None:
        """Note an entry that was committed."""
        known = hall.runs[run].run
        place = (_place(hall.store), run, known.record.began)
        kept = self._kept.setdefault(place, Kept(known, {}, hall.store))
        began = replace(known, record=kept.run.record)  # its limits may have been raised since
        kept.run, kept.effects, kept.clean = began, hall.effects(run), hall.clean
        kept.entries[decision.entry.seq] = decision.entry
        with suppress(MoothallError):  # what cannot be read at all is told to whoever opens the run
            again = read_back(Reader(known.machine, hall.effects(run)), decision)
            for name, live, read in zip(("event", "data"), _truths(decision), _truths(again), strict=True):
                is_named = type(read) is Named  # of a class that no row takes only the name counts
                if repr(live) != repr(read) and not is_named:
                    self._unlike.append(
                        f"run {run}, entry {decision.entry.seq}: its {name} {live!r} is read as {read!r}"
                    )

    def differences(self) -> list[str]:
        """Where a journal and its machine disagree."""
        found = [*self._unlike]
        for place, kept in self._kept.items():
            journal, run = self._journal(place), self._with_origin(place)
            if journal is None or run is None:
                counted["partly written elsewhere"] += 1
                continue
            counted["journals"] += 1
            counted["entries"] += len(journal)
            again = compared(run, Reader(run.machine, kept.effects), journal, kept.clean)
            if isinstance(again, Difference):
                found.append(f"run {kept.run.record.run}: {again}")
        return found

    def journals(self) -> list[list[Any]]:
        """The journals as JSON, in the order in which they began, without times."""
        runs = [[encode_entry(kept.entries[seq]) for seq in sorted(kept.entries)] for kept in self._kept.values()]
        return [[_timeless(entry) for entry in entries] for entries in runs]

    def _origin(self, place: tuple[Any, RunId, float]) -> tuple[Any, RunId, float] | None:
        origin = self._kept[place].run.record.origin
        return next((one for one in self._kept if one[:2] == (place[0], origin)), None)

    def _journal(self, place: tuple[Any, RunId, float]) -> list[Any] | None:
        """The journal of a run as JSON; None where it has gaps."""
        kept = self._kept[place]
        shared, above = kept.run.record.shared + 1, []
        if kept.run.record.origin:
            origin = self._origin(place)
            whole = self._journal(origin) if origin is not None else None
            if whole is None or len(whole) < shared:
                return None
            above = whole[:shared]
        if sorted(kept.entries) != list(range(shared, shared + len(kept.entries))) or not kept.entries:
            return None
        own = [read(to_bytes(encode_entry(kept.entries[seq]))) for seq in sorted(kept.entries)]
        return above + own

    def _with_origin(self, place: tuple[Any, RunId, float]) -> Run | None:
        run = self._kept[place].run
        if not run.record.origin:
            return run
        origin = self._origin(place)
        above = self._with_origin(origin) if origin is not None else None
        return Run(run.record, run.machine, Run(above.record, run.machine, above.origin)) if above else None


def _timeless(entry: Mapping[str, Any]) -> Any:
    effects = [{name: part for name, part in effect.items() if name != "due"} for effect in entry["effects"]]
    return {name: part for name, part in entry.items() if name != "at"} | {"effects": effects}


def read_back(reader: Reader, decision: Decision) -> Decision:
    """A decision as whoever opens the run after a crash reads it."""
    plain = read(to_bytes(encode_event(decision.entry.event)))
    is_first = isinstance(decision.entry.event, Started)  # its data are of the run's type, which the machine knows
    event = Started(reader.data(plain["data"])) if is_first else reader.event(plain)
    head = reader.head(read(to_bytes(encode_head(decision.head))))
    return Decision(head, replace(decision.entry, event=event))


def _truths(decision: Decision) -> tuple[Any, Any]:
    """What a guard or a move sees of a decision: the event, and the data that it left."""
    return decision.entry.event, decision.head.snapshot.data


def _place(store: Any) -> Any:
    """Where a store keeps its runs: its file, else itself; a test may have put something around it.

    The connection that writes is left alone: a thread of the store may be waiting with it for another writer.
    """
    while (inner := getattr(store, "_inner", getattr(store, "inner", None))) is not None:
        store = inner
    db = getattr(store, "_reading", None)
    return db.execute("PRAGMA database_list").fetchone()[2] if db is not None else id(store)


@contextmanager
def noted() -> Iterator[Notes]:
    """Note what halls keep meanwhile."""
    notes, keep = Notes(), halls._keep

    def keep_and_note(hall: Hall, known: OpenRun, decisions: Sequence[Decision]) -> None:
        for decision in decisions:
            notes.take(hall, known.record.run, decision)
        keep(hall, known, decisions)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(halls, "_keep", keep_and_note)
        yield notes


@contextmanager
def reloading() -> Iterator[None]:
    """Read the head of a run anew after every step, as a worker does that begins after a crash."""
    keep = halls._keep

    def keep_and_reload(hall: Hall, known: OpenRun, decisions: Sequence[Decision]) -> None:
        reader = known.reader()
        keep(hall, known, [read_back(reader, decision) for decision in decisions])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(halls, "_keep", keep_and_reload)
        yield
