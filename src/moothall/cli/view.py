"""Commands that look at runs: `ls`, `show`, `watch`, `export`, `prune`."""

from __future__ import annotations

import asyncio
import errno
import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from moothall.app.config.access import opened
from moothall.app.report.amounts import Account, amount_of
from moothall.app.runs import view as looking
from moothall.app.runs.view import Summary
from moothall.app.values import encode
from moothall.cli.main import DONE, FAILED
from moothall.cli.options import add_store, answering, command, days, named, whole_number
from moothall.cli.questions import shown as asked
from moothall.cli.screen import counted, harmless, is_unread, notice, painted, print_json, status, told
from moothall.errors import DefinitionError, EffectFailed

Work = Callable[[Namespace], int]
WIDTH = 100


def ls(parser: ArgumentParser) -> Work:
    """List runs."""
    shared(parser)

    def work(chosen: Namespace) -> int:
        with opened(chosen.store) as store:
            summaries = asyncio.run(looking.summaries(store))
        if chosen.json:
            print_json(summaries)
        elif not summaries:
            print("no runs yet")
        else:
            print("\n".join(_table(summaries)))
        return DONE

    return work


def _table(summaries: Sequence[Summary]) -> list[str]:
    """A line for each run; what it spent is left out where the lines would be too long for it."""
    width = max(len(one.run) for one in summaries)
    spent = [_spent(one) for one in summaries]
    room = max(map(len, spent))
    lines = [
        (
            f"{one.run:<{width}}  {status(one.status, width=8)}  {one.began}  {one.seq + 1:>4} entries",
            " + ".join(one.states),
        )
        for one in summaries
    ]
    plain = width + len(f"  {'':8}  {summaries[0].began}  9999 entries  ")
    if room and plain + room + 2 + max(len(where) for _, where in lines) <= WIDTH:
        return [f"{line}  {bill:<{room}}  {where}" for (line, where), bill in zip(lines, spent, strict=True)]
    return [f"{line}  {where}" for line, where in lines]


def _spent(summary: Summary) -> str:
    known = {name: summary.spent[name] for name in ("usd", "calls") if summary.spent.get(name)}
    return ", ".join(f"{name} {amount_of(name, amount)}" for name, amount in known.items())


def show(parser: ArgumentParser) -> Work:
    """Show one run."""
    parser.add_argument("run", help="the run's id")
    shared(parser)

    def work(chosen: Namespace) -> int:
        with opened(chosen.store) as store:
            shown = asyncio.run(looking.show(store, chosen.run))
            account = asyncio.run(looking.account_of(store, chosen.run))
        if chosen.json:
            print_json(shown)
            return DONE
        head = shown.summary
        print(f"{painted(head.run, 'bold')}  {status(head.status)}  {' + '.join(head.states)}")
        if head.reason:
            print(f"because: {harmless(head.reason)}")
        for line in _budget(account):
            print(line)
        for entry in shown.entries:
            print(told(entry, sys.stdout))
        for question in head.questions:
            print(asked(question, answering(chosen, head.run, question["id"], is_only=len(head.questions) == 1)))
        return DONE

    return work


def _budget(account: Account) -> Iterator[str]:
    if bill := account.bill():
        yield f"spent: {bill}"
    if left := account.left():
        yield "left: " + ", ".join(f"{name} {amount_of(name, amount)}" for name, amount in left.items())


def watch(parser: ArgumentParser) -> Work:
    """Follow a run."""
    parser.add_argument("run", help="the run's id")
    parser.add_argument(
        "--from",
        type=whole_number(0),
        default=0,
        dest="start",
        metavar="N",
        help="begin with this entry (default: 0, the first)",
    )
    shared(parser)

    def work(chosen: Namespace) -> int:
        following = looking.Following(chosen.run, chosen.start)
        with opened(chosen.store) as store:
            try:
                ended = asyncio.run(following.wait_for_end(store, lambda entry: _tell(chosen, entry), _stop_unread))
            except KeyboardInterrupt:
                notice(f"stopped; the run is as it was. Go on with:  {_watching(chosen, following)}")
                return FAILED
            account = asyncio.run(looking.account_of(store, chosen.run))
        print(f"{chosen.run} is {status(ended, sys.stderr)} ({account})", file=sys.stderr)
        return DONE if ended == "done" else FAILED

    return work


def _watching(chosen: Namespace, following: looking.Following) -> str:
    return f"{command('watch', chosen, chosen.run)} --from {following.next}" + (" --json" if chosen.json else "")


def _tell(chosen: Namespace, entry: Mapping[str, Any]) -> None:
    print(json.dumps(entry, ensure_ascii=False) if chosen.json else told(entry, sys.stdout), flush=True)
    _stop_unread()


def _stop_unread() -> None:
    """Where nobody reads any more, there is no end to wait for."""
    if is_unread():
        raise BrokenPipeError


def export(parser: ArgumentParser) -> Work:
    """Write a run as JSON."""
    parser.add_argument("run", help="the run's id")
    parser.add_argument("--output", "-o", type=named, metavar="FILE", help="where to write it (default: to stdout)")
    shared(parser)

    def work(chosen: Namespace) -> int:
        with opened(chosen.store) as store:
            exported = asyncio.run(looking.export(store, chosen.run))
        if chosen.output is None:
            print_json(exported)
        else:
            write(Path(chosen.output), json.dumps(encode(exported), ensure_ascii=False, indent=2) + "\n")
        return DONE

    return work


def prune(parser: ArgumentParser) -> Work:
    """Delete old runs."""
    parser.add_argument(
        "--days", type=days, default=30, help="runs that ended more than so many days ago (default: 30)"
    )
    parser.add_argument("--yes", action="store_true", help="really delete them; without it they are only listed")
    shared(parser)

    def work(chosen: Namespace) -> int:
        with opened(chosen.store) as store:
            pruned = asyncio.run(looking.prune(store, chosen.days, really=chosen.yes))
        if chosen.json:
            print_json({"runs": pruned, "deleted": chosen.yes})
        else:
            for run in pruned:
                print(run)
            print(
                counted(len(pruned), "runs") + " " + ("deleted" if chosen.yes else "would be deleted; say --yes"),
                file=sys.stderr,
            )
        return DONE

    return work


def write(path: Path, text: str) -> None:
    """Write a file, or say why not; a disk that is full is nobody's mistake."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        kind = EffectFailed if error.errno == errno.ENOSPC else DefinitionError
        raise kind(f"{path} cannot be written: {error.strerror or error}") from error


def shared(parser: ArgumentParser) -> None:
    """What every command has that looks at runs."""
    add_store(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
