"""Commands that read figures out of journals: `metrics`, `costs`, `report`."""

from __future__ import annotations

import asyncio
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from moothall.app.measuring import (
    Measured,
    measure,
    measure_all,
    plain_all,
    plain_costs,
    plain_metrics,
    tokens_of,
    usd_of,
)
from moothall.app.projections.costs import Bill, Costs
from moothall.app.projections.metrics import StateFigures
from moothall.app.report import NOBODY, cost_notes, spent_of
from moothall.app.reporting import FORMATS
from moothall.app.reporting import report as reported
from moothall.app.running import opened
from moothall.app.spending import duration_of
from moothall.cli.looking import shared, write
from moothall.cli.main import DONE, FAILED
from moothall.cli.screen import notice, painted, print_json, status
from moothall.kernel.draw import printable

Work = Callable[[Namespace], int]
STATE = ("state", "visits", "total", "average", "shortest", "longest", "waited", "calls", "tokens", "usd")
BILL = ("calls", "tokens", "usd")
WAYS = 10


def metrics(parser: ArgumentParser) -> Work:
    """Count."""
    parser.add_argument("run", nargs="?", help="the run's id (default: all runs of the store, machine by machine)")
    shared(parser)

    def work(chosen: Namespace) -> int:
        with opened(chosen.store) as store:
            if chosen.run is None:
                every = asyncio.run(measure_all(store))
                if chosen.json:
                    print_json(plain_all(every))
                for machine, runs in () if chosen.json else every.runs.items():
                    print(f"{painted(printable(machine), 'bold')}  {runs} {'run' if runs == 1 else 'runs'}")
                    print("\n".join(_states(every.states[machine])))
                return _ending(every.unread, bool(every.runs), chosen)
            found = asyncio.run(measure(store, chosen.run))
        _tell_notes(found)
        if chosen.json:
            print_json(plain_metrics(found))
        else:
            print("\n".join(_told(found)))
        return DONE

    return work


def _told(found: Measured) -> Iterator[str]:
    measured, until = found.metrics, found.until
    spells = measured.spent_on(until)
    yield (
        f"{painted(printable(found.run), 'bold')}  {status(found.status)}  {measured.entries} entries in "
        f"{duration_of(measured.seconds(until))}: working {duration_of(spells['working'])}, "
        f"waiting for people {duration_of(spells['waiting'])}"
    )
    yield from ("", *_states(found.states()), "")
    ways = sorted(measured.transitions.items(), key=lambda item: -item[1])
    rows = [(f"{before} → {after}", str(times)) for (before, after), times in ways[:WAYS]]
    yield from _aligned(("from → to", "times"), rows)
    if len(ways) > WAYS:
        yield f"… and {len(ways) - WAYS} more; --json has all"
    yield ""
    slowest, hungriest = measured.slowest(until), measured.hungriest(until)
    if slowest is not None:
        yield f"slowest: {printable(slowest.state)} ({duration_of(slowest.total)})"
    if hungriest is not None:
        yield f"most tokens: {printable(hungriest.state or NOBODY)} ({tokens_of(hungriest.bill)})"


def _states(figures: Iterable[StateFigures]) -> Iterator[str]:
    rows = [
        (
            (one.state or NOBODY) + (" (open)" if one.is_open else ""),
            str(one.visits or ""),
            *(duration_of(part) for part in (one.total, one.average, one.shortest, one.longest)),
            duration_of(one.waited) if one.waited else "",
            *_amounts(one.bill),
        )
        for one in figures
    ]
    return _aligned(STATE, rows)


def _amounts(bill: Bill) -> tuple[str, str, str]:
    return str(bill.calls or ""), tokens_of(bill), usd_of(bill)


def _aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table: the first column to the left, the others to the right; those with nothing in them are left out."""
    shown = [number for number, _ in enumerate(head) if number == 0 or any(row[number] for row in rows)]
    lines = [[printable(row[number]) for number in shown] for row in rows]
    widths = [max(len(line[at]) for line in (*lines, [head[one] for one in shown])) for at, one in enumerate(shown)]
    yield painted(_line([head[number] for number in shown], widths), "dim")
    for line in lines:
        yield _line(line, widths)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(cells, widths, strict=True)
    return "  ".join([f"{first[0]:<{first[1]}}", *(f"{text:>{width}}" for text, width in others)]).rstrip()


def costs(parser: ArgumentParser) -> Work:
    """Tell what was spent."""
    parser.add_argument("run", nargs="?", help="the run's id (default: all runs of the store)")
    shared(parser)

    def work(chosen: Namespace) -> int:
        with opened(chosen.store) as store:
            if chosen.run is None:
                every = asyncio.run(measure_all(store))
                _print_costs("all runs", every.costs, chosen, {"unread": dict(every.unread)})
                return _ending(every.unread, bool(every.runs), chosen)
            found = asyncio.run(measure(store, chosen.run))
        _tell_notes(found)
        _print_costs(found.run, found.metrics.costs, chosen, {"run": found.run})
        return DONE

    return work


def _print_costs(what: str, spent: Costs, chosen: Namespace, more: Mapping[str, object]) -> None:
    if chosen.json:
        print_json({**more, **plain_costs(spent)})
        return
    print(f"{painted(printable(what), 'bold')}  {spent_of(spent.total()) or 'nothing was spent'}")
    for note in cost_notes(spent):
        print(note)
    for part in ("model", "agent", "state") if spent.bills else ():
        rows = [(name or NOBODY, *_amounts(bill)) for name, bill in spent.by(part).items()]
        print("\n".join(("", *_aligned((part, *BILL), rows))))


def _tell_notes(found: Measured) -> None:
    for note in found.notes:
        notice(note)


def _ending(unread: Mapping[str, str], any_run: bool, chosen: Namespace) -> int:
    """A sum that lacks runs is told as one that does."""
    for run, reason in unread.items():
        notice(f"{run} is left out: {reason}")
    if not any_run and not unread and not chosen.json:
        print("no runs yet")
    return FAILED if unread else DONE


def report(parser: ArgumentParser) -> Work:
    """Write the report."""
    parser.add_argument("run", help="the run's id")
    parser.add_argument(
        "--format",
        choices=FORMATS,
        help="a page, Markdown, a table with a row per entry, or everything as JSON (default: as FILE ends, else html)",
    )
    parser.add_argument(
        "--output", "-o", metavar="FILE", help="where to write it (default: RUN.FORMAT); - writes to stdout"
    )
    shared(parser)

    def work(chosen: Namespace) -> int:
        ending = Path(chosen.output or "").suffix[1:]
        form = chosen.format or (ending if ending in FORMATS else FORMATS[0])
        with opened(chosen.store) as store:
            text = asyncio.run(reported(store, chosen.run, form))
        if chosen.output == "-":
            sys.stdout.write(text)
            return DONE
        path = Path(chosen.output or f"{chosen.run}.{form}")
        write(path, text)
        if chosen.json:
            print_json({"file": str(path)})
        else:
            print(path)
        return DONE

    return work
