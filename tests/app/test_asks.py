"""Asks that a move makes: told apart by their ids, of agents that no table names, each in a manner of its own."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from moothall import (
    All,
    AskAgent,
    Budget,
    DefinitionError,
    EffectFailed,
    Exhausted,
    Final,
    GaveUp,
    Machine,
    Move,
    On,
    Outcome,
    Replied,
    Returned,
    State,
    Window,
    always,
    ask,
    call,
    emitting,
    keep_said,
    resume,
    run,
    turn_of,
)
from moothall.agents.ports import Reply, Request
from moothall.app.config.access import opened
from moothall.app.config.models import is_offline
from moothall.app.kinds.bindings import RunModels
from moothall.app.runs.moothall import wait_for
from moothall.kernel.effects import StartChild
from tests.models.asking import request

PROMPTS = {"propose": "Propose an answer to: {topic}", "brief": "Begin with {topic}. So far:\n{talk}"}


@dataclass(frozen=True)
class Proposal:
    answer: str
    sure: float = 0.5


@dataclass(frozen=True)
class Panel:
    topic: str
    members: tuple[str, ...] = ()
    said: Mapping[str, Any] = field(default_factory=dict)
    lost: tuple[str, ...] = ()


@emitting(AskAgent, most=5)
def ask_members(panel: Panel, _: object) -> Move[Panel]:
    asks = [AskAgent(name, "propose", {"topic": panel.topic}, "Proposal", id=f"ask-{name}") for name in panel.members]
    return Move(panel, effects=tuple(asks))


def keep(panel: Panel, replied: Replied) -> Panel:
    return replace(panel, said={**panel.said, replied.id: replied.value.answer})


def lose(panel: Panel, event: GaveUp | Exhausted) -> Panel:
    return replace(panel, lost=(*panel.lost, event.id))


def all_in(panel: Panel, _: object) -> bool:
    return len(panel.said) + len(panel.lost) == len(panel.members)


PANEL = Machine(
    "panel",
    data=Panel,
    replies=[Proposal],
    prompts=PROMPTS,
    states=[State("proposing", enter=ask_members), Final("settled")],
    moves=[
        On("proposing", Replied, do=keep, at_most=5),
        On("proposing", GaveUp, do=lose, at_most=5),
        On("proposing", Exhausted, do=lose, at_most=5),
        On("proposing", always, to="settled", when=all_in),
    ],
)


async def optimist(prompt: str) -> Proposal:
    return Proposal(f"yes to {prompt}")


async def broken(prompt: str) -> Proposal:
    raise EffectFailed("out of order", final=True)


def entries_of(outcome: Outcome) -> list[Mapping[str, Any]]:
    with opened(None) as store:
        return wait_for(store.entries(outcome.run))


def effects_of(outcome: Outcome) -> list[dict[str, Any]]:
    return [effect["effect"] for entry in entries_of(outcome) for effect in entry["effects"]]


def test_agents_that_no_table_names_are_told_apart_by_their_ids() -> None:
    outcome = run(PANEL, Panel("tides", ("ann", "bob")), agents={"ann": optimist, "bob": optimist})
    asked = "yes to Propose an answer to: tides"
    assert outcome.status == "done", outcome.reason
    assert outcome.data.said == {"ask-ann": asked, "ask-bob": asked}


def test_an_ask_that_failed_says_which_it_was() -> None:
    outcome = run(PANEL, Panel("tides", ("ann", "bob")), agents={"ann": optimist, "bob": broken})
    assert (set(outcome.data.said), outcome.data.lost) == ({"ask-ann"}, ("ask-bob",))


def test_an_ask_that_the_budget_denied_says_which_it_was() -> None:
    agents = dict.fromkeys(("ann", "bob", "cyd"), optimist)
    outcome = run(PANEL, Panel("tides", tuple(agents)), agents=agents, budget=Budget(calls=2))
    assert (set(outcome.data.said), outcome.data.lost) == ({"ask-ann", "ask-bob"}, ("ask-cyd",))


def test_whoever_is_asked_is_played_by_the_model_of_the_run() -> None:
    outcome = run(PANEL, Panel("tides", ("ann", "bob", "cyd")), model="rehearsal")
    assert set(outcome.data.said) == {"ask-ann", "ask-bob", "ask-cyd"}


def test_the_journal_has_the_name_of_a_prompt_and_nothing_that_was_left_to_the_run() -> None:
    outcome = run(PANEL, Panel("tides", ("ann",)), model="rehearsal")
    assert effects_of(outcome) == [
        {
            "agent": "ann",
            "template": "propose",
            "arguments": {"topic": "tides"},
            "shape": "Proposal",
            "thread": "",
            "tools": [],
            "timeout": None,
            "id": "ask-ann",
        }
    ]


def test_a_run_that_is_resumed_decodes_replies_of_a_declared_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = run(PANEL, Panel("tides", ("ann", "bob")), model="rehearsal")
    again = resume(outcome.run, PANEL)
    assert (again.status, again.data) == ("done", outcome.data)


def test_more_asks_than_the_row_declares_are_refused() -> None:
    outcome = run(PANEL, Panel("tides", tuple("abcdef")), model="rehearsal")
    assert outcome.status == "failed"
    assert "ask.agent" in outcome.reason


def test_two_declared_replies_of_one_name_are_refused() -> None:
    other: Any = dataclass(frozen=True)(type("Proposal", (), {"__annotations__": {"text": str}}))
    machine = Machine("twice", states=[Final("end")], moves=[], replies=[Proposal, other])
    with pytest.raises(DefinitionError, match="two reply shapes are called 'Proposal'"):
        _ = machine.shapes


def test_a_prompt_that_wants_what_it_is_not_given_is_named() -> None:
    @emitting(AskAgent)
    def forget(data: Panel, _: object) -> AskAgent:
        return AskAgent("ann", "propose", {"title": "tides"})

    machine = Machine(
        "forgetful",
        data=Panel,
        prompts=PROMPTS,
        states=[State("asking", enter=forget), Final("end")],
        moves=[On("asking", Replied, to="end")],
    )
    outcome = run(machine, Panel("tides"), model="rehearsal")
    assert "wants the argument 'topic'; it was given title" in outcome.reason


# how an agent is asked


def _talk(**manner: Any) -> Machine:
    return Machine(
        "talk",
        data=Panel,
        roles={"critic": {"systemMessage": "You find faults.", "reminder": "Be brief."}},
        states=[
            State("first", enter=ask("ann", "Begin: {topic}", thread="panel")),
            State("second", enter=ask("bob", "Reply to that.", thread="panel", **manner)),
            State("third", enter=ask("ann", "And you?", thread="panel")),
            Final("end"),
        ],
        moves=[
            On("first", Replied, to="second", do=keep_said("panel")),
            On("second", Replied, to="third", do=keep_said("panel")),
            On("third", Replied, to="end", do=keep_said("panel")),
        ],
    )


def test_agents_that_share_a_thread_see_each_other_by_name() -> None:
    heard: dict[str, list[str]] = {"ann": [], "bob": []}

    async def ann(prompt: str) -> str:
        heard["ann"].append(prompt)
        return f"ann {len(heard['ann'])}"

    async def bob(prompt: str) -> str:
        heard["bob"].append(prompt)
        return "bob 1"

    outcome = run(_talk(role="critic"), Panel("tides"), agents={"ann": ann, "bob": bob})
    assert outcome.status == "done", outcome.reason
    assert heard["bob"] == ["You find faults.\n\nann: ann 1\n\nReply to that.\n\nBe brief."]
    assert heard["ann"] == ["Begin: tides", "ann 1\n\nbob: bob 1\n\nAnd you?"]


def test_a_role_that_nobody_knows_is_named_with_a_guess() -> None:
    outcome = run(_talk(role="critik"), Panel("tides"), model="rehearsal")
    assert "no role is called 'critik'; did you mean 'critic'?" in outcome.reason


def test_attempts_of_one_ask_are_counted_as_it_says() -> None:
    tries: list[str] = []

    async def bob(prompt: str) -> str:
        tries.append(prompt)
        raise EffectFailed("busy")

    async def ann(prompt: str) -> str:
        return "well"

    outcome = run(_talk(attempts=1), Panel("tides"), agents={"ann": ann, "bob": bob})
    assert (outcome.status, len(tries)) == ("failed", 1)


def test_what_was_said_in_a_thread_can_stand_in_a_prompt(tmp_path: Path) -> None:
    @emitting(AskAgent)
    def sum_up(panel: Panel, _: object) -> AskAgent:
        return AskAgent("cyd", "brief", {"topic": panel.topic}, windows={"talk": Window("panel", last=1)})

    talk = _talk()
    machine = Machine(
        "summed",
        data=Panel,
        prompts=PROMPTS,
        states=[*talk.states[:1], State("second", enter=sum_up), Final("end")],
        moves=[talk.moves[0], On("second", Replied, to="end", do=lambda panel, said: replace(panel, topic=said.text))],
    )

    async def echo(prompt: str) -> str:
        return prompt

    outcome = run(machine, Panel("tides"), agents={"ann": echo, "cyd": echo})
    assert outcome.data.topic == "Begin with tides. So far:\nann: Begin: tides"
    assert effects_of(outcome)[-1]["windows"] == {"talk": {"thread": "panel", "last": 1}}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"level": "clever"}, "level is one of base, smart, fast, not 'clever'"),
        ({"attempts": 0}, "attempts is a whole number of at least 1, not 0"),
        ({"temperature": -1}, "temperature is a number of at least 0, not -1"),
        ({"thread": "x", "tools": ["search"]}, "an agent with tools has a thread of its own"),
    ],
)
def test_a_manner_that_makes_no_sense_is_refused_in_the_table(given: dict[str, Any], why: str) -> None:
    with pytest.raises(DefinitionError, match=why):
        ask("ann", "Hello", **given)


@pytest.mark.parametrize("name", ["rehearsal", "scripted:x.json", "cassette:x.jsonl,mode=replay"])
def test_a_run_that_is_played_offline_asks_nobody_else(name: str) -> None:
    assert is_offline(name)


class Echo:
    """A model that says its name."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def reply(self, request: Request) -> Reply:
        return Reply(self.name)


