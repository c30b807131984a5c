"""Small runs to keep: records, heads and entries as the runtime would make them."""

from typing import Any

from moothall.kernel.events import Named
from moothall.kernel.step import Snapshot
from moothall.runtime.journal import Entry, Head, Record


def record(run: str = "one") -> Record:
    """How a run began."""
    return Record(run, "walk", "d1935t", 1_700_000_000.25, "walk.py:WALK", "rehearsal", {"usd": 0.5})


def head(seq: int, data: Any = None, status: Any = "live") -> Head:
    """A head after this entry."""
    return Head(seq, Snapshot((f"state-{seq}",), data, status), spent={"calls": seq})


def entry(seq: int, data: Any = None) -> Entry:
    """The entry with this number."""
    return Entry(seq, 1_700_000_000.5 + seq, f"cause-{seq}", Named("walked", data), (), (f"state-{seq}",))
