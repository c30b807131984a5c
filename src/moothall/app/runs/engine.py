"""Who pumps the runs of a store: its own workers, or an engine. A store knows its one engine."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from functools import partial
from importlib.util import find_spec
from typing import Any

from moothall.errors import DefinitionError, Refused
from moothall.runtime.ports import EVERYTHING, Scope, Store
from moothall.stores.postgresql import PostgresStore

OWN = "own"
_TEMPORAL = re.compile(r"temporal://(?P<server>[^/\s:]+:\d+)(/(?P<namespace>[^/\s]+))?/?")
Pumping = Callable[..., Coroutine[Any, Any, None]]


async def pump_of(store: Store, engine: str, scope: Scope) -> Pumping | None:
    """What pumps the runs of a store for a worker that names this engine; None where the worker does it itself."""
    address = "" if engine in ("", OWN) else checked_engine(engine)
    if not isinstance(store, PostgresStore):
        if address:
            raise Refused("an engine pumps runs of a PostgreSQL store only; name one:  --store postgresql://…")
        return None
    if address and scope != EVERYTHING:
        raise Refused("with an engine a worker serves all queues and tenants; leave out --queue and --tenant")
    await _settle_engine(store, address, is_named=bool(engine))
    return _temporal(address, await store.name()) if address else None


def checked_engine(address: str) -> str:
    """The address of an engine in its usual form, or a refusal."""
    found = _TEMPORAL.fullmatch(address)
    if found is None:
        raise DefinitionError(f"{address!r} is not the address of an engine; write temporal://HOST:PORT or `{OWN}`")
    if find_spec("temporalio") is None:
        raise DefinitionError("Temporal needs its library: pip install 'moothall[temporal]'")
    return f"temporal://{found['server']}/{found['namespace'] or 'default'}"


async def _settle_engine(store: PostgresStore, address: str, *, is_named: bool) -> None:
    """Have the store pumped so, or refuse where another engine does that."""
    now = await store.engine()
    if address == now:
        return
    take_back = f"when no other worker runs, `moot worker --engine {OWN}` takes the store back"
    if now and not is_named:
        raise Refused(
            f"the runs of this store are pumped by {now}; start the worker with --engine {now}, or {take_back}"
        )
    if now and address:
        raise Refused(f"{now} pumps the runs of this store, not {address}; {take_back} first")
    if not await store.set_engine(address, now):
        await _settle_engine(store, address, is_named=is_named)


def _temporal(address: str, name: str) -> Pumping:
    from moothall.cluster.temporal import Engine, pump  # it loads the library

    server, _, namespace = address.removeprefix("temporal://").partition("/")
    return partial(pump, engine=Engine(server, namespace, f"moothall-{name}"))
