"""How a conversation stands: for programs, and in the words of the terminal."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from moothall.app.report.section import Section, Table, Talk, Tree
from moothall.app.runs.outcome import Outcome
from moothall.kernel.codec import encode
from moothall.machines.team.definition import AWAIT_APPROVAL, USER_STATES, Roster
from moothall.machines.team.directives import APPROVE_AND_HANDOFF, CONTINUE, HANDOFF_TO_AGENT
from moothall.machines.team.floor import held_work
from moothall.machines.team.state import THREAD, TRANSITIONS, Conversation
from moothall.machines.team.warmth import Warm
from moothall.runtime.ports import Store

WIDTH = 80
CLOSED = "the conversation is closed"
FINISHED = (CONTINUE, HANDOFF_TO_AGENT, APPROVE_AND_HANDOFF, "RETURN")
"""How the word comes to the user without any reason but that it is their turn."""


async def messages_of(store: Store, run: str, thread: str) -> list[Any]:
    """What stands in a thread of a run, the oldest first."""
    entries = await store.entries(run)
    appends = (append for entry in entries for append in entry.get("appends", ()))
    return [append["message"] for append in appends if append["thread"] == thread]


async def result_of(store: Store, roster: Roster, outcome: Outcome) -> dict[str, Any]:
    """The result of a conversation, for programs."""
    data: Conversation = outcome.data
    moves = await messages_of(store, outcome.run, TRANSITIONS)
    return {
        "run_id": outcome.run,
        "status": outcome.status,
        "states_visited": [move["to"] for move in moves],
        "transitions": [{name: move[name] for name in ("from", "to", "by", "layer", "reason")} for move in moves],
        "approvals": encode(data.chain.approvals),
        "rework": data.reworks,
        "facts": encode(data.facts),
        "usage": dict(outcome.spent),
        "reason": CLOSED if outcome.status == "done" else data.reason or outcome.reason,
        "mode": data.mode,
        "current_state": data.place,
        "waiting": waiting_lines(roster, data),
        "questions": [
            {"id": question.id, "run": question.run, "prompt": question.prompt} for question in outcome.questions
        ],
    }


def figures(data: Conversation, moves: list[Any]) -> dict[str, Any]:
    """Turns, transitions and how many of them had been taken before, and what preparing brought."""
    pairs = [(move["from"], move["to"]) for move in moves]
    repeated = len(pairs) - len(set(pairs))
    return {
        "turns": data.turn,
        "transitions": len(pairs),
        "repeated_transition_rate": round(repeated / len(pairs), 3) if pairs else 0.0,
        "reworks": data.reworks,
        "approvals": len(data.chain.approvals),
        "personas_visited": len(data.visits),
        "warmed": data.warmed,
        "warm_used": data.used_warm,
        "warm_wasted": data.wasted,
        "summaries": len(data.memory.summaries),
        "key_decisions": len(data.memory.key),
    }


def joined_figures(before: Mapping[str, Any], figures: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of several conversations: sums, and the rate over all their transitions."""
    rate = "repeated_transition_rate"
    joined = {name: before.get(name, 0) + count for name, count in figures.items() if name != rate}
    repeated = sum(round(known.get(rate, 0) * known.get("transitions", 0)) for known in (before, figures))
    return {**joined, rate: round(repeated / joined["transitions"], 3) if joined["transitions"] else 0.0}


async def transcript_of(store: Store, run: str, roster: Roster) -> str:
    """The conversation as Markdown."""
    said = await messages_of(store, run, THREAD)
    lines = [f"**{speaker_name(roster, message['by'])}**: {message['text']}" for message in said]
    return "\n\n".join([f"# {roster.team.team_name}", *lines]) + "\n"


def sections_of(roster: Roster, data: Conversation, said: list[Any], moves: list[Any]) -> tuple[Section, ...]:
    """What the report of a conversation adds."""
    talk = tuple((speaker_name(roster, message["by"]), message["text"]) for message in said)
    changes = tuple((move["from"], move["to"], move["by"], move["layer"], move["reason"]) for move in moves)
    approvals = tuple((known.author, known.by, known.digest[:8]) for known in data.chain.approvals)
    sections = (
        Section("The conversation", (Talk(talk),) if talk else ()),
        Section("Where it stands", (Tree(state_tree(roster, data)),)),
        Section("Approvals", (Table(("author", "approved by", "hash"), approvals),) if approvals else ()),
        Section("Changes of state", (Table(("from", "to", "by", "layer", "reason"), changes),) if changes else ()),
    )
    return tuple(section for section in sections if section.parts)


