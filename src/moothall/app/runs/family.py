"""Runs and those that they started."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from moothall.runtime.journal import RunId
from moothall.runtime.ports import Stored


def with_children(runs: Sequence[Stored], wanted: Collection[RunId]) -> list[Stored]:
    """Those of many runs, the newest first, that are wanted or that any of these started; the oldest first."""
    names, family = {*wanted}, []
    for stored in reversed(runs):  # whoever starts a run is older than that
        if stored.record.run in names or stored.record.parent in names:
            names.add(stored.record.run)
            family.append(stored)
    return family
