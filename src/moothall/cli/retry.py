"""The command that goes on with a run which ended badly: `retry`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from functools import partial

from moothall.app.runs.moothall import Moothall
from moothall.app.runs.outcome import Outcome
from moothall.app.runs.replay import machine_instead
from moothall.cli.options import MACHINE, Handler, add_driving, nonempty_text
from moothall.cli.run import budget_of, drive


def retry(parser: ArgumentParser) -> Handler:
    """Decide again what ended a run badly."""
    parser.add_argument("run", help="the id of the run: one that failed, reached a limit, is stuck or was set aside")
    parser.add_argument(
        "--machine",
        dest="machine_now",
        type=nonempty_text,
        metavar="MACHINE",
        help=f"its machine, if that was moved: {MACHINE}",
    )
    parser.add_argument("--budget", type=budget_of, help="the most to spend in all from now on, e.g. usd=1.50,calls=40")
    parser.add_argument("--as", dest="person", default="", metavar="NAME", help="who retries it, for the journal")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    add_driving(parser)

    def work(chosen: Namespace) -> int:
        return drive(chosen, chosen.run, partial(_retry, chosen))

    return work


async def _retry(chosen: Namespace, hall: Moothall) -> Outcome:
    source = chosen.machine_now
    machine = await machine_instead(hall.store, chosen.run, source) if source else None
    return await hall.retry(chosen.run, machine, budget=chosen.budget, by=chosen.person)