def speaker_name(roster: Roster, who: str) -> str:
    """How somebody is called who said something."""
    persona = roster.personas.get(who)
    return persona.name if persona is not None else {"user": "You"}.get(who, who)


def indented(text: str) -> str:
    """What somebody said, so that no line of it looks like one of ours."""
    return "\n    ".join(text.splitlines())


def state_name(roster: Roster, place: str) -> str:
    """How a state is called in the terminal: `CEO_State`."""
    persona = roster.personas.get(place)
    name = "".join(part[:1].upper() + part[1:] for part in persona.name.split()) if persona is not None else place
    return f"{name}_State"


def change_line(roster: Roster, move: Mapping[str, Any]) -> str:
    """The line of a change: where the conversation stands, and where it goes."""
    return f"Current State: [{state_name(roster, move['from'])}] → Pending: {state_name(roster, move['to'])}"


def reason_line(move: Mapping[str, Any], reason: str) -> str:
    """Why it is the user's turn; "" where somebody has simply finished. What waits for approval is always told."""
    if move["to"] == AWAIT_APPROVAL:
        return f"— {indented(reason)} (!approve or !rework)"
    return f"— {indented(reason)}" if move["to"] in USER_STATES and move["event"] not in FINISHED and reason else ""


def status_line(roster: Roster, data: Conversation) -> str:
    """Where a conversation stands, in one line of a terminal."""
    pending = data.held.to if data.held is not None else data.returns[-1].to if data.returns else ""
    line = f"Current State: [{state_name(roster, data.place)}]"
    line += f" → Pending: {state_name(roster, pending)}" if pending else ""
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"


def state_tree(roster: Roster, data: Conversation) -> str:
    """Where a conversation stands in its team, who is warm, and what goes on beside; for `!state`."""
    lines = [status_line(roster, data)]
    lines += _around(roster.tree(), roster.paths.get(data.place, ()), data.place, 0)
    if data.warmth.warm:
        lines.append(f"warm: {', '.join(map(_warm_line, data.warmth.warm))}")
    if data.stack:
        lines.append(f"work goes back to: {' ← '.join(data.stack)}")
    lines += [f"approved: {known.author} by {known.by} ({known.digest[:8]})" for known in data.chain.approvals]
    lines += [f"fact {name}: {fact.value!r} ({fact.source})" for name, fact in sorted(data.facts.items())]
    lines += [f"beside: {known.machine} as {name}: {known.ended or 'goes on'}" for name, known in data.beside.items()]
    waiting = waiting_lines(roster, data)
    reason = indented(data.reason) or ("" if waiting else "nothing waits")
    lines.append("; ".join(filter(None, (f"mode: {data.mode}", f"turn {data.turn}", reason))))
    return "\n".join([*lines, *waiting])


def waiting_lines(roster: Roster, data: Conversation) -> list[str]:
    """All that waits for the user in the conversation itself, and how it is decided."""
    waiting = []
    if data.proposed:
        waiting.append(
            f"{data.proposed}: !approve starts it" + ("" if data.place in USER_STATES else " after this turn")
        )
    if data.held is not None:
        speaker, target = speaker_name(roster, data.speaker), speaker_name(roster, data.held.to)
        what = f"the {held_work(data)} of {speaker}" + (f" (next: {target})" if target != speaker else "")
        first = "then " if data.proposed else ""
        how = "!approve, or !rework WHY" if data.place == AWAIT_APPROVAL else "!continue lets it go on"
        waiting.append(f"{what}: {first}{how}")
    elif data.place == AWAIT_APPROVAL and not data.proposed:
        waiting.append(f"{data.line.phase if data.line else 'what was said'}: !approve, or say what has to change")
    return [f"waiting for you: {indented(line)}" for line in waiting]


def _warm_line(known: Warm) -> str:
    """Who is warm, since when and how sure that was."""
    at = time.strftime("%H:%M:%S", time.localtime(known.at)) if known.at else "being prepared"
    return f"{known.persona} (since turn {known.since}, {at}, {known.confidence:.0%})"


def _around(tree: Mapping[str, Any], path: Sequence[str], place: str, depth: int) -> list[str]:
    """The groups, of which only those on the way to the place are opened, so that a large team fits a screen."""
    lines = []
    for name, inside in tree.items():
        is_on_way = bool(path) and path[0] == name
        mark = "▸" if is_on_way or name == place else " "
        count = f" ({len(inside)})" if inside and not is_on_way else ""
        lines.append(f"{'  ' * depth}{mark} {name}{count}")
        if inside and is_on_way:
            lines += _around(inside, path[1:], place, depth + 1)
    return lines
