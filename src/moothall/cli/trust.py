"""The command that makes a project's settings count: `trust`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from moothall.app.config.trust import all_trusted, forget, lines_of
from moothall.app.config.trust import trust as trust_file
from moothall.app.toolbox import pin_now, served_lines, set_server
from moothall.cli.main import DONE
from moothall.cli.options import Handler
from moothall.cli.screen import harmless, print_json


def trust(parser: ArgumentParser) -> Handler:
    """Trust a project's file, list what is trusted, or forget one."""
    parser.add_argument("file", nargs="?", help="moothall.toml, or its folder (default: the one of this project)")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--list", action="store_true", help="list the files that are trusted")
    instead.add_argument("--forget", action="store_true", help="stop trusting the file")
    instead.add_argument(
        "--server", metavar="NAME", help="show what a server of tools in your settings offers, and trust that"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")

    def work(chosen: Namespace) -> int:
        if chosen.list:
            return _list(chosen)
        if chosen.forget:
            file = forget(chosen.file)
            print_json({"forgotten": file}) if chosen.json else print(f"{harmless(file)} is trusted no longer")
            return DONE
        if chosen.server:
            return _trust_server(chosen)
        trusted, settings = trust_file(chosen.file)
        said = [*lines_of(settings), *(f"tools of {name}" for name in trusted.tools)]
        said += list(served_lines(pin_now(settings.servers)))
        if chosen.json:
            print_json({"trusted": trusted, "sets": said})
        else:
            file = harmless(trusted.file)
            opening = f"{file} is trusted as it is now" + (":" if said else "; it sets nothing")
            print("\n".join([opening, *(f"  {line}" for line in said)]))
        return DONE

    return work


def _trust_server(chosen: Namespace) -> int:
    offered = pin_now(set_server(chosen.server))
    lines = list(served_lines(offered))
    print_json(offered) if chosen.json else print("\n".join(lines or [f"{chosen.server} offers nothing"]))
    return DONE


def _list(chosen: Namespace) -> int:
    found = all_trusted()
    if chosen.json:
        print_json(found)
    for project in () if chosen.json else found:
        print(harmless(project.file) + (f"  not used: {project.unused}" if project.unused else ""))
    return DONE
