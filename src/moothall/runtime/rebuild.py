"""A head made anew from the journal: every event decided again, without a single effect.

The journal is the truth of a run. Its first entry has the data that the run began with; each further entry has its
event, its cause and its time, and that is all that a decision needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moothall.errors import Broken
from moothall.runtime.decide import Happening, Run, decide, first
from moothall.runtime.journal import Head, Reader


def rebuilt(run: Run, reader: Reader, entries: Sequence[Mapping[str, Any]]) -> Head:
    """The head after these entries, if they are the journal of this run and say the same as its machine does."""
    if not entries or entries[0]["cause"] != "start":
        raise Broken(f"run {run.record.run}: its journal has no beginning")
    head = first(run, reader.data(entries[0]["event"]["data"])).head
    for entry in entries[1:]:
        happening = Happening(reader.event(entry["event"]), entry["cause"], entry["at"])
        decision = decide(run, head, happening)
        if list(decision.head.snapshot.active) != entry["to"] or decision.head.seq != entry["seq"]:
            raise Broken(f"run {run.record.run}: entry {entry['seq']} does not follow from the ones before it")
        head = decision.head
    return head
