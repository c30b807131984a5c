"""The command that finds out whether runs are as they were written: `audit`."""

from __future__ import annotations

import asyncio
import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace

from moothall.app.config.access import opened
from moothall.app.report.audit import audit_all
from moothall.app.runs.view import moment
from moothall.app.values import Audit, Forgotten, Store
from moothall.cli.main import CANNOT_TELL, DONE, FAILED
from moothall.cli.options import Handler, add_store
from moothall.cli.screen import harmless, print_json

CODES = {"broken": FAILED, "cannot tell": CANNOT_TELL, "intact": DONE}
"""The exit codes of verdicts, the worst first."""


def audit(parser: ArgumentParser) -> Handler:
    """Find out whether runs are as they were written."""
    parser.add_argument("run", nargs="?", help="the run's id (default: every run of the store)")
    parser.add_argument("--digest", action="store_true", help="print the run's digest, which you keep elsewhere")
    parser.add_argument(
        "--against", type=_digest, metavar="DIGEST", help="compare with a digest that was kept elsewhere"
    )
    parser.add_argument(
        "--accept",
        action="store_true",
        help="accept a run that lacks entries which its anchors know, once you have looked at it: it goes on as "
        "it is, or is gone for good",
    )
    parser.add_argument("--json", action="store_true", help="print the verdicts as JSON")
    add_store(parser)

    def work(chosen: Namespace) -> int:
        if chosen.run is None and (chosen.digest or chosen.against):
            parser.error("name the run that the digest is of")
        if chosen.accept and (chosen.run is None or chosen.digest or chosen.against):
            parser.error("--accept takes one run, and no digest")
        if chosen.digest and chosen.against:
            parser.error("print a digest or compare with one, not both")
        with opened(chosen.store) as store:
            if chosen.accept:
                return asyncio.run(_accept(store, chosen.run))
            found = asyncio.run(_audit(store, chosen))
        if chosen.json:
            print_json(found if chosen.run is None else found[0])
        else:
            for audit in found:
                print(audit.digest if chosen.digest and audit.digest else f"{audit.run}: {audit.verdict}: {audit.why}")
                for forgotten in () if chosen.digest else audit.forgotten:
                    print(f"  {_forgetting(forgotten)}")
        verdicts = {audit.verdict for audit in found}
        return next((code for verdict, code in CODES.items() if verdict in verdicts), DONE)

    return work


def _digest(text: str) -> tuple[int, bytes]:
    if not re.fullmatch(r"\d{1,18}:[0-9a-f]{64}", text):
        raise ArgumentTypeError(f"{text!r} is not a digest; `moot audit RUN --digest` prints one")
    seq, _, seal = text.partition(":")
    return int(seq), bytes.fromhex(seal)


def _forgetting(forgotten: Forgotten) -> str:
    """What was forgotten, when and by whom."""
    first, last, number = forgotten.entries[0], forgotten.entries[-1], len(forgotten.entries)
    where = f"entry {first}" if number == 1 else f"{number} entries from {first} to {last}"
    whose = "texts" if forgotten.what == "run" else "a person's words"
    return harmless(f"{where}: {whose} forgotten on {moment(forgotten.at)} by {forgotten.by}")


async def _accept(store: Store, run: str) -> int:
    """A person has looked at a run, and says that it is to be as it is."""
    await store.accept(run)
    there = run in {stored.record.run for stored in await store.runs()}
    print(f"{run}: accepted as it is; `moot resume {run}` goes on" if there else f"{run}: accepted that it is gone")
    return DONE


async def _audit(store: Store, chosen: Namespace) -> list[Audit]:
    if chosen.run is None:
        return await audit_all(store)
    return [await store.audit(chosen.run, chosen.against)]
