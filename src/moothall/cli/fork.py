"""The command that lets a run go another way from an earlier entry on: `fork`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from functools import partial

from moothall.app.runs.begin import new_id
from moothall.app.runs.fork import Fork, Repeats, format_performed, go_own_way, performed_since
from moothall.app.runs.moothall import Moothall
from moothall.app.runs.outcome import Outcome
from moothall.app.runs.replay import machine_instead
from moothall.app.values import Origin
from moothall.cli.keyboard import discard_typed, is_at_terminal, read_answer
from moothall.cli.options import MACHINE, Handler, add_driving, add_run_id, nonempty_text, whole_number
from moothall.cli.run import budget_of, drive
from moothall.cli.screen import notice


def fork(parser: ArgumentParser) -> Handler:
    """Go another way from an entry on."""
    parser.add_argument("run", help="the id of the run to fork")
    parser.add_argument(
        "--at", type=whole_number(0), metavar="N", help="the last entry to share with it (default: its latest)"
    )
    add_run_id(parser, "fork")
    parser.add_argument("--machine", type=nonempty_text, help=f"the machine that the fork goes on with: {MACHINE}")
    parser.add_argument(
        "--repeat",
        nargs="?",
        choices=("agents", "all"),
        const="all",
        help="repeat without asking what the run did after that entry: all of it, or only what agents did",
    )
    parser.add_argument("--budget", type=budget_of, help="the most to spend (default: what the run's budget has left)")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    add_driving(parser)

    def work(chosen: Namespace) -> int:
        return drive(chosen, chosen.run_id or "", partial(_fork, chosen))

    return work


async def _fork(chosen: Namespace, hall: Moothall) -> Outcome:
    context = hall.context()
    machine = await machine_instead(hall.store, chosen.run, chosen.machine) if chosen.machine else None
    origin = await performed_since(context, chosen.run, chosen.at, machine)
    fork = Fork(chosen.run_id or new_id(origin.machine), await _may_repeat(chosen, origin), chosen.budget)
    return await go_own_way(context, origin, fork)


async def _may_repeat(chosen: Namespace, origin: Origin) -> Repeats:
    """Whether what the run has done since may be done again: as was said, or as the person at the terminal says."""
    if not origin.performed:
        return False
    notice(
        "\n".join([f"run {chosen.run} has done this after entry {origin.shared}:", *format_performed(origin.performed)])
    )
    if chosen.repeat:
        return True if chosen.repeat == "all" else "agents"
    if chosen.json or not is_at_terminal():
        notice("where the fork comes to one of these, it asks you how it ended; with --repeat it does it again")
        return False
    discard_typed()
    said = await read_answer("may the fork do it again where it comes to it? [y/N] ")
    return said.lower() in ("y", "yes")
