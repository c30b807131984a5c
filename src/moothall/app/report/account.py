"""What a run has spent of its budget, and one run as it is shown with that.

A price that nobody told is unknown: then the journal says for which models.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from moothall.app.config.settings import cleaner
from moothall.app.report.amounts import Account
from moothall.app.report.measures import measure
from moothall.app.runs.view import Summary, ended_at, summary_of_run
from moothall.errors import MoothallError
from moothall.kernel.machine import Machine
from moothall.runtime.journal import RunId
from moothall.runtime.ports import Store, Stored


@dataclass(frozen=True, slots=True)
class Shown:
    """A run, what is left of its budget (None where nobody knows), its journal, and the models without a price."""

    summary: Summary
    left: Mapping[str, float | None]
    entries: tuple[Mapping[str, Any], ...]
    unpriced: tuple[str, ...] = ()


async def show(store: Store, run: RunId) -> Shown:
    """One run with its journal."""
    account, told = await account_of(store, run), await summary_of_run(store, run)
    return Shown(told, account.left(), cleaner()(tuple(await store.entries(run))), account.unpriced)


async def account_of(store: Store, run: RunId, machine: Machine | None = None) -> Account:
    """How far a run has come, and what it has spent of its budget; whoever has its machine at hand names it."""
    stored = await store.load(run)
    until = time.time() if stored.status == "live" else await ended_at(store, stored)
    seconds = until - stored.record.began if until is not None else None
    head = stored.head
    active, spent = (head["snapshot"]["active"], head["spent"]) if head else ((), {})
    account = Account(tuple(active), stored.seq, spent, head.get("limits", stored.record.limits), seconds)
    return replace(account, unpriced=await _unpriced(store, stored, machine)) if "usd" in account.limits else account


async def _unpriced(store: Store, stored: Stored, machine: Machine | None) -> tuple[str, ...]:
    """The models that were asked without a price; none where the journal cannot be read."""
    if not stored.head or not stored.head["spent"].get("calls"):
        return ()
    try:
        costs = (await measure(store, stored.record.run, machine=machine)).metrics.costs
    except MoothallError:
        return ()
    return tuple(model for model, bill in costs.by("model").items() if bill.unpriced)