def test_an_ask_may_name_its_model_and_who_stands_in_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    opened_names: list[str] = []

    def open_named(name: str) -> Echo:
        opened_names.append(name)
        return Echo(name)

    monkeypatch.setattr("moothall.app.kinds.bindings.open_model", open_named)
    plain, named = AskAgent("ann", "Hi"), AskAgent("ann", "Hi", model="google:large", fallback=("openai:spare",))

    def said(models: RunModels, asked: AskAgent, level: str) -> Reply:
        return asyncio.run(models(asked, level).reply(request()))

    models = RunModels("openai:small")
    chain = "google:large|openai:spare"
    assert said(models, plain, "smart") == Reply("openai:small")
    assert said(models, named, "base") == Reply(chain, model=chain)
    assert said(RunModels("rehearsal"), named, "base") == Reply("rehearsal")
    assert opened_names == ["openai:small", chain, "rehearsal"]


def test_an_ask_with_tools_that_a_move_makes_ends_with_its_id() -> None:
    async def weather(place: str) -> str:
        """The weather at a place."""
        return "mild"

    async def ann(prompt: str) -> str:
        return "take a coat"

    @emitting(StartChild, most=2)
    def ask_with_tools(panel: Panel, _: object) -> StartChild:
        return turn_of(AskAgent("ann", "Advise on {topic}", {"topic": panel.topic}, id="advice"), [weather])

    machine = Machine(
        "advised",
        data=Panel,
        states=[
            State("looking", enter=call(weather, "topic")),
            State("asking", enter=ask_with_tools),
            Final("end"),
        ],
        moves=[
            On("looking", Returned, to="asking"),
            On("looking", GaveUp, to="asking"),
            On("asking", Replied, to="end", do=lambda panel, said: replace(panel, said={said.id: said.text})),
        ],
        events=[Returned],
    )
    outcome = run(machine, Panel("rain"), agents={"ann": ann})
    assert outcome.status == "done", outcome.reason
    assert outcome.data.said == {"advice": "take a coat"}


