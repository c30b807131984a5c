"""What must be true of every run, whatever happened to it.

The journal is read by a fold of its own, with nothing but the kernel: which effects each step wanted, which one each
event ended, which were dropped because their state was left, and what all of it cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from moothall.errors import Broken
from moothall.kernel.effects import CancelSend, Effect, Send, StartChild
from moothall.kernel.events import Began, Denied, Event, Faltered, Mark, Repeated
from moothall.kernel.interpreter import start, transition
from moothall.kernel.machine import Machine
from moothall.kernel.step import Snapshot, Step
from moothall.runtime.backoff import Again, retry
from moothall.runtime.children import child_id
from moothall.runtime.decide import Run
from moothall.runtime.journal import CancelChild, Head, Pending, Reader, Record, RunId
from moothall.runtime.ports import SET_ASIDE, Store, Stored
from moothall.runtime.rebuild import rebuilt
from tests.simulation.machines import KINDS, RATINGS, SHARED
from tests.simulation.provider import Receiver

Plain = Mapping[str, Any]
EFFECTS: dict[str, type[Effect]] = {kind.kind: kind for kind in KINDS}
TIME = "seconds"


class Fold:
    """A journal, read event by event."""

    def __init__(self, run: Run, reader: Reader, entries: list[Plain]) -> None:
        self.wrongs: list[str] = []
        self.open: dict[str, Pending] = {}
        self.spent: dict[str, float] = {}
        self.fetched: dict[str, Event] = {}
        self._machine, self._record, self._reader = run.machine, run.record, reader
        step = start(run.machine, reader.data(entries[0]["event"]["data"]))
        assert isinstance(step, Step)
        self._snapshot = step.snapshot
        self._want(entries[0])
        for entry in entries[1:]:
            self._read(entry, reader.event(entry["event"]))

    def _read(self, entry: Plain, event: Event) -> None:
        if isinstance(event, Mark):
            self._mark(entry, event)
        elif "ignored" in entry:
            self._ignore(entry, event)
        else:
            self._take(entry, event)

    def _take(self, entry: Plain, event: Event) -> None:
        cause = entry["cause"]
        settled = self.open.pop(cause, None)
        if cause[0].isdigit() and settled is None:
            self.wrongs.append(f"entry {entry['seq']} ends {cause}, which is not wanted, and is taken")
        if settled is not None and event.name == "fetched" and settled.effect.repeats != "at-most-once":
            self.fetched[cause] = event
        step = transition(self._machine, self._snapshot, event, within=settled.owner if settled else None)
        assert isinstance(step, Step)
        self._charge({**self._cost(settled), **getattr(event, "usage", {})})
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
        elif isinstance(event, Faltered | Repeated):
            pending = self.open[key]
            self._charge({**self._cost(pending), **usage})
            again = retry(self._record.run, pending, event) if isinstance(event, Faltered) else Again(0.0)
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
        limits, cost = self._record.limits, self._cost(replace(pending, denied=""))
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


def wrongs_of(machine: Machine, stored: Stored, entries: list[Plain], receiver: Receiver) -> list[str]:
    """What is wrong with a run that has come to rest."""
    run, reader = Run(stored.record, machine), Reader(machine, EFFECTS)
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
    if record.parent_key not in keys or record.run != child_id(record.parent, record.parent_key):
        return [f"{record.run}: it is the child of an effect that nobody wanted"]
    return []


async def wrongs_of_records(truth: Store) -> list[str]:
    """What is wrong with the record that all runs write: every update that a run took part in is in it, once.

    What came too late for its run is ignored, and nothing is written.
    """
    journals = [await truth.entries(stored.record.run) for stored in await truth.runs()]
    events = [entry["event"] for entries in journals for entry in entries if "ignored" not in entry]
    written = sorted(version for event in events if event["name"] == "records.written" for version in event["versions"])
    kept = await truth.records(RATINGS, key=SHARED)
    games, version = (kept[0].value["games"], kept[0].version) if kept else (0, 0)
    if written == list(range(1, version + 1)) and games == version:
        return []
    return [f"the record has {games} games at version {version}, and the journals wrote {written}"]


def _of_the_journal(entries: list[Plain]) -> list[str]:
    found = []
    if [entry["seq"] for entry in entries] != list(range(len(entries))):
        found.append(f"its journal has gaps: {[entry['seq'] for entry in entries]}")
    causes = [entry["cause"] for entry in entries]
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
        if receiver.done.get(f"{run}.{key}") != event
    ]


def _rounded(spent: Mapping[str, float]) -> dict[str, float]:
    return {resource: round(amount, 6) for resource, amount in spent.items() if amount}
