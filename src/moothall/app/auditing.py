"""Auditing runs: whether each is as it was written, and whether those that should be there are."""

from __future__ import annotations

import re

from moothall.errors import Refused
from moothall.runtime.journal import RunId
from moothall.runtime.ports import Audit, Store


async def audit(store: Store, run: RunId, digest: str = "") -> Audit:
    """Whether a run is as it was written; a digest that was kept elsewhere says where its journal ended then."""
    return await store.audit(run, _read(digest) if digest else None)


async def audit_all(store: Store) -> list[Audit]:
    """The same of every run that is there or should be, the newest first."""
    there = [one.record.run for one in await store.runs()]
    missing = [run for run in await store.anchored() if run not in set(there)]
    return [await store.audit(run) for run in (*there, *missing)]


def _read(digest: str) -> tuple[int, bytes]:
    if not re.fullmatch(r"\d+:[0-9a-f]{64}", digest):
        raise Refused(f"{digest!r} is no digest; `moot audit RUN --digest` prints one")
    seq, _, seal = digest.partition(":")
    return int(seq), bytes.fromhex(seal)
