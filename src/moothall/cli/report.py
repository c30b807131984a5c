"""Commands that read figures out of journals: `metrics`, `costs`, `report`."""

from __future__ import annotations

import asyncio
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from moothall.app.config.access import opened
from moothall.app.kinds.source import find
from moothall.app.report.figures import (
    BILL,
    STATE,
    WAY,
    bill_rows,
    bottlenecks,
    cost_notes,
    plain_all,
    plain_costs,
    plain_metrics,
    spent_of,
    state_rows,
    time_of,
    way_rows,
)
from moothall.app.report.measures import AllMeasured, Measured, measure, measure_all
from moothall.app.report.projections.costs import Costs
from moothall.app.report.report import FORMATS
from moothall.app.report.report import report as reported
from moothall.app.values import printable
from moothall.cli.main import DONE, FAILED
from moothall.cli.options import MACHINE, Handler, nonempty_text
from moothall.cli.screen import columns_of, notice, pad, paint, print_json, status
from moothall.cli.view import add_shared_options, write

WAYS = 10


def _add_machine(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--machine",
        type=nonempty_text,
        help=f"the run's machine, where it is Python code, which is loaded only if you name it here: {MACHINE}",
    )


def metrics(parser: ArgumentParser) -> Handler:
    """Count."""
    parser.add_argument("run", nargs="?", help="the run's id (default: all runs of the store, machine by machine)")
    _add_machine(parser)
    add_shared_options(parser)

    def work(chosen: Namespace) -> int:
        machine = find(chosen.machine) if chosen.machine else None
        with opened(chosen.store) as store:
            if chosen.run is None:
                return _print_all_metrics(asyncio.run(measure_all(store, machine=machine)), chosen)
            found = asyncio.run(measure(store, chosen.run, machine=machine))
        _tell_notes(found)
        if chosen.json:
            print_json(plain_metrics(found))
        else:
            print("\n".join(_format_lines(found)))
        return DONE

    return work


def _print_all_metrics(found: AllMeasured, chosen: Namespace) -> int:
    if chosen.json:
        print_json(plain_all(found))
    else:
        for machine, runs in found.runs.items():
            print(f"{paint(printable(machine), 'bold')}  {runs} {'run' if runs == 1 else 'runs'}")
            own = (f"{_title(name)}: {printable(str(what))}" for name, what in found.own.get(machine, {}).items())
            print("\n".join((*_format_table(STATE, state_rows(found.states[machine])), *own, "")))
    return _ending(found, chosen)


def _format_lines(found: Measured) -> Iterator[str]:
    yield f"{paint(printable(found.run), 'bold')}  {status(found.status)}  {time_of(found)}"
    yield from ("", *_format_table(STATE, state_rows(found.states())), "")
    ways = way_rows(found.metrics)
    yield from _format_table(WAY, ways[:WAYS])
    if len(ways) > WAYS:
        yield f"… and {len(ways) - WAYS} more; --json has all"
    yield from ("", *(f"{name}: {printable(what)}" for name, what in bottlenecks(found).items()))
    yield from (f"{_title(name)}: {printable(str(what))}" for name, what in found.own.items())


def _title(name: str) -> str:
    return name.replace("_", " ")


def _format_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table: the first column to the left, the others to the right; those with nothing in them are left out."""
    shown = [number for number, _ in enumerate(head) if number == 0 or any(row[number] for row in rows)]
    lines = [[printable(row[number]) for number in shown] for row in rows]
    widths = [
        max(columns_of(line[at]) for line in (*lines, [head[number] for number in shown]))
        for at, number in enumerate(shown)
    ]
    yield paint(_line([head[number] for number in shown], widths), "dim")
    for line in lines:
        yield _line(line, widths)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(cells, widths, strict=True)
    return "  ".join([pad(*first), *(pad(text, width, left=True) for text, width in others)]).rstrip()


def costs(parser: ArgumentParser) -> Handler:
    """Tell what was spent."""
    parser.add_argument("run", nargs="?", help="the run's id (default: all runs of the store)")
    _add_machine(parser)
    add_shared_options(parser)

    def work(chosen: Namespace) -> int:
        machine = find(chosen.machine) if chosen.machine else None
        with opened(chosen.store) as store:
            if chosen.run is None:
                every = asyncio.run(measure_all(store, machine=machine))
                _print_costs("all runs", every.costs, {"unread": dict(every.unread)}, as_json=chosen.json)
                return _ending(every, chosen)
            found = asyncio.run(measure(store, chosen.run, machine=machine))
        _tell_notes(found)
        _print_costs(found.run, found.metrics.costs, {"run": found.run}, as_json=chosen.json)
        return DONE

    return work


def _print_costs(what: str, spent: Costs, more: Mapping[str, object], *, as_json: bool) -> None:
    if as_json:
        print_json({**more, **plain_costs(spent)})
        return
    print(f"{paint(printable(what), 'bold')}  {spent_of(spent.total()) or 'nothing was spent'}")
    for note in cost_notes(spent):
        print(note)
    for part in ("model", "agent", "state") if spent.bills else ():
        print("\n".join(("", *_format_table((part, *BILL), bill_rows(spent.by(part))))))


def _tell_notes(found: Measured) -> None:
    for note in found.notes:
        notice(note)


def _ending(found: AllMeasured, chosen: Namespace) -> int:
    """A sum that lacks runs is told as one that does."""
    for run, reason in found.unread.items():
        notice(f"{run} is left out: {reason}")
    if not found.runs and not found.unread and not chosen.json:
        print("no runs yet")
    return FAILED if found.unread else DONE


def report(parser: ArgumentParser) -> Handler:
    """Write the report."""
    parser.add_argument("run", help="the run's id")
    parser.add_argument(
        "--format",
        choices=FORMATS,
        help="a page, Markdown, a table with a row per entry, or everything as JSON (default: by the ending of "
        "FILE, else html)",
    )
    parser.add_argument(
        "--output",
        "-o",
        type=nonempty_text,
        metavar="FILE",
        help="the file to write, - for stdout (default: RUN.html; with --format: stdout)",
    )
    _add_machine(parser)
    add_shared_options(parser)

    def work(chosen: Namespace) -> int:
        machine = find(chosen.machine) if chosen.machine else None
        ending = Path(chosen.output or "").suffix[1:]
        form = chosen.format or (ending if ending in FORMATS else FORMATS[0])
        with opened(chosen.store) as store:
            text = asyncio.run(reported(store, chosen.run, form, machine=machine))
        if chosen.output == "-" or (chosen.format and not chosen.output):
            sys.stdout.write(text)
            return DONE
        path = Path(chosen.output or f"{chosen.run}.html")
        write(path, text)
        if chosen.json:
            print_json({"file": str(path)})
        else:
            print(path)
        return DONE

    return work
