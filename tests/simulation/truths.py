"""What must be true of every run, whatever happened to it.

The journal is read by a fold of its own, with nothing but the kernel: which effects each step wanted, which one each
event ended, which were dropped because their state was left, and what all of it cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from typing import Any

from moothall.errors import Broken
from moothall.kernel.effects import CancelSend, Effect, Send, StartChild
from moothall.kernel.events import (
    Adopted,
    AttemptFailed,
    Began,
    Denied,
    Event,
    Exhausted,
    Forked,
    Mark,
    Repeated,
    Retried,
)
from moothall.kernel.interpreter import start, transition
from moothall.kernel.step import Snapshot, Step
from moothall.runtime.backoff import Again, retry
from moothall.runtime.children import child_id
from moothall.runtime.journal import WAITING, CancelChild, Head, Pending, Reader, Record, Run, RunId, TellParent
from moothall.runtime.ports import SET_ASIDE, Store, Stored
from moothall.runtime.rebuild import rebuilt
from tests.simulation.machines import FOUND, KINDS, OWN, RATINGS, SHARED
from tests.simulation.provider import Receiver

Plain = Mapping[str, Any]
EFFECTS: dict[str, type[Effect]] = {kind.kind: kind for kind in (*KINDS, *OWN)}
TIME = "seconds"


class Fold:
    """A journal, read event by event; of a fork with what it shares, under the budget of whom it was written."""

    def __init__(self, run: Run, reader: Reader, entries: list[Plain]) -> None:
        self.wrongs: list[str] = []
        self.open: dict[str, Pending] = {}
        self.spent: dict[str, float] = {}
        self.fetched: dict[str, Event] = {}
        self._line = {f"forked-{record.run}": record for record in _records(run)}
        self._machine, self._reader, self._shared = run.machine, reader, run.record.shared
        self._record = list(self._line.values())[-1]
        self._limits = self._record.limits
        self._paid: set[str] = set()
        """The causes of what a retry decides again."""
        self._before: dict[int, tuple[Snapshot, dict[str, Pending]]] = {}
        """Where the run stood before each entry."""
        step = start(run.machine, reader.data(entries[0]["event"]["data"]))
        assert isinstance(step, Step)
        self._snapshot = step.snapshot
        self._want(entries[0])
        self._entries = entries
        for entry in entries[1:]:
            self._before[entry["seq"]] = (self._snapshot, dict(self.open))
            self._read(entry, reader.event(entry["event"]))

    def _read(self, entry: Plain, event: Event) -> None:
        if isinstance(event, Mark):
            self._mark(entry, event)
        elif isinstance(event, Forked):
            self._part(entry)
        elif isinstance(event, Retried):
            self._go_back(entry, event)
        elif isinstance(event, Adopted):
            self._expect_nothing_else(entry)
        elif "ignored" in entry:
            self._ignore(entry, event)
        else:
            self._take(entry, event)

    def _expect_nothing_else(self, entry: Plain) -> None:
        """A note wants nothing and moves nothing."""
        if entry["effects"] or entry["from"] != entry["to"]:
            self.wrongs.append(f"entry {entry['seq']} is a note and does something")

    def _part(self, entry: Plain) -> None:
        """A fork has a budget of its own, leaves children that were called off to its origin, and begins all anew."""
        self._expect_nothing_else(entry)
        self._record = self._line[entry["cause"]]
        self._limits, self.spent = self._record.limits, {}
        self.open = {
            key: replace(pending, attempt=1, began=False, denied="?")
            for key, pending in self.open.items()
            if not isinstance(pending.effect, CancelChild | TellParent)
        }
        self._relieve(entry["at"])

    def _go_back(self, entry: Plain, event: Retried) -> None:
        """A retry takes back what was decided from some entry on, and nothing that was spent."""
        self._expect_nothing_else(entry)
        if _rounded(event.spent) != _rounded(self.spent):
            self.wrongs.append(f"entry {entry['seq']} says that {event.spent} was spent, and it was {self.spent}")
        if event.limits is not None:
            self._limits = event.limits
        if event.entry < entry["seq"]:
            undone = (self._entries[seq] for seq in range(event.entry, entry["seq"]))
            came = {other["cause"] for other in undone if other["event"]["name"] != Exhausted.name}
            self._paid = came - {event.key if event.again else ""}
            self._snapshot, before = self._before[event.entry]
            self.open = dict(
                self._revived(event, key, pending, f"{entry['seq']}.{number}")
                for number, (key, pending) in enumerate(before.items())
            )
        self._relieve(entry["at"])

    def _revived(self, event: Retried, key: str, pending: Pending, anew: str) -> tuple[str, Pending]:
        """An effect that is in flight again; a child that was called off with the end is begun anew."""
        is_child = isinstance(pending.effect, StartChild)
        if key == event.key and event.again and not is_child:
            return key, replace(pending, attempt=pending.attempt + 1, began=False)
        if key != event.key and is_child and pending.began:
            return anew, replace(pending, key=anew, began=False)
        return key, pending

    def _take(self, entry: Plain, event: Event) -> None:
        cause = entry["cause"]
        settled = self.open.pop(cause, None)
        if cause[0].isdigit() and settled is None:
            self.wrongs.append(f"entry {entry['seq']} ends {cause}, which is not wanted, and is taken")
        is_told = bool(self._record.origin) and getattr(event, "what", "") == FOUND
        is_own = entry["seq"] > self._shared and not is_told
        if is_own and settled is not None and event.name == "fetched" and settled.effect.repeats != "at-most-once":
            self.fetched[cause] = event
        step = transition(self._machine, self._snapshot, event, within=settled.owner if settled else None)
        assert isinstance(step, Step)
        bill = {**self._cost(settled), **getattr(event, "usage", {})}
        if cause in self._paid and any(bill.values()):
            self.wrongs.append(f"entry {entry['seq']} was paid for when it came, and is paid for again")
        self._charge(bill)
        self._drop(step, entry)
        self._want(entry)
        self._snapshot = _as_told(step.snapshot, entry)

    def _ignore(self, entry: Plain, event: Event) -> None:
        """An event that nobody waits for costs what it says; a child that was called off ends so, too."""
        settled = self.open.get(entry["cause"])
        self._charge(getattr(event, "usage", {}))
        if settled is not None and isinstance(settled.effect, CancelChild):
            del self.open[entry["cause"]]
            self._relieve(entry["at"])
            self._want(entry)
        elif settled is not None or entry["effects"]:
            self.wrongs.append(f"entry {entry['seq']} ends {entry['cause']}, which is wanted, and is ignored")

    def _relieve(self, at: float) -> None:
        """What a child has left over is there for what was denied."""
        for key, one in self.open.items():
            if one.denied:
                self.open[key] = replace(one, denied=self._lacks(one, at))

    def _mark(self, entry: Plain, event: Mark) -> None:
        """A mark changes one effect in flight; an attempt that went wrong costs what it cost."""
        key = entry["cause"].partition("-")[0]
        usage: Mapping[str, float] = getattr(event, "usage", {})
        if ("ignored" in entry) is (key in self.open) or entry["effects"] or entry["from"] != entry["to"]:
            self.wrongs.append(f"entry {entry['seq']} marks {key} in a wrong way")
        if key not in self.open:
            self._charge(usage)
        elif isinstance(event, Repeated) and not self.open[key].began:
            pass  # a fork did not want to do what its origin had done, and a person says that it may
        elif isinstance(event, AttemptFailed | Repeated):
            pending = self.open[key]
            self._charge({**self._cost(pending), **usage})
            again = retry(self._record.run, pending, event) if isinstance(event, AttemptFailed) else Again(0.0)
            assert isinstance(again, Again)
            denied = self._lacks(pending, entry["at"] + again.after)
            self.open[key] = replace(pending, attempt=pending.attempt + 1, denied=denied, began=False)
        elif isinstance(event, Began):
            self.open[key] = replace(self.open[key], began=True)
        elif isinstance(event, Denied):
            self.open[key] = replace(self.open[key], denied=event.resource)

    def _drop(self, step: Step, entry: Plain) -> None:
        """Forget what the step no longer wants, and charge for it; children are called off."""
        ends = entry.get("status", "live") != "live" and self._snapshot.status == "live"
        forgotten = {one.effect.id for one in step.effects if isinstance(one.effect, CancelSend)}
        for key, one in list(self.open.items()):
            cancelled = isinstance(one.effect, Send) and one.effect.id in forgotten
            if isinstance(one.effect, CancelChild) or not (ends or one.owner in step.left or cancelled):
                continue
            if isinstance(one.effect, StartChild) and not one.denied:
                del self.open[key]  # it stands behind the others from now on
                self.open[key] = Pending(key, CancelChild(one.effect.machine, ""), share=one.share if one.began else {})
            else:
                self._charge(self._cost(self.open.pop(key)))

    def _want(self, entry: Plain) -> None:
        for plain in entry["effects"]:
            wanted = self._reader.pending(plain)
            self.open[wanted.key] = wanted

    def _cost(self, pending: Pending | None) -> Mapping[str, float]:
        if pending is None or pending.denied:
            return {}
        if pending.share is not None:
            return pending.share
        return {**pending.effect.costs, **self._machine.costs.get(pending.effect.kind, {})}

    def _lacks(self, pending: Pending, at: float) -> str:
        """What the budget lacks for another attempt; "" where there is enough."""
        limits, cost = self._limits, self._cost(replace(pending, denied=""))
        if pending.effect.kind in WAITING:
            return ""
        if TIME in limits and at - self._record.began >= limits[TIME]:
            return TIME
        reserved = [self._cost(one) for key, one in self.open.items() if key != pending.key]
        for resource in limits.keys() - {TIME} if cost else ():
            used = self.spent.get(resource, 0)
            wanted = used + cost.get(resource, 0) + sum(one.get(resource, 0) for one in reserved)
            if used >= limits[resource] or wanted > limits[resource]:
                return resource
        return ""

    def _charge(self, bill: Mapping[str, float]) -> None:
        for resource, amount in bill.items():
            self.spent[resource] = self.spent.get(resource, 0) + amount


def _as_told(snapshot: Snapshot, entry: Plain) -> Snapshot:
    """A snapshot with the status that the journal gives it: the runtime may end a run that the kernel would not."""
    return replace(snapshot, status=entry.get("status", "live"), reason=entry.get("reason", ""))


def _records(run: Run | None) -> Iterator[Record]:
    """How a run began, the one that it was forked from, and so on."""
    while run is not None:
        yield run.record
        run = run.origin


def wrongs_of(run: Run, stored: Stored, entries: list[Plain], receiver: Receiver) -> list[str]:
    """What is wrong with a run that has come to rest."""
    reader = Reader(run.machine, EFFECTS)
    head, fold = reader.head(stored.head), Fold(run, reader, entries)
    found = [*_of_the_journal(entries), *fold.wrongs, *_of_the_head(run, reader, entries, head)]
    flying, by_journal = ({one.key: one.effect.kind for one in many} for many in (head.pending, fold.open.values()))
    if flying != by_journal:
        found.append(f"in flight are {flying}, by the journal {by_journal}")
    if _rounded(fold.spent) != _rounded(head.spent):
        found.append(f"spent is {head.spent}, by the journal {fold.spent}")
    if not stored.status.startswith(SET_ASIDE) and not head.rests():
        found.append(f"nobody performs {head.pending}")
    if head.snapshot.status == "live" and not head.pending:
        found.append(f"it is stuck in {head.snapshot.active}")
    found += _of_the_receiver(stored.record.run, fold, receiver)
    return [f"{stored.record.run}: {one}" for one in found]


def wrongs_of_child(record: Record, entries_of_parent: list[Plain]) -> list[str]:
    """What is wrong with how a child came to be."""
    keys = {one["key"] for entry in entries_of_parent for one in entry["effects"] if one["kind"] == StartChild.kind}
    retried = {str(entry["seq"]) for entry in entries_of_parent if entry["event"]["name"] == Retried.name}
    is_wanted = record.parent_key in keys or record.parent_key.partition(".")[0] in retried
    if not is_wanted or record.run != child_id(record.parent, record.parent_key):
        return [f"{record.run}: it is the child of an effect that nobody wanted"]
    return []


async def wrongs_of_records(truth: Store, found_done: Set[tuple[RunId, str]]) -> list[str]:
    """What is wrong with the record that all runs write: every update that a run took part in is in it, once.

    What came too late for its run is ignored, and nothing is written. What a fork shares was written by its origin,
    what a retry decides again when it came. What a person says was done may have been done by others, or not at all.
    """
    written: list[int] = []
    for stored in await truth.runs():
        record, versions = stored.record, set[int]()
        for entry in await truth.entries(record.run, record.shared + 1):
            is_told = "ignored" in entry or (record.run, entry["cause"]) in found_done
            if entry["event"]["name"] == "records.written" and not is_told:
                versions.update(entry["event"]["versions"])
        written += versions
    written.sort()
    kept = await truth.records(RATINGS, key=SHARED)
    games, version = (kept[0].value["games"], kept[0].version) if kept else (0, 0)
    if written == list(range(1, version + 1)) and games == version:
        return []
    return [f"the record has {games} games at version {version}, and the journals wrote {written}"]


def _of_the_journal(entries: list[Plain]) -> list[str]:
    found = []
    if [entry["seq"] for entry in entries] != list(range(len(entries))):
        found.append(f"its journal has gaps: {[entry['seq'] for entry in entries]}")
    notes = [entry for entry in entries if entry["event"]["name"] == Retried.name]
    undone = {seq for note in notes for seq in range(note["event"]["entry"], note["seq"])}
    causes = [entry["cause"] for entry in entries if entry["seq"] not in undone]
    if len({*causes}) != len(causes):
        found.append(f"a cause was taken twice: {causes}")
    return found


def _of_the_head(run: Run, reader: Reader, entries: list[Plain], head: Head) -> list[str]:
    try:
        same = rebuilt(run, reader, entries) == head
    except Broken as error:
        return [str(error)]
    return [] if same else ["the stored head is not the one that the journal gives"]


def _of_the_receiver(run: RunId, fold: Fold, receiver: Receiver) -> list[str]:
    return [
        f"{key} ended in {event}, and the receiver did {receiver.done.get(f'{run}.{key}')}"
        for key, event in fold.fetched.items()
        if not _is_what_was_done(receiver.done.get(f"{run}.{key}"), event)
    ]


def _is_what_was_done(done: Event | None, event: Event) -> bool:
    """Whether an event is what the receiver said; what a retry decides again was paid for when it came."""
    is_free = not any(getattr(event, "usage", {}).values())
    return done == event or (is_free and getattr(done, "what", None) == getattr(event, "what", ""))


def _rounded(spent: Mapping[str, float]) -> dict[str, float]:
    return {resource: round(amount, 6) for resource, amount in spent.items() if amount}