def test_a_journal_of_asks_is_plain_json() -> None:
    outcome = run(PANEL, Panel("tides", ("ann", "bob")), model="rehearsal")
    ids = [entry["event"].get("id") for entry in entries_of(outcome)]
    assert json.dumps(ids) == '[null, "ask-ann", "ask-bob"]'


JOINED = Machine(
    "joined",
    data=Panel,
    replies=[Proposal],
    prompts=PROMPTS,
    states=[State("proposing", enter=ask_members), Final("settled")],
    moves=[*PANEL.moves[:3], On("proposing", All(Replied), to="settled")],
)


@pytest.mark.parametrize(
    ("members", "calls", "lost"),
    [
        (("ann", "bob", "cyd"), 9, set()),
        (("ann", "bad", "cyd"), 9, {"ask-bad"}),
        (("ann", "bob", "cyd"), 1, None),
        ((), 9, set()),
    ],
)
def test_a_durable_run_goes_on_when_every_ask_has_ended(
    members: tuple[str, ...], calls: int, lost: set[str] | None
) -> None:
    agents = {"ann": optimist, "bob": optimist, "cyd": optimist, "bad": broken}
    outcome = run(JOINED, Panel("tides", members), agents=agents, budget=Budget(calls=calls))
    assert (outcome.status, outcome.states) == ("done", ("settled",)), outcome.reason
    assert {*outcome.data.said, *outcome.data.lost} == {f"ask-{name}" for name in members}
    assert lost is None or set(outcome.data.lost) == lost
