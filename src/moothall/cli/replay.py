"""The command that decides a journal again: `replay`."""

from __future__ import annotations

import asyncio
from argparse import ArgumentParser, Namespace

from moothall.app.config.access import opened
from moothall.app.report.amounts import format_count
from moothall.app.runs.replay import Replayed, machine_instead
from moothall.app.runs.replay import replay as replayed
from moothall.app.values import Store
from moothall.cli.main import CANNOT_TELL, DONE, FAILED
from moothall.cli.options import MACHINE, Handler, add_store, nonempty_text
from moothall.cli.screen import notice, print_json


def replay(parser: ArgumentParser) -> Handler:
    """Decide a journal again."""
    parser.add_argument("run", help="the run's id")
    parser.add_argument(
        "--machine", type=nonempty_text, help=f"replay with another machine than the run's own: {MACHINE}"
    )
    parser.add_argument("--json", action="store_true", help="print the comparison as JSON")
    add_store(parser)

    def work(chosen: Namespace) -> int:
        with opened(chosen.store) as store:
            found = asyncio.run(_replay(store, chosen))
        if found.is_changed:
            notice(f"machine {found.machine} is not defined as it was when the run began")
        if chosen.json:
            print_json(found)
        else:
            print(_format_replay(found))
        if found.difference is not None:
            return FAILED
        return DONE if found.forgotten is None else CANNOT_TELL

    return work


async def _replay(store: Store, chosen: Namespace) -> Replayed:
    machine = await machine_instead(store, chosen.run, chosen.machine) if chosen.machine else None
    return await replayed(store, chosen.run, machine)


def _format_replay(found: Replayed) -> str:
    difference = found.difference
    if difference is None and found.forgotten is not None:
        again = (
            f"the same again, {format_count(found.entries, 'entries', 'entry')}; then it " if found.entries else "it "
        )
        return (
            f"{found.run}: {again}cannot be decided again from entry {found.forgotten} on: texts were forgotten there "
            f"(moot audit {found.run} tells when and by whom)"
        )
    if difference is None:
        return f"{found.run}: the same again, {format_count(found.entries, 'entries', 'entry')}"
    return f"{found.run}: {difference}"
