"""Who is told of a debate as it goes on, from Python: phases, messages, questions, rounds and the end.

Hooks are listeners: what they do cannot harm a run, and one that raises is left out from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from moothall.agents.ask import Replied
from moothall.app.kinds.debate.progress import BOOKKEEPING
from moothall.app.runs.news import Committed, News
from moothall.kernel.effects import AskPerson
from moothall.machines.debate.state import Clarification, Debate, Round
from moothall.runtime.journal import RunId


@dataclass(frozen=True, slots=True)
class DebateHooks:
    """Functions that are told of a debate; those that are left out are told nothing.

    `on_phase(node, event)`, `on_message(agent, node, value)`, `on_question(clarifications)`, `on_round(round)` and
    `on_end(debate_id, status)`.
    """

    on_phase: Callable[[str, str], object] | None = None
    on_message: Callable[[str, str, Any], object] | None = None
    on_question: Callable[[tuple[Clarification, ...]], object] | None = None
    on_round: Callable[[Round], object] | None = None
    on_end: Callable[[RunId, str], object] | None = None


class HookListener:
    """Passes what is committed on to hooks, each thing once."""

    def __init__(self, hooks: DebateHooks) -> None:
        self._hooks = hooks
        self._rounds: dict[RunId, int] = {}

    def __call__(self, news: News) -> None:
        """Something happened."""
        if isinstance(news, Committed) and isinstance(data := news.head.snapshot.data, Debate):
            self._tell(news, data)

    def _tell(self, news: Committed, data: Debate) -> None:
        hooks, entry = self._hooks, news.plain
        event = news.entry.event
        if hooks.on_message and isinstance(event, Replied):
            hooks.on_message(event.agent, " + ".join(entry["from"]), event.value)
        if hooks.on_phase:
            for node, name in _phases(entry):
                hooks.on_phase(node, name)
        known = self._rounds.get(news.run, data.rounds if entry["seq"] else 0)
        if hooks.on_round and data.rounds > known:
            hooks.on_round(data.history[-1])
        self._rounds[news.run] = data.rounds
        asks = any(wanted["kind"] == AskPerson.kind for wanted in entry["effects"])
        if hooks.on_question and asks and "ClarificationInput" in entry["to"]:
            hooks.on_question(tuple(question for question in data.clarifications if not question.answer))
        if hooks.on_end and "status" in entry:
            hooks.on_end(news.run, entry["status"])


def _phases(entry: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The events of the document that an entry has, each with the node that gave it."""
    raised = list(entry.get("raised", ()))
    rows = list(entry["taken"])[-len(raised) :] if raised else []
    nodes = [str(row).rpartition("/")[0] for row in rows]
    return [(node, name) for node, name in zip(nodes, raised, strict=False) if name not in BOOKKEEPING]
