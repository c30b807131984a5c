"""The command that takes texts out of runs that are over: `forget`."""

from __future__ import annotations

import asyncio
import getpass
from argparse import ArgumentParser, Namespace

from moothall.app.config.access import opened
from moothall.app.report.amounts import format_count
from moothall.app.runs.forget import ForgottenTexts, forget_person, forget_run
from moothall.cli.main import DONE
from moothall.cli.options import Handler, add_store, nonempty_text
from moothall.cli.screen import notice, print_json


def forget(parser: ArgumentParser) -> Handler:
    """Take texts out of runs."""
    parser.add_argument("run", nargs="?", type=nonempty_text, help="the id of the run whose texts are forgotten")
    parser.add_argument(
        "--person",
        type=nonempty_text,
        metavar="NAME",
        help="forget what this person answered or said in any run of the store",
    )
    parser.add_argument(
        "--as",
        dest="by",
        type=nonempty_text,
        metavar="NAME",
        help="who forgets, for the audit (default: your user name)",
    )
    parser.add_argument("--yes", action="store_true", help="really forget; without it you only see what would go")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_store(parser)

    def work(chosen: Namespace) -> int:
        if (chosen.run is None) == (chosen.person is None):
            parser.error("name one of both: a run, or a person with --person NAME")
        by = chosen.by or _user_name()
        with opened(chosen.store) as store:
            if chosen.run is not None:
                gone = asyncio.run(forget_run(store, chosen.run, by=by, really=chosen.yes))
            else:
                gone = asyncio.run(forget_person(store, chosen.person, by=by, really=chosen.yes))
        if chosen.json:
            print_json(gone)
        else:
            for run in gone.runs:
                print(run)
            notice(_sentence(gone))
        for left in gone.left:
            notice(left)
        return DONE

    return work


def _sentence(gone: ForgottenTexts) -> str:
    parts = [format_count(gone.entries, "entries", "entry"), "of", format_count(len(gone.runs), "runs")]
    several = [
        format_count(number, name) for number, name in ((gone.records, "records"), (gone.saves, "saves")) if number
    ]
    what = " ".join(parts) + "".join(f", {part}" for part in several)
    return f"the texts of {what} " + ("were forgotten" if gone.is_done else "would be forgotten; say --yes")


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may have no name for its user
        return "an unnamed user"
