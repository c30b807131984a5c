"""The command that decides a journal again: `replay`."""

from __future__ import annotations

import asyncio
from argparse import ArgumentParser, Namespace
from collections.abc import Callable

from moothall.app.config.access import opened
from moothall.app.runs.replay import Replayed, machine_instead
from moothall.app.runs.replay import replay as replayed
from moothall.app.values import Store
from moothall.cli.main import DONE, FAILED
from moothall.cli.options import MACHINE, add_store, named
from moothall.cli.screen import counted, notice, print_json

Work = Callable[[Namespace], int]


def replay(parser: ArgumentParser) -> Work:
    """Decide a journal again."""
    parser.add_argument("run", help="the run's id")
    parser.add_argument("--machine", type=named, help=f"compare with another than the run's own: {MACHINE}")
    parser.add_argument("--json", action="store_true", help="print the comparison as JSON")
    add_store(parser)

    def work(chosen: Namespace) -> int:
        with opened(chosen.store) as store:
            found = asyncio.run(_replayed(store, chosen))
        if found.is_changed:
            notice(f"machine {found.machine} is not defined as it was when the run began")
        if chosen.json:
            print_json(found)
        else:
            print(_told(found))
        return DONE if found.difference is None else FAILED

    return work


async def _replayed(store: Store, chosen: Namespace) -> Replayed:
    machine = await machine_instead(store, chosen.run, chosen.machine) if chosen.machine else None
    return await replayed(store, chosen.run, machine)


def _told(found: Replayed) -> str:
    difference = found.difference
    if difference is None:
        return f"{found.run}: the same again, {counted(found.entries, 'entries', 'entry')}"
    return f"{found.run}: {difference}"
