"""The figures of runs in words, as rows of tables and as JSON, the same in every report and on every screen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from moothall.app.report.amounts import amount_of, format_count, lasting
from moothall.app.report.measures import AllMeasured, Measured
from moothall.app.report.projections.costs import Bill, Costs
from moothall.app.report.projections.metrics import Metrics, StateFigures

BILL = ("calls", "tokens", "usd")
STATE = ("state", "visits", "total", "average", "shortest", "longest", "waited", *BILL)
WAY = ("from → to", "times")
NOBODY = "(no state)"
Row = tuple[str, ...]


def state_rows(figures: Iterable[StateFigures]) -> list[Row]:
    """A row for each state, below `STATE`."""
    return [
        (
            (row.state or NOBODY) + (" (open)" if row.is_open else ""),
            str(row.visits or ""),
            *(lasting(part) for part in (row.total, row.average, row.shortest, row.longest)),
            lasting(row.waited) if row.waited else "",
            *_amounts(row.bill),
        )
        for row in figures
    ]


def bill_rows(bills: Mapping[str, Bill]) -> list[Row]:
    """A row for each bill, its name before `BILL`."""
    return [(name or NOBODY, *_amounts(bill)) for name, bill in bills.items()]


def _amounts(bill: Bill) -> Row:
    return str(bill.calls or ""), tokens_of(bill), _usd_of(bill)


def way_rows(metrics: Metrics) -> list[Row]:
    """A row for each transition, the most common first, below `WAY`."""
    return [(f"{before} → {after}", str(times)) for (before, after), times in _ways(metrics.transitions)]


def _ways(taken: Mapping[tuple[str, str], int]) -> list[tuple[tuple[str, str], int]]:
    return sorted(taken.items(), key=lambda item: -item[1])


def _plain_ways(taken: Mapping[tuple[str, str], int]) -> list[dict[str, Any]]:
    return [{"from": before, "to": after, "times": times} for (before, after), times in _ways(taken)]


def tokens_of(bill: Bill) -> str:
    """The tokens of a bill; what nobody told is not nothing."""
    return _at_least("tokens", bill.tokens, bill.uncounted) if bill.calls or bill.tokens else ""


def _usd_of(bill: Bill) -> str:
    return _at_least("usd", bill.usd, bill.unpriced) if bill.calls or bill.usd else ""


def _at_least(resource: str, amount: float, unknown: int) -> str:
    if unknown > 0:
        return f"≥ {amount_of(resource, amount)}" if amount else "unknown"
    return amount_of(resource, amount)


def time_of(measured: Measured) -> str:
    """How long a run took, and what for."""
    metrics, until = measured.metrics, measured.until
    spells = metrics.spent_on(until)
    return (
        f"{format_count(metrics.entries, 'entries', 'entry')} in {lasting(metrics.seconds(until))}: "
        f"working {lasting(spells['working'])}, waiting for people {lasting(spells['waiting'])}"
    )


def bottlenecks(measured: Measured) -> dict[str, str]:
    """What stands out: the slowest state, and the one with the most tokens."""
    slowest = measured.metrics.slowest(measured.until)
    hungriest = measured.metrics.hungriest(measured.until)
    found = {"slowest": f"{slowest.state} ({lasting(slowest.total)})"} if slowest is not None else {}
    if hungriest is not None:
        found["most tokens"] = f"{hungriest.state or NOBODY} ({tokens_of(hungriest.bill)})"
    return found


def spent_of(bill: Bill) -> str:
    """A bill on one line; nothing where it is empty."""
    known = {"usd": _usd_of(bill), "tokens": tokens_of(bill), "calls": str(bill.calls or "")}
    return ", ".join(f"{name} {amount}" for name, amount in known.items() if amount)


def cost_notes(costs: Costs) -> list[str]:
    """What a reader of the costs should know: what nobody told, and what children spent of it."""
    total, inside = costs.total(), costs.total(children=True)
    notes = []
    if total.unpriced or total.uncounted:
        unknown = f"Without a price: {total.unpriced} of {total.calls} calls."
        notes.append(f"{unknown} Without their tokens: {total.uncounted}.")
    if amounts := spent_of(inside):
        notes.append(f"Of all this children spent {amounts}.")
    return notes


def plain_costs(costs: Costs) -> dict[str, Any]:
    """Costs for JSON."""
    parts: dict[str, Any] = {"total": costs.total().plain(), "children": costs.total(children=True).plain()}
    for part in ("model", "agent", "state"):
        parts[f"by_{part}"] = {name: bill.plain() for name, bill in costs.by(part).items()}
    return parts


def plain_state(figures: StateFigures) -> dict[str, Any]:
    """The figures of a state for JSON."""
    return {
        "state": figures.state,
        "visits": figures.visits,
        "open": figures.is_open,
        "total": figures.total,
        "average": figures.average,
        "shortest": figures.shortest,
        "longest": figures.longest,
        "waited": figures.waited,
        **figures.bill.plain(),
    }


def plain_metrics(measured: Measured) -> dict[str, Any]:
    """The metrics of a run for JSON."""
    metrics, until = measured.metrics, measured.until
    slowest, hungriest, commonest = metrics.slowest(until), metrics.hungriest(until), metrics.commonest()
    return {
        "run": measured.run,
        "machine": measured.machine,
        "status": measured.status,
        "entries": metrics.entries,
        "began": metrics.began,
        "seconds": metrics.seconds(until),
        "spent_on": metrics.spent_on(until),
        "states": [plain_state(state) for state in measured.states()],
        "transitions": _plain_ways(metrics.transitions),
        "slowest": slowest.state if slowest else None,
        "hungriest": hungriest.state if hungriest else None,
        "commonest": list(commonest[0]) if commonest else None,
        "notes": list(measured.notes),
        **({"own": dict(measured.own)} if measured.own else {}),
    }


def plain_all(measured: AllMeasured) -> dict[str, Any]:
    """The metrics of all runs for JSON."""
    machines = [
        {
            "machine": name,
            "runs": runs,
            "states": [plain_state(state) for state in measured.states[name]],
            "transitions": _plain_ways(measured.ways.get(name, {})),
        }
        for name, runs in measured.runs.items()
    ]
    return {
        "machines": machines,
        "unread": dict(measured.unread),
        **({"own": {**measured.own}} if measured.own else {}),
    }
