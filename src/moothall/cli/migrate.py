"""The command that moves all runs of a store to another: `migrate`."""

from __future__ import annotations

import asyncio
from argparse import ArgumentParser, Namespace

from moothall.app.config.access import opened
from moothall.app.report.amounts import format_count
from moothall.app.runs.migration import Moved
from moothall.app.runs.migration import migrate as move_runs
from moothall.cli.main import DONE
from moothall.cli.options import Handler, add_quiet, existing_store, nonempty_text, tell
from moothall.cli.screen import print_json


def migrate(parser: ArgumentParser) -> Handler:
    """Move all runs of a store to another."""
    parser.add_argument(
        "source", type=existing_store, metavar="FROM", help="the store that has the runs; it stays as it is"
    )
    parser.add_argument(
        "target", type=nonempty_text, metavar="TO", help="the store that gets them: an empty one, or a new one"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_quiet(parser)

    def work(chosen: Namespace) -> int:
        with opened(chosen.source) as source, opened(chosen.target) as target:
            moved = asyncio.run(move_runs(source, target, lambda run: tell(chosen, run)))
        if chosen.json:
            print_json(moved)
        else:
            print(_sentence(moved))
        return DONE

    return work


def _sentence(moved: Moved) -> str:
    return (
        f"{format_count(moved.runs, 'runs')} with {format_count(moved.entries, 'entries', 'entry')} and "
        f"{format_count(moved.records, 'records')} moved, each as it was; an audit finds {moved.intact} intact. "
        "Work on the new store only."
    )
