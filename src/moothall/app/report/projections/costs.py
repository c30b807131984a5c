"""What a run spent, by state, by agent and by model.

Everything is kept in one table, so that each way to group it has the same total. What nobody told is unknown and not
nothing: a bill says of how many calls the price or the tokens are missing, and its money is then what was spent at
least. What children spent is part of the bill of the state that started them, and marked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Literal, NamedTuple

from moothall.agents.ask import AskAgent, CallTool
from moothall.app.report.projections.flight import Charge
from moothall.kernel.frozen import Frozen
from moothall.runtime.journal import FAMILY

OWN = "own functions"
TOOLS = "tools"
CHILDREN = "children"
OTHERS = "others"


class Line(NamedTuple):
    """What a bill belongs to."""

    state: str
    agent: str
    model: str
    child: bool = False


class Bill(Frozen):
    """Calls of agents, with those that failed, their tokens and their money; how many came without either."""

    calls: int = 0
    tokens: float = 0
    usd: float = 0
    unpriced: int = 0
    uncounted: int = 0

    def plus(self, other: Bill) -> Bill:
        """Both together."""
        return Bill(
            self.calls + other.calls,
            round(self.tokens + other.tokens, 9),
            round(self.usd + other.usd, 9),
            self.unpriced + other.unpriced,
            self.uncounted + other.uncounted,
        )

    def plain(self) -> dict[str, float | None]:
        """For JSON: what nobody told of any call is null."""
        return {
            "calls": self.calls,
            "tokens": None if self.uncounted and not self.tokens else self.tokens,
            "usd": None if self.unpriced and not self.usd else self.usd,
            "unpriced": self.unpriced,
            "uncounted": self.uncounted,
        }


class Players(Frozen):
    """Who plays the agents of a run: functions of its own by name, else its model."""

    model: str = ""
    functions: frozenset[str] = frozenset()

    def model_of(self, charge: Charge) -> str:
        """The model that a charge is for, or what stands in its place."""
        if charge.model:
            return charge.model
        if charge.kind in FAMILY:
            return CHILDREN
        if charge.kind == AskAgent.kind:
            return OWN if charge.who in self.functions or not self.model else self.model
        return TOOLS if charge.kind == CallTool.kind else OTHERS


class Costs(Frozen):
    """All that was spent, line by line."""

    bills: Mapping[Line, Bill] = field(default_factory=dict)

    def after(self, charge: Charge, players: Players) -> Costs:
        """With one more charge."""
        usage = charge.usage
        bill = Bill(charge.calls, usage.get("tokens", 0), usage.get("usd", 0), charge.unpriced, charge.uncounted)
        line = Line(charge.state, charge.who, players.model_of(charge), charge.kind in FAMILY)
        return Costs({**self.bills, line: self.bills.get(line, _NOTHING).plus(bill)})

    def joined(self, child: Costs, state: str) -> Costs:
        """With all that a child of this state spent, by agent and model as in the child."""
        return self.plus(child.called(lambda line: Line(state, line.agent, line.model, True)))

    def called(self, name: Callable[[Line], Line]) -> Costs:
        """The same under other names."""
        found: dict[Line, Bill] = {}
        for line, bill in self.bills.items():
            found[name(line)] = found.get(name(line), _NOTHING).plus(bill)
        return Costs(found)

    def plus(self, other: Costs) -> Costs:
        """Both together."""
        both = {line: self.bills.get(line, _NOTHING).plus(bill) for line, bill in other.bills.items()}
        return Costs({**self.bills, **both})

    def by(self, part: Literal["state", "agent", "model"]) -> dict[str, Bill]:
        """The bills of each state, agent or model, the most expensive first."""
        found: dict[str, Bill] = {}
        for line, bill in self.bills.items():
            name: str = getattr(line, part)
            found[name] = found.get(name, _NOTHING).plus(bill)
        spent = [(name, bill) for name, bill in found.items() if bill != _NOTHING]
        return dict(sorted(spent, key=lambda item: (-item[1].usd, -item[1].tokens, -item[1].calls, item[0])))

    def total(self, *, children: bool | None = None) -> Bill:
        """The whole bill; of children only, or without them, where that is asked for."""
        total = _NOTHING
        for line, bill in self.bills.items():
            if children is None or line.child == children:
                total = total.plus(bill)
        return total


_NOTHING = Bill()
