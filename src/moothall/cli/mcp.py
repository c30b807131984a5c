"""The command that serves machines to other people's agents: `mcp`. Its door is found by its name, as commands are."""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from moothall.app.runs.moothall import Moothall
from moothall.cli.main import DONE
from moothall.cli.options import (
    MACHINE,
    Handler,
    add_driving,
    hall_of,
    nonempty_text,
    own_exit_code,
    tell,
    told_on_screen,
    whole_number,
)
from moothall.cli.screen import notice
from moothall.errors import DefinitionError


def mcp(parser: ArgumentParser) -> Handler:
    """Serve machines over the Model Context Protocol."""
    parser.add_argument("machine", nargs="+", help=f"the machines that clients may start, NAME=MACHINE or {MACHINE}")
    parser.add_argument("--model", type=nonempty_text, help="the model of all agents that are not functions")
    parser.add_argument(
        "--http",
        type=whole_number(0),
        metavar="PORT",
        help="serve over HTTP at this port of this machine, not over stdio (0 picks a port)",
    )
    parser.add_argument(
        "--json", action="store_true", help="with --http: print the address and the token as JSON first"
    )
    add_driving(parser, store=nonempty_text)

    def work(chosen: Namespace) -> int:
        if find_spec("mcp") is None:
            raise DefinitionError("serving machines needs more than is installed: pip install 'moothall[mcp]'")
        if chosen.http is not None and find_spec("uvicorn") is None:
            raise DefinitionError("serving over HTTP needs more than is installed: pip install 'moothall[mcp,web]'")
        door = import_module("moothall.mcp.server")
        machines = door.sources_of(chosen.machine)
        with hall_of(chosen, notice, told_on_screen(chosen)) as hall, suppress(KeyboardInterrupt), own_exit_code():
            asyncio.run(_serve(chosen, door, hall, machines))
        return DONE

    return work


async def _serve(chosen: Namespace, door: Any, hall: Moothall, machines: Any) -> None:
    async with hall:
        server = door.server_of(hall, machines, chosen.model or "")
        if chosen.http is None:
            tell(chosen, f"serving {', '.join(machines)} over stdio")
            await server.run_stdio_async()
            return
        await _over_http(chosen, door, server)


async def _over_http(chosen: Namespace, door: Any, server: Any) -> None:
    """Serve on this machine alone, to whoever has the token that is printed."""
    import socket  # for HTTP alone

    import uvicorn

    token = secrets.token_urlsafe(24)
    listening = socket.create_server(("127.0.0.1", chosen.http))
    address = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    application = door.behind_token(server.streamable_http_app(), token)
    if chosen.json:
        print(json.dumps({"url": address, "token": token}), flush=True)
    else:
        print(f"{address}\nAuthorization: Bearer {token}", file=sys.stderr)
    runner = uvicorn.Server(uvicorn.Config(application, log_level="warning", lifespan="on"))
    await runner.serve(sockets=[listening])
