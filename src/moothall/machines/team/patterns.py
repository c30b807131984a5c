"""Ways in which personas work together, each a machine of its own that a conversation may start beside itself.

handoff, approval chain with rework, direct conversation of several turns, parallel panel with synchronisation,
delegation to a sub-team, broadcast. A debate is the debate's own machine. All of them take personas of one team.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import lru_cache
from typing import Any

from moothall.agents.ask import AskAgent, Replied, Window
from moothall.agents.thread import said_by
from moothall.errors import Refused
from moothall.kernel.effects import StartChild
from moothall.kernel.events import ChildDone, Event, GaveUp
from moothall.kernel.frozen import Frozen
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import All, Final, On, State, emitting
from moothall.kernel.step import Append, Move
from moothall.machines.team.approvals import Chain
from moothall.machines.team.definition import Roster
from moothall.machines.team.directives import REQUEST_REWORK
from moothall.machines.team.floor import reply_of

KIND = "team"
MOST = 12
"""The most personas of one pattern."""
ROUNDS = 12
SUB_TEAM = "team-panel"
THREAD = "talk"
PROMPT = "{flag}{task}\n\n{talk}\n\nIt is your turn."


class Pattern(Frozen):
    """A pattern by name: its machine, what it does, and how many personas it needs."""

    name: str
    machine: str
    help: str
    least: int = 2


PATTERNS: Mapping[str, Pattern] = {
    pattern.name: pattern
    for pattern in (
        Pattern("handoff", "team-handoff", "one hands a brief to another, who takes or declines it"),
        Pattern("approval", "team-approval", "work passes down a chain; each approves it or sends it back"),
        Pattern("talk", "team-talk", "two talk with each other for several turns"),
        Pattern("panel", "team-panel", "several answer at once, and one puts it together", 2),
        Pattern(
            "delegation", "team-delegation", "one splits a task, a sub-team does the parts, one puts it together", 2
        ),
        Pattern("broadcast", "team-broadcast", "everybody is told, and says what it means for them"),
    )
}


class Together(Frozen):
    """What personas do together: the task, who takes part, whose turn it is, and what was said."""

    task: str = ""
    source: str = "studio"
    personas: tuple[str, ...] = ()
    turns: int = 6
    place: int = 0
    asked: int = 0
    waiting: tuple[str, ...] = ()
    said: Mapping[str, str] = field(default_factory=dict)
    lost: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    chain: Chain = Chain()
    reworks: int = 0
    flag: str = ""
    outcome: str = ""

    def __post_init__(self) -> None:
        if len(self.personas) > MOST:
            raise Refused(f"{len(self.personas)} personas are too many for this; name at most {MOST}")


def pattern_input(roster: Roster, source: str, pattern: Pattern, text: str) -> tuple[str, Mapping[str, Any]]:
    """The machine of a pattern and what it begins with: `A, B: task`; without names the first of the team."""
    names, colon, task = text.partition(":")
    given = [name.strip() for name in names.split(",")] if colon else []
    if not colon or not all(name in roster.personas for name in given):
        given, task = [persona.id for persona in roster.team.personas][:3], text
    if len(given) < pattern.least:
        raise Refused(f"{pattern.name} needs {pattern.least} personas; write A, B: task")
    return pattern.machine, {"task": task.strip(), "source": source, "personas": tuple(given)}


def _ask(data: Together, persona: str, flag: str = "", task: str = "") -> AskAgent:
    return AskAgent(
        persona,
        "together",
        {"flag": f"{flag}\n\n" if flag else "", "task": task or data.task},
        "Any",
        id=f"{persona}-{data.asked + 1}",
        system=f"persona:{data.source}:{persona}",
        windows={"talk": Window(THREAD)},
    )


def _content(replied: Replied) -> str:
    reply = reply_of(replied)
    return str(reply.get("content", "")) if isinstance(reply, Mapping) else str(reply)


def _wants_rework(replied: Replied) -> bool:
    reply = reply_of(replied)
    return isinstance(reply, Mapping) and reply.get("transition") == REQUEST_REWORK and bool(reply.get("rework_reason"))


def is_declined(_: Together, replied: Replied) -> bool:
    return _wants_rework(replied)


def keep(data: Together, replied: Replied) -> Move[Together]:
    text = _content(replied)
    data = replace(data, said={**data.said, replied.agent: text}, outcome=text)
    return Move(data, appends=(Append(THREAD, said_by(replied.agent, text)),))


def lose(data: Together, event: GaveUp) -> Together:
    return replace(data, lost=(*data.lost, event.id.rpartition("-")[0] or event.id))


@emitting(AskAgent)
def ask_current(data: Together, _: Event) -> Move[Together]:
    persona = data.personas[data.place % len(data.personas)]
    return Move(replace(data, asked=data.asked + 1, flag=""), (_ask(data, persona, data.flag),))


@emitting(AskAgent, most=MOST)
def ask_everybody(data: Together, _: Event) -> Move[Together]:
    asks = tuple(_ask(data, persona) for persona in data.personas)
    return Move(replace(data, asked=data.asked + 1), asks)


@emitting(AskAgent)
def ask_last(data: Together, _: Event) -> Move[Together]:
    task = f"Put together what was said about: {data.task}"
    return Move(replace(data, asked=data.asked + 1), (_ask(data, data.personas[0], task=task),))


def pass_on(data: Together, replied: Replied) -> Move[Together]:
    moved = keep(data, replied)
    return replace(moved, data=replace(moved.data, place=moved.data.place + 1))


def is_over(data: Together, _: Event) -> bool:
    return data.place + 1 >= min(data.turns, ROUNDS)


# approval chain


def approve(data: Together, replied: Replied) -> Move[Together]:
    """Whoever stands at this place approves what came before, and adds work of their own."""
    moved = keep(data, replied)
    before = data.personas[data.place - 1] if data.place else ""
    chain = data.chain.approved(replied.agent, before) if before else data.chain
    chain = chain.made(replied.agent, _content(replied), before)
    return replace(moved, data=replace(moved.data, chain=chain, place=data.place + 1))


def send_back(data: Together, replied: Replied) -> Move[Together]:
    """The work goes back to its author; approvals of it and of what is based on it are void."""
    moved, before = keep(data, replied), data.personas[data.place - 1]
    flag = f"REWORK: {replied.agent} sends your work back: {reply_of(replied)['rework_reason']}"
    data = replace(moved.data, chain=data.chain.sent_back(before), place=data.place - 1, reworks=data.reworks + 1)
    return replace(moved, data=replace(data, flag=flag))


def can_send_back(data: Together, replied: Replied) -> bool:
    return data.place > 0 and _wants_rework(replied)


def is_last(data: Together, _: Event) -> bool:
    return data.place + 1 >= len(data.personas)


# delegation


def split(data: Together, replied: Replied) -> Move[Together]:
    moved = keep(data, replied)
    lines = [line.strip(" -*\t") for line in _content(replied).splitlines()]
    parts = tuple(line for line in lines if line)[: len(data.personas) - 1] or (data.task,)
    return replace(moved, data=replace(moved.data, parts=parts))


@emitting(StartChild)
def delegate(data: Together, _: Event) -> Move[Together]:
    """A sub-team does the parts: a run of its own."""
    team = data.personas[1:] or data.personas
    given = {"task": "\n".join(data.parts), "source": data.source, "personas": list(team)}
    return Move(data, (StartChild(SUB_TEAM, given, "sub_team"),))


delegate.child = SUB_TEAM  # type: ignore[attr-defined]


def keep_sub_team(data: Together, done: ChildDone) -> Move[Together]:
    text = str((done.data or {}).get("outcome", "")) if isinstance(done.data, Mapping) else str(done.data)
    return Move(replace(data, outcome=text), appends=(Append(THREAD, said_by("sub_team", text)),))


def _result(data: Together) -> Mapping[str, Any]:
    return {
        "outcome": data.outcome,
        "said": dict(data.said),
        "approvals": [[known.by, known.author, known.digest] for known in data.chain.approvals],
        "reworks": data.reworks,
        "lost": list(data.lost),
    }


Builder = Callable[[], tuple[list[Any], list[On]]]


def _handoff() -> tuple[list[Any], list[On]]:
    return (
        [
            State("briefing", enter=ask_current),
            State("taking", enter=ask_current),
            Final("taken"),
            Final("declined"),
        ],
        [
            On("briefing", Replied, to="taking", do=pass_on),
            On("briefing", GaveUp, to="declined", do=lose),
            On("taking", Replied, to="declined", when=is_declined, do=keep),
            On("taking", Replied, to="taken", do=keep),
            On("taking", GaveUp, to="declined", do=lose),
        ],
    )


def _approval() -> tuple[list[Any], list[On]]:
    return (
        [State("working", enter=ask_current, max_visits=ROUNDS * 2), Final("approved"), Final("open")],
        [
            On("working", Replied, to="working", when=can_send_back, do=send_back, at_most=ROUNDS),
            On("working", Replied, to="approved", when=is_last, do=approve),
            On("working", Replied, to="working", do=approve),
            On("working", GaveUp, to="open", do=lose),
        ],
    )


def _talk() -> tuple[list[Any], list[On]]:
    return (
        [State("talking", enter=ask_current, max_visits=ROUNDS + 1), Final("said")],
        [
            On("talking", Replied, to="said", when=is_over, do=pass_on),
            On("talking", Replied, to="talking", do=pass_on),
            On("talking", GaveUp, to="said", do=lose),
        ],
    )


def _panel() -> tuple[list[Any], list[On]]:
    return (
        [State("answering", enter=ask_everybody), State("joining", enter=ask_last), Final("joined")],
        [
            On("answering", Replied, do=keep, at_most=MOST),
            On("answering", GaveUp, do=lose, at_most=MOST),
            On("answering", All(Replied), to="joining"),
            On("joining", Replied, to="joined", do=keep),
            On("joining", GaveUp, to="joined", do=lose),
        ],
    )


def _broadcast() -> tuple[list[Any], list[On]]:
    return (
        [State("telling", enter=ask_everybody), Final("told")],
        [
            On("telling", Replied, do=keep, at_most=MOST),
            On("telling", GaveUp, do=lose, at_most=MOST),
            On("telling", All(Replied), to="told"),
        ],
    )


def _delegation() -> tuple[list[Any], list[On]]:
    return (
        [
            State("splitting", enter=ask_current),
            State("delegating", enter=delegate),
            State("joining", enter=ask_last),
            Final("joined"),
            Final("lost"),
        ],
        [
            On("splitting", Replied, to="delegating", do=split),
            On("splitting", GaveUp, to="lost", do=lose),
            On("delegating", ChildDone, to="joining", do=keep_sub_team),
            On("delegating", GaveUp, to="lost", do=lose),
            On("joining", Replied, to="joined", do=keep),
            On("joining", GaveUp, to="lost", do=lose),
        ],
    )


_BUILDERS: Mapping[str, Builder] = {
    "team-handoff": _handoff,
    "team-approval": _approval,
    "team-talk": _talk,
    "team-panel": _panel,
    "team-broadcast": _broadcast,
    "team-delegation": _delegation,
}


@lru_cache
def pattern_machine(name: str) -> Machine | None:
    """The machine of a pattern, by its name."""
    if name not in _BUILDERS:
        return None
    states, moves = _BUILDERS[name]()
    return Machine(
        name,
        data=Together,
        kind=KIND,
        replies=[Any],
        prompts={"together": PROMPT},
        result=_result,
        states=states,
        moves=moves,
    )
