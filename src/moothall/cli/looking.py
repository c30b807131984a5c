"""Commands that look at runs: `ls`, `show`, `report`."""

from __future__ import annotations

import asyncio
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path

from moothall.app import looking
from moothall.app.running import opened
from moothall.cli.main import DONE
from moothall.cli.screen import painted, print_json, status, told
from moothall.errors import Refused

Work = Callable[[Namespace], int]


def ls(parser: ArgumentParser) -> Work:
    """List runs."""
    _shared(parser)

    def work(chosen: Namespace) -> int:
        with opened(chosen.store) as store:
            summaries = asyncio.run(looking.summaries(store))
        if chosen.json:
            print_json(summaries)
        elif not summaries:
            print("no runs yet")
        width = max((len(one.run) for one in summaries), default=0)
        for one in () if chosen.json else summaries:
            where = " + ".join(one.states)
            print(f"{one.run:<{width}}  {status(one.status, width=8)}  {one.began}  {one.seq + 1:>4} entries  {where}")
        return DONE

    return work


def show(parser: ArgumentParser) -> Work:
    """Show one run."""
    parser.add_argument("run", help="the run's id")
    _shared(parser)

    def work(chosen: Namespace) -> int:
        with opened(chosen.store) as store:
            shown = asyncio.run(looking.show(store, chosen.run))
        if chosen.json:
            print_json(shown)
            return DONE
        head = shown.summary
        print(f"{painted(head.run, 'bold')}  {status(head.status)}  {' + '.join(head.states)}")
        if head.reason:
            print(f"because: {head.reason}")
        for entry in shown.entries:
            print(told(entry, sys.stdout))
        return DONE

    return work


def report(parser: ArgumentParser) -> Work:
    """Write the report."""
    parser.add_argument("run", help="the run's id")
    parser.add_argument("--output", "-o", metavar="FILE", help="where to write the page (default: RUN.html)")
    _shared(parser)

    def work(chosen: Namespace) -> int:
        path = Path(chosen.output or f"{chosen.run}.html")
        with opened(chosen.store) as store:
            page = asyncio.run(looking.page(store, chosen.run))
        try:
            path.write_text(page, encoding="utf-8")
        except OSError as error:
            raise Refused(f"{path} cannot be written: {error.strerror or error}") from error
        if chosen.json:
            print_json({"file": str(path)})
        else:
            print(path)
        return DONE

    return work


def _shared(parser: ArgumentParser) -> None:
    parser.add_argument("--store", help="where runs are kept: sqlite:FILE (default: in the state directory)")
    parser.add_argument("--json", action="store_true", help="print JSON")
