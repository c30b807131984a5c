"""The server: the application with its gate, the files of the page, and `serve`, which `moot serve` calls."""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from moothall import __version__
from moothall.app.runs.moothall import Moothall
from moothall.errors import Conflict, DefinitionError, MoothallError, Refused
from moothall.web.gate import PACE, App, Gate, Pace, Person, Receive, Scope, Send
from moothall.web.host import Hosting
from moothall.web.routes import frame, plain, router

TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}
PAGES = ("", "inbox", "runs", "run", "start", "check", "metrics", "compare")
"""Where the page can be opened; it finds its view by the address."""
BUFFER = 128 * 1024
"""Bytes that the system keeps for a client that does not read."""
PATIENCE = 2
"""Seconds that a server that stops waits for requests under way."""


def application(
    hall: Moothall,
    people: tuple[Person, ...],
    *,
    host: str = "127.0.0.1",
    read_only: bool = False,
    pace: Pace = PACE,
) -> Held:
    """The whole application over one Moothall, which it opens and closes."""
    held = Hosting(hall, frame, read_only=read_only, version=__version__)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with hall:
            await held.open()
            try:
                yield
            finally:
                await held.close()

    app = FastAPI(title="Moothall", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.hosting = held
    app.include_router(router)
    app.add_exception_handler(MoothallError, _tell)
    app.add_exception_handler(RequestValidationError, _misfit)
    app.add_exception_handler(HTTPException, _stop)
    _add_page(app)
    gate = Gate(_rendered(app), people, host=host, read_only=read_only, pace=pace)
    return Held(gate, held)


class Held:
    """The application, and what is behind its routes."""

    def __init__(self, gate: Gate, hosting: Hosting) -> None:
        self._gate, self.hosting = gate, hosting

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await self._gate(scope, receive, send)


def _rendered(app: FastAPI) -> App:
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await app(scope, receive, send)

    return answer


async def _tell(request: Request, error: Exception) -> Response:
    """A sentence of ours; whose fault it is decides the number."""
    text = str(error)
    missing = isinstance(error, Refused) and ("there is no run" in text or " has no entry " in text)
    status = 404 if missing else 422 if isinstance(error, DefinitionError) else 409
    return plain({"error": text, "conflict": isinstance(error, Conflict)}, status)


async def _misfit(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = [f"{'.'.join(map(str, problem['loc'][1:])) or 'the body'}: {problem['msg']}" for problem in error.errors()]
    return plain({"error": "; ".join(found)}, 422)


async def _stop(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return plain({"error": str(error.detail)}, error.status_code)


def _add_page(app: FastAPI) -> None:
    """The files of the page, by name: nothing else of the disk is served."""
    static = files("moothall.web").joinpath("static")
    index = static.joinpath("index.html").read_bytes()
    shelf = {
        f"{prefix}{file.name}": file
        for prefix, folder in (("", static), ("vendor/", static.joinpath("vendor")))
        for file in folder.iterdir()
        if file.is_file() and file.name.endswith((".js", ".css", ".svg"))
    }

    async def page(request: Request) -> Response:
        return Response(index, 200, {"cache-control": "no-store"}, "text/html")

    async def asset(request: Request, name: str) -> Response:
        file = shelf.get(name)
        if file is None:
            return plain({"error": f"there is no file {name[:100]}"}, 404)
        kind = TYPES["." + name.rpartition(".")[2]]
        return Response(file.read_bytes(), 200, {"cache-control": "no-cache"}, kind)

    for name in PAGES:
        app.add_api_route(f"/{name}", page, methods=["GET"], include_in_schema=False)
    app.add_api_route("/run/{run}", page, methods=["GET"], include_in_schema=False)
    app.add_api_route("/static/{name:path}", asset, methods=["GET"], include_in_schema=False)


def bound(host: str, port: int) -> socket.socket:
    """A socket that is listened to; port 0 picks one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
    try:
        found.bind((host, port))
    except OSError as error:
        found.close()
        remedy = "choose another with --port, or --port 0"
        raise Refused(f"{host}:{port} cannot be listened to: {error.strerror or error}; {remedy}") from error
    return found


def address_of(listening: socket.socket, host: str) -> str:
    """The address of a page that is served."""
    name = "127.0.0.1" if host in ("0.0.0.0", "") else "[::1]" if host == "::" else f"[{host}]" if ":" in host else host
    return f"http://{name}:{listening.getsockname()[1]}"


async def serve(app: Held, listening: socket.socket, ready: Callable[[], None]) -> None:
    """Answer requests until a signal says stop."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=PATIENCE,
        ws="none",
    )
    await _Server(config, app.hosting, ready).serve(sockets=[listening])


class _Server(uvicorn.Server):
    """Tells when it is ready, and sends home whoever watches as soon as it is to stop, so that nobody is waited for."""

    def __init__(self, config: uvicorn.Config, hosting: Hosting, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._hosting, self._ready = hosting, ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        if self.started:
            self._ready()

    def handle_exit(self, sig: int, frame: Any) -> None:
        """A signal came."""
        super().handle_exit(sig, frame)
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # requests that are cut off now are no news
        self._hosting.release()
