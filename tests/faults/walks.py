"""Runs that somebody began and left, for workers to find, and how they stand."""

import asyncio
from collections import Counter
from collections.abc import Sequence

from moothall.app.kinds.source import find
from moothall.app.runs.context import SystemClock
from moothall.runtime.hall import Hall, begin, let_go
from moothall.runtime.journal import Record
from moothall.stores.sqlite import SqliteStore
from tests.faults.place import Place


async def left(place: Place, name: str, runs: Sequence[str]) -> None:
    """Begin runs of a machine of the place and let go of them."""
    source = f"{place.folder / 'machines.py'}:{name}"
    machine, store = find(source), SqliteStore(place.file, durability="normal")
    hall = Hall(store, SystemClock(), {})
    assert machine.data is not None
    for run in runs:
        record = Record(run, machine.name, machine.digest, hall.clock.now(), source)
        await begin(hall, record, machine, machine.data(run))
        await let_go(hall, run)
    store.close()


def statuses(place: Place) -> Counter[str]:
    """How many runs of the place are live, done, set aside for whatever reason."""
    store = SqliteStore(place.file, durability="normal")
    try:
        return Counter(one.status.partition(":")[0] for one in asyncio.run(store.runs()))
    finally:
        store.close()
