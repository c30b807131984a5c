"""Whole debates with a Model of the benchmark's own: the shipped machine, over the runtime and its performers.

A panel says what each agent answers in which draft; the rest of the machine's asks gets the least that it accepts.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from moothall.agents.ask import AskAgent, CallTool
from moothall.agents.ports import Reply, Request
from moothall.app.kinds.debate import begin as begin_debate
from moothall.machines.debate import debate, size_of
from moothall.machines.debate.definition import (
    AgentConfig,
    Answers,
    Configuration,
    DebateConfig,
    Protocol,
    Summarization,
    TerminationCondition,
)
from moothall.machines.debate.state import Debate
from moothall.performers.agents import AgentPerformer
from moothall.performers.tools import ToolPerformer
from moothall.runtime.drive import drive
from moothall.runtime.hall import Bindings, Hall, begin
from moothall.runtime.journal import Record
from moothall.runtime.ports import Performer
from moothall.stores.memory import MemoryStore

CHECK = "accepts"
ATTEMPT = 60.0
"""Seconds within which an attempt is made again; a round has more."""


class Draft(NamedTuple):
    """What an agent says: its answer, "" where it cannot be read, how sure it is, and how long the text was."""

    answer: str
    confidence: float = 50.0
    characters: int = 0


class Panel(NamedTuple):
    """A question: what counts as an answer, and what each agent says first and after each round."""

    answers: Answers
    drafts: Mapping[str, Callable[[int, Mapping[str, str]], Draft]]
    """By agent: a draft from the number of those before and the others' current answers."""
    check: Callable[[str], bool] | None = None


class Played(NamedTuple):
    """How a debate went: its answer, what was said and shown to others, how many drafts and reviews there were."""

    answer: str
    characters: int
    drafts: int
    refinements: int
    reviews: int
    checks: int
    judgements: int


class PanelModel:
    """A Model that answers for a whole panel."""

    def __init__(self, panel: Panel) -> None:
        self.panel = panel
        self.said: dict[str, list[Draft]] = {name: [] for name in panel.drafts}
        self.before: dict[str, str] = {}
        self.reviews = self.checks = self.shown = self.judgements = 0

    async def reply(self, request: Request) -> Reply:
        if "You review" in request.prompt:
            self.reviews += len(self.said) - 1
            self.before = {name: drafts[-1].answer for name, drafts in self.said.items() if drafts}
            self.shown += sum(drafts[-1].characters for name, drafts in self.said.items() if name != request.agent)
            return Reply(value={"reviews": []})
        if "Propose a solution" in request.prompt or "Refine your own" in request.prompt:
            is_repair = bool(request.messages)
            return Reply(value=_value(self.said[request.agent][-1]) if is_repair else self.draft(request.agent))
        if "After round" in request.prompt:
            self.judgements += 1
            return Reply(value={"confidence": 100})
        assert request.schema is not None
        leaders = request.schema["properties"]["answer"]["enum"]
        return Reply(value={"description": "counted", "answer": leaders[0], "confidence": 50})

    def draft(self, name: str) -> Any:
        others = {other: answer for other, answer in self.before.items() if other != name}
        draft = self.panel.drafts[name](len(self.said[name]), others)
        self.said[name].append(draft)
        return _value(draft)

    async def accepts(self, answer: str, problem: str) -> bool:
        assert self.panel.check is not None
        self.checks += 1
        return self.panel.check(answer)


def _value(draft: Draft) -> dict[str, Any]:
    return {"text": "see the record", "answer": draft.answer or "?", "confidence": draft.confidence}


class HastyClock:
    """Time that nobody waits for: another attempt is made at once, and no round is ever late."""

    def now(self) -> float:
        return 0.0

    async def wait_until(self, moment: float) -> None:
        if moment > ATTEMPT:
            await asyncio.Event().wait()


async def play(panel: Panel, protocol: Protocol, rounds: int) -> Played:
    """One debate through the whole machine."""
    model = PanelModel(panel)
    chosen = DebateConfig(
        rounds=rounds,
        terminationCondition=TerminationCondition("fixed" if protocol == "debate" else "convergence"),
        summarization=Summarization(enabled=False),
        protocol=protocol,
        answer=panel.answers,
        check=CHECK if panel.check is not None and protocol == "gated" else "",
    )
    seats = tuple(AgentConfig(name, role="") for name in panel.drafts)
    judge = AgentConfig("judge", role="")
    data = begin_debate(Debate("A recorded question.", configuration=Configuration(seats, judge, chosen)))
    machine = debate(size_of(data))
    asked = AgentPerformer({}, model, machine.shapes, prompts=machine.prompts)
    performers = {
        AskAgent.kind: Performer(AskAgent, asked),
        CallTool.kind: Performer(CallTool, ToolPerformer({CHECK: model.accepts})),
    }
    hall = Hall(MemoryStore(), HastyClock(), {})
    hall.bind("bench", Bindings(performers))
    await begin(hall, Record("bench", machine.name, machine.digest, 0.0), machine, data)
    ended = (await drive(hall, "bench")).snapshot
    assert ended.active == ("Complete",) or not ended.data.is_answered, ended
    drafts = [draft for said in model.said.values() for draft in said]
    return Played(
        ended.data.solution.answer if ended.data.is_answered else "",
        sum(draft.characters for draft in drafts) + model.shown,
        sum(bool(said) for said in model.said.values()),
        sum(len(said) - 1 for said in model.said.values() if said),
        model.reviews,
        model.checks,
        model.judgements,
    )
