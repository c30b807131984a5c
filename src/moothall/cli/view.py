"""Commands that look at runs: `ls`, `show`, `watch`, `prune`."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shutil
import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from moothall.app.config.access import opened
from moothall.app.config.project import current_project
from moothall.app.report.account import account_of
from moothall.app.report.account import show as show_run
from moothall.app.report.amounts import Account, amount_of, format_count
from moothall.app.runs import view as looking
from moothall.app.runs.view import Summary, Wanted
from moothall.app.values import printable
from moothall.cli.main import DONE, FAILED
from moothall.cli.options import Handler, add_store, answering, command, days, nonempty_text, whole_number
from moothall.cli.questions import format_question as asked
from moothall.cli.screen import (
    columns_of,
    format_entry,
    harmless,
    is_unread,
    notice,
    pad,
    paint,
    print_json,
    shorten,
    status,
)
from moothall.errors import DefinitionError, EffectFailed

WIDTH = 100
CAUSE = 80
"""How many characters of the cause of a bad end a list has."""


def ls(parser: ArgumentParser) -> Handler:
    """List runs."""
    parser.add_argument(
        "--status",
        choices=looking.STATUSES,
        metavar="STATUS",
        help=f"only runs of this status: {', '.join(looking.STATUSES)}",
    )
    parser.add_argument("--machine", type=nonempty_text, metavar="NAME", help="only runs of this machine")
    _add_project(parser)
    parser.add_argument(
        "--waiting",
        action="store_true",
        help="only runs that wait for an answer that anybody may give, or the person that --as names",
    )
    parser.add_argument("--as", dest="person", default="", metavar="NAME", help="who looks, for --waiting")
    parser.add_argument("--undriven", action="store_true", help="only runs that could go on and that no process drives")
    add_shared_options(parser)

    def work(chosen: Namespace) -> int:
        wanted = _wish(chosen, _project(parser, chosen))
        with opened(chosen.store) as store:
            every = asyncio.run(looking.summaries(store))
        summaries = [summary for summary in every if wanted.fits(summary)]
        if chosen.json:
            print_json(summaries)
            return DONE
        elsewhere = sum(replace(wanted, project="").fits(summary) for summary in every) - len(summaries)
        print("\n".join(_table(summaries)) if summaries else _nothing_fits(chosen, wanted.project, every, elsewhere))
        if chosen.waiting and (people := _others_asked(every, wanted)):
            notice(f"other questions are for {', '.join(people)}: moot ls --waiting --as NAME")
        undriven = sum(Wanted(undriven=True).fits(summary) for summary in summaries)
        if undriven and not chosen.undriven:
            notice(
                f"no process drives {undriven} of them: moot worker goes on with them; moot ls --undriven lists them"
            )
        if elsewhere and not chosen.project:
            notice(
                f"{format_count(elsewhere, 'more runs' if summaries else 'runs')} outside this project: moot ls --all"
            )
        return DONE

    return work


def _add_project(parser: ArgumentParser) -> None:
    """Of which project the runs are."""
    parser.add_argument(
        "--project",
        type=nonempty_text,
        metavar="DIR",
        help="only runs begun in this project (default: the current one)",
    )
    parser.add_argument("--all", action="store_true", help="the runs of every project")


def _project(parser: ArgumentParser, chosen: Namespace) -> str:
    """The project that was asked for: without a word the current one, where there is one; "" for all."""
    if chosen.all and chosen.project:
        parser.error("--project and --all exclude each other")
    return os.path.realpath(chosen.project) if chosen.project else "" if chosen.all else current_project()


def _wish(chosen: Namespace, project: str) -> Wanted:
    """Which runs were asked for."""
    person = chosen.person if chosen.waiting else None
    return Wanted(chosen.status or "", chosen.machine or "", project, person, chosen.undriven)


def _others_asked(every: Sequence[Summary], wanted: Wanted) -> list[str]:
    """Who else is asked something in runs like those that were asked for."""
    anybody = replace(wanted, person=None)
    asked = {question["who"] for summary in every if anybody.fits(summary) for question in summary.questions}
    return sorted(asked - {"", wanted.person})


def _nothing_fits(chosen: Namespace, project: str, every: Sequence[Summary], elsewhere: int) -> str:
    """Why the list is empty, and how to see what there is."""
    if not every:
        return "no runs yet"
    if elsewhere:
        return f"no run of {project} fits"
    standings = Counter(summary.status for summary in every)
    known = ", ".join(f"{number} {name}" for name, number in standings.most_common())
    return f"no run fits; in this store are {known}. List them:  {command('ls --all', chosen)}"


def _table(summaries: Sequence[Summary]) -> list[str]:
    """A line for each run that fits the screen: first what it spent is left out, then the end of where it is.

    Runs of several projects are told apart by the names of their folders.
    """
    width = max(len(summary.run) for summary in summaries)
    status_width = max(8, *(len(summary.status) for summary in summaries))
    several = len({summary.project for summary in summaries}) > 1
    projects = [f"{printable(Path(summary.project).name)}  " if several else "" for summary in summaries]
    project_width = max(map(columns_of, projects))
    spent = [_format_spent(summary) for summary in summaries]
    bill_width = max(map(len, spent))
    room = max(shutil.get_terminal_size((WIDTH, 0)).columns, 40) if sys.stdout.isatty() else WIDTH
    left = room - (width + project_width + status_width + len(f"    {summaries[0].began}  9999 entries  "))
    places = [" + ".join(summary.states) + (f" ({summary.ending})" if summary.ending else "") for summary in summaries]
    with_bill = bool(bill_width) and max(map(columns_of, places)) <= left - bill_width - 2
    lines = []
    for summary, project, bill, place in zip(summaries, projects, spent, places, strict=True):
        number = summary.seq + 1
        entries = f"{number:>4} {'entry' if number == 1 else 'entries':<7}"
        standing = status(summary.status, width=status_width)
        line = f"{summary.run:<{width}}  {pad(project, project_width)}{standing}  {summary.began}  {entries}"
        shown = f"{line}  {bill:<{bill_width}}" if with_bill else line
        end = f"{place}{_format_cause(summary)}"
        free = max(left - (bill_width + 2 if with_bill else 0), 9)
        lines.append(f"{shown}  {shorten(end, free) if sys.stdout.isatty() else end}")
    return lines


def _format_cause(summary: Summary) -> str:
    """The beginning of why a run ended badly."""
    if summary.status in ("done", "waiting", "running") or not summary.reason:
        return ""
    cause = printable(summary.reason.removeprefix(f"{summary.ending}: "))
    return f": {cause if len(cause) <= CAUSE else f'{cause[: CAUSE - 1]}…'}"


def _format_spent(summary: Summary) -> str:
    known = {name: summary.spent[name] for name in ("usd", "calls") if summary.spent.get(name)}
    return ", ".join(f"{name} {amount_of(name, amount)}" for name, amount in known.items())


def show(parser: ArgumentParser) -> Handler:
    """Show one run."""
    parser.add_argument("run", help="the run's id")
    add_shared_options(parser)

    def work(chosen: Namespace) -> int:
        with opened(chosen.store) as store:
            shown = asyncio.run(show_run(store, chosen.run))
            account = asyncio.run(account_of(store, chosen.run))
            below = asyncio.run(looking.questions_below(store, chosen.run))
        if chosen.json:
            print_json(shown)
            return DONE
        head = shown.summary
        print(f"{paint(head.run, 'bold')}  {status(head.status)}  {' + '.join(head.states)}")
        if head.reason:
            print(f"because: {harmless(head.reason)}")
        for line in _budget(account):
            print(line)
        for entry in shown.entries:
            print(format_entry(entry, sys.stdout, ended=head.status if entry.get("status") == "done" else ""))
        for question in head.questions:
            print(asked(question, answering(chosen, head.run, question["id"], is_only=len(head.questions) == 1)))
        for child, questions in below:
            print(f"{child}, which this run has started, asks:")
            for question in questions:
                print(asked(question, answering(chosen, child, question["id"], is_only=len(questions) == 1)))
        return DONE

    return work


def _budget(account: Account) -> Iterator[str]:
    if bill := account.bill():
        yield f"spent: {bill}"
    if left := account.left():
        known = (f"{name} {'unknown' if amount is None else amount_of(name, amount)}" for name, amount in left.items())
        yield f"left: {', '.join(known)}"
    if note := account.note():
        yield harmless(note)


def watch(parser: ArgumentParser) -> Handler:
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
    add_shared_options(parser)

    def work(chosen: Namespace) -> int:
        following = looking.Following(chosen.run, chosen.start)
        with opened(chosen.store) as store:
            try:
                ended = asyncio.run(
                    following.wait_for_end(store, lambda entry: _tell(chosen, entry, following.ended), _stop_unread)
                )
            except KeyboardInterrupt:
                notice(f"stopped; the run is as it was. Go on with:  {_watching(chosen, following)}")
                return FAILED
            account = asyncio.run(account_of(store, chosen.run))
        print(f"{chosen.run} is {status(ended, sys.stderr)} ({account})", file=sys.stderr)
        return DONE if ended == "done" else FAILED

    return work


def _watching(chosen: Namespace, following: looking.Following) -> str:
    return f"{command('watch', chosen, chosen.run)} --from {following.next}" + (" --json" if chosen.json else "")


def _tell(chosen: Namespace, entry: Mapping[str, Any], ended: str) -> None:
    line = json.dumps(entry, ensure_ascii=False) if chosen.json else format_entry(entry, sys.stdout, ended=ended)
    print(line, flush=True)
    _stop_unread()


def _stop_unread() -> None:
    """Where nobody reads any more, there is no end to wait for."""
    if is_unread():
        raise BrokenPipeError


def prune(parser: ArgumentParser) -> Handler:
    """Delete old runs."""
    parser.add_argument("--days", type=days, default=30, help="how many days ago the runs ended at least (default: 30)")
    _add_project(parser)
    parser.add_argument("--yes", action="store_true", help="really delete them; without it they are only listed")
    add_shared_options(parser)

    def work(chosen: Namespace) -> int:
        project = _project(parser, chosen)
        with opened(chosen.store) as store:
            old = asyncio.run(looking.prune(store, chosen.days, really=False))
            pruned = asyncio.run(looking.prune(store, chosen.days, really=chosen.yes, project=project))
        if chosen.json:
            print_json({"runs": pruned, "deleted": chosen.yes})
            return DONE
        for run in pruned:
            print(run)
        whose = f" of {project}" if project else " of every project" if chosen.all else ""
        said = "deleted" if chosen.yes else "would be deleted; say --yes"
        none = f"no run{whose} ended more than {format_count(chosen.days, 'days')} ago"
        print(f"{format_count(len(pruned), 'runs')}{whose} {said}" if pruned else none, file=sys.stderr)
        if (elsewhere := len(old) - len(pruned)) and not chosen.project:
            notice(f"{format_count(elsewhere, 'more runs')} outside this project: moot prune --all")
        return DONE

    return work


def write(path: Path, text: str) -> None:
    """Write a file, or say why not; a disk that is full is nobody's mistake."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        kind = EffectFailed if error.errno == errno.ENOSPC else DefinitionError
        raise kind(f"{path} cannot be written: {error.strerror or error}") from error


def add_shared_options(parser: ArgumentParser) -> None:
    """What every command has that looks at runs."""
    add_store(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
