"""Commands that look at runs: `ls`, `show`, `watch`, `report`, `export`, `prune`."""

from __future__ import annotations

import asyncio
import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from moothall.app import looking
from moothall.app.running import opened
from moothall.cli.main import DONE, FAILED
from moothall.cli.questions import shown as asked
from moothall.cli.screen import painted, print_json, status, told
from moothall.errors import Refused
from moothall.kernel.codec import encode

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
        for question in head.questions:
            print(asked(question, f"moot answer {head.run}" + (f" --store {chosen.store}" if chosen.store else "")))
        return DONE

    return work


def watch(parser: ArgumentParser) -> Work:
    """Follow a run."""
    parser.add_argument("run", help="the run's id")
    parser.add_argument(
        "--after", type=int, default=-1, metavar="N", help="begin after this entry (default: at the start)"
    )
    _shared(parser)

    def work(chosen: Namespace) -> int:
        with opened(chosen.store) as store:
            status_now = asyncio.run(
                looking.follow(store, chosen.run, chosen.after, lambda entry: _tell(chosen, entry))
            )
        return DONE if status_now == "done" else FAILED

    return work


def _tell(chosen: Namespace, entry: Mapping[str, Any]) -> None:
    print(json.dumps(entry, ensure_ascii=False) if chosen.json else told(entry, sys.stdout), flush=True)


def export(parser: ArgumentParser) -> Work:
    """Write a run as JSON."""
    parser.add_argument("run", help="the run's id")
    parser.add_argument("--output", "-o", metavar="FILE", help="where to write it (default: to stdout)")
    _shared(parser)

    def work(chosen: Namespace) -> int:
        with opened(chosen.store) as store:
            exported = asyncio.run(looking.export(store, chosen.run))
        if chosen.output is None:
            print_json(exported)
        else:
            _write(Path(chosen.output), json.dumps(encode(exported), ensure_ascii=False, indent=2) + "\n")
        return DONE

    return work


def prune(parser: ArgumentParser) -> Work:
    """Delete old runs."""
    parser.add_argument(
        "--days", type=float, default=30, help="runs that ended more than so many days ago (default: 30)"
    )
    parser.add_argument("--yes", action="store_true", help="really delete them; without it they are only listed")
    _shared(parser)

    def work(chosen: Namespace) -> int:
        with opened(chosen.store) as store:
            pruned = asyncio.run(looking.prune(store, chosen.days, really=chosen.yes))
        if chosen.json:
            print_json({"runs": pruned, "deleted": chosen.yes})
        else:
            for run in pruned:
                print(run)
            print(
                f"{len(pruned)} runs " + ("deleted" if chosen.yes else "would be deleted; say --yes"), file=sys.stderr
            )
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
        _write(path, page)
        if chosen.json:
            print_json({"file": str(path)})
        else:
            print(path)
        return DONE

    return work


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror or error}") from error


def _shared(parser: ArgumentParser) -> None:
    parser.add_argument("--store", help="where runs are kept: sqlite:FILE (default: in the state directory)")
    parser.add_argument("--json", action="store_true", help="print JSON")
