"""Keeps the configured mirror of records up to date, beside runs and never in their way.

While a `Moothall` is open, records are sent from time to time; when it closes, the rest is sent if that takes no
longer than a moment. What a mirror did not take stays in the outbox of the store, for whoever opens it next.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from moothall.app.config.settings import is_on_server, mirror_setting, store_file
from moothall.errors import DefinitionError, MoothallError
from moothall.runtime.mirror import Mirror, pump
from moothall.runtime.ports import Store
from moothall.stores.mirror import SqliteMirror
from moothall.stores.postgresql_mirror import PostgresMirror

EVERY = 1.0
"""So many seconds lie between two looks at the outbox."""
MOMENT = 1.0
"""How long the last records may take when everything else is done."""


def open_mirror() -> Mirror | None:
    """The mirror that is configured; None where there is none."""
    address = mirror_setting()
    if not address:
        return None
    if is_on_server(address):
        return PostgresMirror(address)
    file = store_file(address)
    if file is None:
        raise DefinitionError(f"{address!r} is not a mirror; write sqlite:FILE or postgresql://USER@HOST/DATABASE")
    return SqliteMirror(file)


class Mirroring:
    """Sends records to a mirror while a store is open."""

    def __init__(self, store: Store, mirror: Mirror) -> None:
        self._store, self._mirror = store, mirror
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while True:
            with suppress(MoothallError):  # it is out of reach or refuses; the outbox keeps what it misses
                await pump(self._store, self._mirror)
            await asyncio.sleep(EVERY)

    async def finish(self) -> str:
        """Send the rest, if that takes no longer than a moment; why it could not be sent.

        A mirror that hangs may also be slow to let itself be cancelled; nobody waits for that.
        """
        self._task.cancel()
        rest = asyncio.create_task(self._send_rest())
        await asyncio.wait({rest}, timeout=MOMENT)
        if rest.done():
            failure = rest.result()
        else:
            rest.cancel()
            failure = f"it took longer than {MOMENT:g} s"
        return f"the mirror is behind, and gets the rest later: {failure}" if failure else ""

    async def _send_rest(self) -> str:
        await asyncio.wait({self._task})
        try:
            await pump(self._store, self._mirror)
        except MoothallError as failure:
            return str(failure)
        return ""
