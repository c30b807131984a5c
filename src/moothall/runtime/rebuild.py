"""A run decided anew from its journal: every event again, without a single effect.

The journal is the truth of a run. Its first entry has the data that the run began with; each further entry has its
event, its cause and its time, and that is all that a decision needs. So a head that is lost can be made anew, and a
journal can be compared with what its machine says today.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from moothall.errors import Broken
from moothall.kernel.frozen import Frozen
from moothall.runtime.decide import Decision, Happening, Run, decide, first
from moothall.runtime.journal import Head, Reader, encode_entry

Entries = Sequence[Mapping[str, Any]]


class Difference(Frozen):
    """The first place where a journal and its machine disagree: what stands there, and what would."""

    seq: int
    part: str
    kept: Any
    decided: Any


def rebuilt(run: Run, reader: Reader, entries: Entries) -> Head:
    """The head after these entries, if they are the journal of this run and say the same as its machine does."""
    for entry, decision in _decided_again(run, reader, entries):
        head = decision.head
        if entry["seq"] and (list(head.snapshot.active) != entry["to"] or head.seq != entry["seq"]):
            raise Broken(f"run {run.record.run}: entry {entry['seq']} does not follow from the ones before it")
    return head


def first_difference(run: Run, reader: Reader, entries: Entries) -> Difference | None:
    """Where a journal and its machine disagree for the first time; None where they never do."""
    for entry, decision in _decided_again(run, reader, entries):
        again = encode_entry(decision.entry)
        for part in dict.fromkeys((*entry, *again)):
            kept, decided = entry.get(part), again.get(part)
            if kept != decided:
                return Difference(entry["seq"], part, kept, decided)
    return None


def _decided_again(run: Run, reader: Reader, entries: Entries) -> Iterator[tuple[Mapping[str, Any], Decision]]:
    if not entries or entries[0]["cause"] != "start":
        raise Broken(f"run {run.record.run}: its journal has no beginning")
    decision = first(run, reader.data(entries[0]["event"]["data"]))
    yield entries[0], decision
    for entry in entries[1:]:
        happening = Happening(reader.event(entry["event"]), entry["cause"], entry["at"])
        decision = decide(run, decision.head, happening)
        yield entry, decision
