"""A worker says how it is: to whoever starts it again where it is not well, and to whoever counts.

GET /health     200 and JSON while the store can be reached, else 503; "draining" once it was told to stop
GET /metrics    the same as figures for Prometheus
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from time import monotonic

from moothall.errors import DefinitionError, MoothallError
from moothall.runtime.hall import Hall

PATIENCE = 3.0
"""How long the store may take to answer before it counts as out of reach, in seconds."""
FIGURES = {
    "moothall_worker_runs": "runs that are driven here now",
    "moothall_worker_store_up": "whether the store could be reached",
    "moothall_worker_store_seconds": "how long the store took to answer",
    "moothall_worker_draining": "whether the worker was told to stop",
}


@asynccontextmanager
async def serve_health(hall: Hall, stop: asyncio.Event, port: int | None) -> AsyncIterator[None]:
    """Answer at a port meanwhile; without one, nobody answers."""
    if port is None:
        yield
        return

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, ValueError, TimeoutError):
            line = await asyncio.wait_for(reader.readline(), PATIENCE)
            path = (*line.decode("ascii", "replace").split(), "", "")[1]
            writer.write(await _reply(hall, stop, path))
            await writer.drain()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    try:
        server = await asyncio.start_server(answer, "0.0.0.0", port)
    except OSError as error:
        raise DefinitionError(f"port {port} cannot be used: {error.strerror}; choose another") from error
    async with server:
        yield


async def _reply(hall: Hall, stop: asyncio.Event, path: str) -> bytes:
    if path not in ("/health", "/metrics"):
        return _http("404 Not Found", "text/plain", "there are /health and /metrics\n")
    began, why = monotonic(), ""
    try:
        await asyncio.wait_for(hall.store.owners(), PATIENCE)
    except (MoothallError, TimeoutError) as error:
        why = str(error) or "it does not answer in time"
    took, runs, is_draining = monotonic() - began, len(hall.crew.drives), stop.is_set()
    if path == "/metrics":
        values = dict(zip(FIGURES, (runs, int(not why), round(took, 6), int(is_draining)), strict=True))
        lines = [
            f"# HELP {name} {FIGURES[name]}\n# TYPE {name} gauge\n{name} {value}\n" for name, value in values.items()
        ]
        return _http("200 OK", "text/plain; version=0.0.4", "".join(lines))
    status = "draining" if is_draining else "ok"
    told = {"status": f"the store is out of reach: {why}" if why else status, "runs": runs}
    return _http("503 Service Unavailable" if why else "200 OK", "application/json", json.dumps(told) + "\n")


def _http(status: str, kind: str, body: str) -> bytes:
    content = body.encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    return head.encode() + content
