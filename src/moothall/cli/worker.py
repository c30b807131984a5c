"""The command that moves all runs of a store: `worker`."""

from __future__ import annotations

import asyncio
import signal
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from contextlib import suppress

from moothall.app.runs.moothall import Moothall
from moothall.app.runs.news import StandingAside
from moothall.app.runs.worker import work as serve_store
from moothall.cli.main import DONE
from moothall.cli.options import add_driving, hall_of, named, own_exit_code, tell, told_on_screen, whole_number
from moothall.cli.screen import log, notice

Work = Callable[[Namespace], int]


def worker(parser: ArgumentParser) -> Work:
    """Drive runs until stopped."""
    parser.add_argument(
        "--most", type=whole_number(1), default=100, metavar="N", help="the most runs to drive at once (default: 100)"
    )
    parser.add_argument(
        "--until-idle",
        action="store_true",
        help="end when nothing is due and nothing driven here wants anything in the next half minute",
    )
    add_driving(parser, store=named)

    def work(chosen: Namespace) -> int:
        logged = StandingAside(log)
        listeners = (told_on_screen(chosen),) if chosen.quiet else (told_on_screen(chosen), logged)
        with hall_of(chosen, notice, *listeners) as hall:
            until = "until nothing is left to do" if chosen.until_idle else "Ctrl-C stops cleanly"
            tell(chosen, f"working on {hall.address}, at most {chosen.most} runs at once; {until}")
            left = 0
            with suppress(KeyboardInterrupt), own_exit_code():
                left = asyncio.run(_worked(hall, chosen))
            logged.wait_until_seen()
            tell(chosen, f"stopped; {_left(left)}")
        return DONE

    return work


async def _worked(hall: Moothall, chosen: Namespace) -> int:
    """Work until a signal says stop, then let go of everything."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with hall:
        return await serve_store(hall.context(), stop, chosen.most, until_idle=chosen.until_idle)


def _left(count: int) -> str:
    if count == 0:
        return "no run was under way"
    return f"let go of {count} run{'s' if count > 1 else ''}, to go on elsewhere or later"
