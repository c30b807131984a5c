"""The command that opens the page: `serve`. The door of the page is found by its name, as every command is."""

from __future__ import annotations

import asyncio
import json
import sys
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from importlib import import_module
from typing import Any

from moothall.app.config.links import token_of
from moothall.app.runs.context import login_name
from moothall.cli.main import DONE
from moothall.cli.options import (
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
from moothall.errors import DefinitionError, Refused

PORT = 8484
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def serve(parser: ArgumentParser) -> Handler:
    """Open the page."""
    parser.add_argument(
        "--host",
        type=nonempty_text,
        default="127.0.0.1",
        help="where to listen (default: %(default)s, this machine alone)",
    )
    parser.add_argument(
        "--port", type=whole_number(0), default=PORT, help="the port (default: %(default)s; 0 picks one)"
    )
    parser.add_argument(
        "--user",
        action="append",
        type=nonempty_text,
        metavar="NAME",
        help="a person who gets a link, and whose name the journal keeps; repeat it for several (default: your "
        "user name)",
    )
    parser.add_argument("--read-only", action="store_true", help="only show runs; drive, answer and start none")
    parser.add_argument("--json", action="store_true", help="print the address and the token as one line of JSON first")
    add_driving(parser, store=nonempty_text)

    def work(chosen: Namespace) -> int:
        if len(set(chosen.user or ())) != len(chosen.user or ()):
            raise Refused("two people have the same name; give each --user a name of its own")
        server, gate = _doors()
        people = tuple(gate.Person(name, token_of(name)) for name in chosen.user or (login_name(),))
        listening = server.bound(chosen.host, chosen.port)
        address = server.address_of(listening, chosen.host)
        with hall_of(chosen, notice, told_on_screen(chosen)) as hall, suppress(KeyboardInterrupt), own_exit_code():
            app = server.application(hall, people, host=chosen.host, read_only=chosen.read_only)
            asyncio.run(server.serve(app, listening, lambda: _tell_links(chosen, address, people)))
        tell(chosen, "stopped; what was under way goes on when the page is served again, or with `moot worker`")
        return DONE

    return work


def _doors() -> tuple[Any, Any]:
    try:
        return import_module("moothall.web.server"), import_module("moothall.web.gate")
    except ImportError as error:
        raise DefinitionError(f'the page needs more than is installed: {error}; pip install "moothall[web]"') from error


def _tell_links(chosen: Namespace, address: str, people: tuple[Any, ...]) -> None:
    """Print the links, each with the token in it."""
    links = [
        {"name": person.name, "link": f"{address}/?token={person.token}", "token": person.token} for person in people
    ]
    if chosen.json:
        first = {"url": address, "token": people[0].token, "link": links[0]["link"], "users": links}
        print(json.dumps(first), flush=True)
    else:
        for person in links:
            print(f"{person['name']}: {person['link']}" if len(links) > 1 else person["link"], flush=True)
        what = "looking at" if chosen.read_only else "working on"
        tell(
            chosen,
            f"open a link in a browser; the page is {what} the store; whoever has a link can use it. Ctrl-C stops",
        )
    if chosen.host not in LOOPBACK:
        print("notice: others on this network can reach the page, and it is not encrypted", file=sys.stderr)
