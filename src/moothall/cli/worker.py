"""The command that moves all runs of a store: `worker`."""

from __future__ import annotations

import asyncio
import signal
from argparse import ArgumentParser, Namespace
from contextlib import suppress

from moothall.app.runs.moothall import Moothall
from moothall.app.runs.news import StandingAside
from moothall.app.runs.worker import Duty
from moothall.app.runs.worker import work as serve_store
from moothall.cli.main import DONE
from moothall.cli.options import (
    Handler,
    add_driving,
    hall_of,
    nonempty_text,
    own_exit_code,
    seconds,
    tell,
    told_on_screen,
    whole_number,
)
from moothall.cli.screen import log, notice


def worker(parser: ArgumentParser) -> Handler:
    """Drive runs until stopped."""
    parser.add_argument(
        "--most", type=whole_number(1), default=100, metavar="N", help="the most runs to drive at once (default: 100)"
    )
    parser.add_argument(
        "--concurrency", dest="most", type=whole_number(1), default=100, metavar="N", help="the same as --most"
    )
    _add_scope(parser)
    parser.add_argument(
        "--drain",
        type=seconds,
        default=0.0,
        metavar="SECONDS",
        help="when told to stop, take up no more runs and wait so many seconds for those under way (default: 0)",
    )
    parser.add_argument(
        "--health", type=whole_number(1), metavar="PORT", help="serve /health and /metrics at this port"
    )
    parser.add_argument(
        "--engine",
        type=nonempty_text,
        metavar="ADDRESS",
        help="have the runs pumped by Temporal: temporal://HOST:PORT or temporal://HOST:PORT/NAMESPACE; "
        "`own` takes the store back",
    )
    parser.add_argument(
        "--until-idle",
        action="store_true",
        help="end when no run is due now or in the next half minute",
    )
    add_driving(parser, store=nonempty_text)

    def work(chosen: Namespace) -> int:
        logged = StandingAside(log)
        listeners = (told_on_screen(chosen),) if chosen.quiet else (told_on_screen(chosen), logged)
        with hall_of(chosen, notice, *listeners) as hall:
            until = "until nothing is left to do" if chosen.until_idle else "Ctrl-C stops cleanly"
            tell(chosen, f"working on {hall.address}, at most {chosen.most} runs at once; {until}")
            left = 0
            with suppress(KeyboardInterrupt), own_exit_code():
                left = asyncio.run(_work(hall, chosen))
            logged.wait_until_seen()
            tell(chosen, f"stopped; {_format_left(left)}")
        return DONE

    return work


def _add_scope(parser: ArgumentParser) -> None:
    """Which runs a worker is there for."""
    parser.add_argument(
        "--queue",
        type=nonempty_text,
        action="append",
        default=[],
        metavar="NAME",
        help="only runs of this queue; repeatable",
    )
    parser.add_argument(
        "--tenant",
        type=nonempty_text,
        action="append",
        default=[],
        metavar="NAME",
        help="only runs of this tenant; repeatable",
    )


async def _work(hall: Moothall, chosen: Namespace) -> int:
    """Work until a signal says stop, then let go of everything."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with hall:
        return await serve_store(hall.context(), stop, _duty(chosen))


def _duty(chosen: Namespace) -> Duty:
    queues, tenants = tuple(chosen.queue), tuple(chosen.tenant)
    return Duty(chosen.most, queues, tenants, chosen.until_idle, chosen.drain, chosen.health, chosen.engine or "")


def _format_left(count: int) -> str:
    if count == 0:
        return "no run was under way"
    return f"let go of {count} run{'s' if count > 1 else ''}, to go on elsewhere or later"
