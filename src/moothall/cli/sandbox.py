"""The command that runs another one as an agent's tool would: `sandbox`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from math import inf, nan

from moothall.app.sandbox import GIVES_UP, LEVELS, execute
from moothall.cli.main import DONE
from moothall.cli.options import Handler, nonempty_text
from moothall.cli.screen import harmless, notice, print_json


def sandbox(parser: ArgumentParser) -> Handler:
    """Run one command."""
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="the program and its arguments, after --")
    parser.add_argument(
        "--workspace", type=nonempty_text, metavar="DIR", help="the folder that it works in (default: the current one)"
    )
    parser.add_argument("--timeout", type=_seconds, metavar="SECONDS", help="how long it may take (default: 120)")
    parser.add_argument(
        "--sandbox", choices=LEVELS, default=LEVELS[0], help="what protects this machine (none: nothing does)"
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print exit_code, stdout, stderr, duration, level, killed and held as JSON; the exit code is then 0",
    )

    def work(chosen: Namespace) -> int:
        if chosen.sandbox == "none":
            notice(GIVES_UP)
        execution = execute(
            chosen.command, workspace=chosen.workspace or "", timeout=chosen.timeout, level=chosen.sandbox
        )
        if chosen.json:
            print_json(execution)
            return DONE
        for text, stream in ((execution.stdout, sys.stdout), (execution.stderr, sys.stderr)):
            stream.write(harmless(text) + "\n" * text.endswith("\n") if stream.isatty() else text)
            stream.flush()
        if note := execution.note():
            notice(note)
        if execution.killed:
            notice("the command was ended: it reached a limit")
        return execution.exit_code

    return work


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = nan
    if not 0 < number < inf:
        raise ArgumentTypeError(f"a number of seconds above 0, not {text!r}")
    return number
