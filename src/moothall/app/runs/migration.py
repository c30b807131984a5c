"""Moving all runs of a store to another, and looking at each in both places.

The store that they come from is left as it was, and must not be worked on meanwhile or afterwards. Who is interrupted
begins again: what has arrived is looked at and not sent twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from moothall.errors import Broken, Refused
from moothall.kernel.frozen import Frozen
from moothall.runtime.holder import is_gone
from moothall.runtime.journal import RunId
from moothall.runtime.ports import LEASE, Store, Stored
from moothall.stores.luggage import Portable
from moothall.stores.postgresql import PostgresStore
from moothall.stores.sqlite import SqliteStore


class Moved(Frozen):
    """What was moved, and what was compared."""

    runs: int
    entries: int
    records: int
    intact: int
    """How many runs an audit finds intact in their new place."""


async def migrate(source: Store, target: Store, tell: Callable[[RunId], None] = lambda run: None) -> Moved:
    """Move everything, and compare it row by row, entry by entry and audit by audit."""
    origin, goal = _portable(source), _portable(target)
    stored = list(reversed(await source.runs()))
    _require_rest(stored)
    await _require_room(source, target)
    records = await origin.pack_records()
    await goal.unpack_records(records)
    there = {known.record.run for known in await target.runs()}
    entries = intact = 0
    for known in stored:
        run = known.record.run
        packed = await origin.pack_run(run)
        if run not in there:
            await goal.unpack_run(packed)
        if await goal.pack_run(run) != packed:
            raise Broken(f"run {run} did not arrive as it was; the store that it came from is as it was")
        entries += await _compare(source, target, run)
        intact += (await target.audit(run)).verdict == "intact"
        tell(run)
    if await goal.pack_records() != records:
        raise Broken("the records did not arrive as they were; the store that they came from is as it was")
    return Moved(len(stored), entries, len(records.records), intact)


async def _compare(source: Store, target: Store, run: RunId) -> int:
    """Look at a run in both places; how many entries it has."""
    before, after = await source.entries(run), await target.entries(run)
    for old, new in zip(before, after, strict=False):
        if old != new:
            raise Broken(f"run {run}: entry {old['seq']} did not arrive as it was")
    first, second = await source.audit(run), await target.audit(run)
    if len(before) != len(after) or (first.verdict, first.digest) != (second.verdict, second.digest):
        raise Broken(f"run {run}: an audit said {first.verdict!r} before and says {second.verdict!r} now: {second.why}")
    return len(after)


def _require_rest(runs: list[Stored]) -> None:
    now = time.time()
    for known in runs:
        lease = known.lease
        if lease.owner and not is_gone(lease.owner) and now <= lease.until <= now + 2 * LEASE:
            raise Refused(f"{lease.owner} works on run {known.record.run}; stop all workers of this store first")


async def _require_room(source: Store, target: Store) -> None:
    """Whether the runs can go there: nothing is there yet, or only what came from here."""
    ours = {known.record.run for known in await source.runs()}
    others = [known.record.run for known in await target.runs() if known.record.run not in ours]
    if others:
        raise Refused(f"the store that they should go to has runs of its own, such as {others[0]}; name an empty one")


def _portable(store: Store) -> Portable:
    if not isinstance(store, SqliteStore | PostgresStore):
        raise Refused("a store in memory has nothing to move, and keeps nothing that is moved there")
    return store
