"""Auditing runs: whether each is as it was written, and whether those that should be there are."""

from __future__ import annotations

from moothall.runtime.ports import Audit, Store


async def audit_all(store: Store) -> list[Audit]:
    """The verdicts on every run that is there or should be, the newest first."""
    there = [stored.record.run for stored in await store.runs()]
    missing = [run for run in await store.anchored() if run not in set(there)]
    return [await store.audit(run) for run in (*there, *missing)]
