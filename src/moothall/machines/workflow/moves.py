"""The moves of a workflow's states: what is said, what is called, and which transition is taken.

A state that is entered does what it does; what it waits for ends in one event; then its transitions are judged. Every
text of the author goes to the engine, and what comes back is applied here: scripts change `common_data` and nothing
else. The rules:

- Conditions are tried in order, and only the transition that is taken does its `before`. A condition that fails is no
  "no": it is an error that names state, transition and expression.
- A reply's calls of tools are performed before transitions are tried. A transition from a state to itself that is taken
  because of them goes on with the same conversation: nothing is said again, and it is no new visit. So does a state
  whose conditions do not look at calls, until a reply has none.
- Where nothing matches and a condition reads a parsing tool that was not called, the agent is asked once to call it,
  unless the file says that the run then stops.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from moothall.agents.ask import Replied, Returned
from moothall.agents.conversation import (
    CLEAR,
    Converse,
    Message,
    Seat,
    called,
    failure_of,
    input_of,
    reply_of,
    result_of,
)
from moothall.kernel.codec import encode
from moothall.kernel.effects import Alarm, AskPerson, Effect, StartChild
from moothall.kernel.events import Answered, Cancelled, ChildDone, Event, Exhausted, GaveUp
from moothall.kernel.frozen import Frozen
from moothall.kernel.step import Append, Failed, Moment, Move, Value
from moothall.machines.assent import is_the_tools_own
from moothall.machines.turn import CALLS, may_be_called, why_not
from moothall.machines.workflow.plan import Duty, Piece, Plan, Way, needs, preparing
from moothall.machines.workflow.script import is_false, is_true
from moothall.machines.workflow.work import Acted, Again, Chosen, Post, Ready, Spoken, TimedOut, Work

NOTED = "noted"
"""What a call of a parsing tool returns: the call itself is the answer."""
SHOWN = 200


# entering a state


def enter(plan: Plan, duty: Duty, work: Work, event: Event, moment: Moment) -> Move[Work]:
    """Do what a state does when it is entered."""
    ready = work.ready.get(duty.name)
    if ready is None:
        work, ready, wrong = _prepared(plan, duty.preparing, work, moment)
        if wrong:
            return Move(work, error=wrong)
    others = {name: one for name, one in work.ready.items() if name != duty.name}
    visits = {**work.visits, duty.name: work.visits.get(duty.name, 0) + 1}
    work = replace(work, ready=others, posts={**work.posts, duty.name: Post()}, visits=visits)
    move = _begun(plan, duty, work, ready)
    if duty.state.timeout is None:
        return move
    late = TimedOut(f"{duty.name}: nothing came of it within {duty.state.timeout:g} s")
    return replace(move, effects=(*move.effects, Alarm(late, duty.state.timeout)))


def _begun(plan: Plan, duty: Duty, work: Work, ready: Ready) -> Move[Work]:
    done = (Acted(duty.number),)
    match duty.does:
        case "converse":
            assert duty.seat is not None
            return _said(plan, duty.seat, work, _told(duty.seat, ready.input), (_turn(duty, ready.input),))
        case "add":
            assert duty.seat is not None
            return replace(_said(plan, duty.seat, work, _told(duty.seat, ready.input)), raises=done)
        case "clear":
            assert duty.seat is not None
            return replace(_said(plan, duty.seat, work, [CLEAR]), raises=done)
        case "sub":
            assert duty.state.action is not None
            return Move(work, (StartChild(duty.state.action.sub_workflow, dict(ready.given), budget=_share(duty)),))
        case "ask":
            return Move(work, (_question(duty, ready.question),))
        case "nothing":
            return Move(work, raises=done)


def _told(seat: Seat, given: Any) -> list[Message]:
    return [] if given is None else [input_of(seat, _plain(given))]


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _turn(duty: Duty, told: Any = None) -> Converse:
    assert duty.seat is not None
    template, arguments = ("", {}) if told is None else ("{told}", {"told": told})
    tools = tuple(tool.name for tool in duty.tools)
    attempts = duty.state.retry.attempts if duty.state.retry is not None else Converse.attempts
    return Converse(duty.seat.agent, template, arguments, thread=duty.seat.thread, tools=tools, attempts=attempts)


def _share(duty: Duty) -> Mapping[str, float]:
    budget = duty.state.budget
    return {} if budget is None else {name: most for name, most in encode(budget).items() if most is not None}


def _question(duty: Duty, prompt: Any) -> AskPerson:
    ask = duty.state.ask
    assert ask is not None
    return AskPerson(_plain(prompt), encode(ask.schema), f"answer of {duty.name}", ask.within, ask.who)


def _said(
    plan: Plan, seat: Seat, work: Work, messages: Sequence[Message], effects: tuple[Effect, ...] = ()
) -> Move[Work]:
    """Add to a conversation."""
    if plan.is_read:
        work = replace(work, fresh={**work.fresh, seat.thread: (*work.fresh.get(seat.thread, ()), *messages)})
    return Move(work, effects, tuple(Append(seat.thread, message) for message in messages))


def _outside(work: Work) -> Work:
    """The same at the beginning of an event from outside: what was said before is kept in the threads by now."""
    return replace(work, fresh={}) if work.fresh else work


def _since(work: Work, event: Event) -> Work:
    """The same where a state is left: an error that a move made came amid an event, and what was said is still new."""
    return _outside(work) if isinstance(event, GaveUp | TimedOut | Cancelled) else work


# what a state waited for


def heard(plan: Plan, duty: Duty, work: Work, replied: Replied, moment: Moment) -> Move[Work]:
    """An agent replied: have its tools called, or judge."""
    assert duty.seat is not None
    seat, tools = duty.seat, {tool.name: tool for tool in duty.tools}
    parsing = [one for one in replied.calls if one.tool in duty.parsing]
    wanted = [one for one in replied.calls if one.tool not in duty.parsing]
    able = tuple(one for one in wanted[:CALLS] if may_be_called(one, tools, seat.agent))
    messages = [reply_of(seat, replied.text, replied.calls), *(result_of(seat, one, NOTED) for one in parsing)]
    messages += [failure_of(seat, one, why_not(one, tools, seat.agent)) for one in wanted if one not in able]
    spoken = Spoken(replied.text, tuple(map(called, replied.calls)), tuple(map(called, parsing)))
    work = replace(_outside(work), agents={**work.agents, seat.agent: spoken}, speaker=seat.agent)
    work = _at(work, duty, replace(_post(work, duty), open=able))
    effects = tuple(tools[one.tool].effect(seat.agent, one) for one in able)
    move = _said(plan, seat, work, messages, effects)
    return move if able else _decided(plan, duty, move, moment)


def returned(plan: Plan, duty: Duty, work: Work, event: Returned | GaveUp, moment: Moment) -> Move[Work]:
    """A tool came back, with a value or without: when all have, judge."""
    assert duty.seat is not None
    call = next(one for one in _post(work, duty).open if one.id == event.id)
    if isinstance(event, Returned):
        message = result_of(duty.seat, call, encode(event.value))
    else:
        message = failure_of(duty.seat, call, event.reason)
    left = tuple(one for one in _post(work, duty).open if one is not call)
    work = replace(_outside(work), speaker=duty.seat.agent)  # in a parallel state another may have spoken meanwhile
    move = _said(plan, duty.seat, _at(work, duty, replace(_post(work, duty), open=left)), [message])
    return move if left else _decided(plan, duty, move, moment)


def is_tool(duty: Duty, work: Work, event: Returned | GaveUp) -> bool:
    """Whether an event ends a call of a tool that the state waits for, and its agent can do something about it."""
    if isinstance(event, GaveUp) and not is_the_tools_own(work, event):
        return False
    return any(one.id == event.id for one in _post(work, duty).open)


def child_done(plan: Plan, duty: Duty, work: Work, event: ChildDone, moment: Moment) -> Move[Work]:
    """A sub-workflow came to its end."""
    return _judged(plan, duty, Move(replace(_outside(work), sub_workflow_result=event.data)), moment)


def answered(plan: Plan, duty: Duty, work: Work, event: Answered, moment: Moment) -> Move[Work]:
    """A person answered."""
    assert duty.state.ask is not None
    common = {**work.common_data, duty.state.ask.answer: _given(duty.state.ask.schema, encode(event.value))}
    return _judged(plan, duty, Move(replace(_outside(work), common_data=common)), moment)


def _given(schema: Mapping[str, Any], value: Any) -> Any:
    """An answer without the fields that were left open."""
    if not isinstance(value, dict):
        return value
    return {key: one for key, one in value.items() if one is not None or key in schema.get("required", ())}


def expired(plan: Plan, duty: Duty, work: Work, event: Event, moment: Moment) -> Move[Work]:
    """Nobody answered in time."""
    return Move(_outside(work), error=f"{duty.name}: nobody answered in time")


def acted(plan: Plan, duty: Duty, work: Work, event: Event, moment: Moment) -> Move[Work]:
    """A state that waits for nothing has done its part, or the states inside it have come to their end."""
    return _judged(plan, duty, Move(work), moment)


# going on with a conversation


def go_on(duty: Duty, work: Work, event: Event) -> Move[Work]:
    """Have the agent of a state go on."""
    return Move(work, (_turn(duty),))


def _decided(plan: Plan, duty: Duty, move: Move[Work], moment: Moment) -> Move[Work]:
    """Go on with the conversation where tools were called that no condition looks at; else judge."""
    spoken = move.data.agents[move.data.speaker]
    only_tools = bool(spoken.tool_calls) and not spoken.parsing_tool_calls
    return _again(duty, move) if only_tools and duty.goes_on else _judged(plan, duty, move, moment)


def _again(duty: Duty, move: Move[Work]) -> Move[Work]:
    post = _post(move.data, duty)
    if post.rounds >= duty.rounds:
        return replace(move, raises=(Exhausted("max_tool_rounds", duty.rounds, duty.name),))
    work = _at(move.data, duty, replace(post, rounds=post.rounds + 1))
    return replace(move, data=work, raises=(Again(duty.number),))


# judging


class Verdict(Frozen):
    """What the engine says to a batch: the choice (None: none), and the answers to conditions and texts."""

    index: int | None
    conditions: tuple[Mapping[str, Any], ...] = ()
    then: tuple[Mapping[str, Any], ...] = ()


def _judged(plan: Plan, duty: Duty, move: Move[Work], moment: Moment) -> Move[Work]:
    """Try the transitions of a state and take the first whose condition holds."""
    work, ways = move.data, duty.ways
    thens = [_then(plan, duty, way, work) for way in ways]
    choices = [(way.transition.condition, then) for way, then in zip(ways, thens, strict=True)]
    verdict, wrong = _asked(plan, work, choices, moment)
    if verdict is None:
        return replace(move, error=f"{duty.name}: {wrong}")
    if verdict.conditions and "reason" in verdict.conditions[-1]:
        at, reason = len(verdict.conditions) - 1, verdict.conditions[-1]["reason"]
        where = f"{duty.name}, transition {at + 1} to {ways[at].transition.target}"
        return replace(move, error=f"{where}: condition {_quoted(ways[at].transition.condition)} failed: {reason}")
    if verdict.index is None:
        return _unmatched(plan, duty, move, verdict)
    way, then = ways[verdict.index], thens[verdict.index]
    work, ready, wrong = _applied(work, then, verdict.then)
    move = replace(move, data=work)
    if wrong:
        return replace(move, error=wrong)
    if _is_continued(duty, way, work):
        return _again(duty, move)
    if way.prepares:
        work = replace(work, ready={**work.ready, way.prepares: ready})
    return replace(move, data=_left(work, duty), raises=(Chosen(duty.number, verdict.index),))


def _then(plan: Plan, duty: Duty, way: Way, work: Work) -> tuple[Piece, ...]:
    """What is evaluated when a transition is taken.

    One that only goes on leaves and enters nothing; a state that was visited too often is not entered either.
    """
    if _is_continued(duty, way, work):
        return way.then[: bool(way.transition.before)]
    target = plan.duties.get(way.prepares)
    if target is not None and work.visits.get(target.name, 0) >= target.visits:
        return way.then[: len(way.then) - len(target.preparing)]
    return way.then


def _is_continued(duty: Duty, way: Way, work: Work) -> bool:
    """Whether taking a transition only goes on with a conversation, because of calls of tools."""
    if duty.does != "converse" or not way.reads_calls or way.transition.target != duty.name:
        return False
    return bool(work.agents[work.speaker].tool_calls)


def _unmatched(plan: Plan, duty: Duty, move: Move[Work], verdict: Verdict) -> Move[Work]:
    """No condition holds: stop where the file says so, else ask for the call that one reads, or fail and say why."""
    work, post = move.data, _post(move.data, duty)
    if duty.stops:
        return replace(move, data=_left(work, duty), raises=(Chosen(duty.number, -1),))
    missing = _uncalled(duty, work)
    if missing and duty.seat is not None and not post.reminded:
        text = f"Please call {' or '.join(missing)}: what happens next depends on it."
        told = _said(plan, duty.seat, _at(work, duty, replace(post, reminded=True)), [input_of(duty.seat, text)])
        return Move(told.data, appends=(*move.appends, *told.appends), raises=(Again(duty.number),))
    tried = zip(duty.ways, verdict.conditions, strict=True)
    values = "; ".join(f"{_quoted(way.transition.condition)} is {_value(one)}" for way, one in tried)
    return replace(move, error=f"{duty.name}: no transition can be taken: {values or 'there is none'}")


def _uncalled(duty: Duty, work: Work) -> list[str]:
    """The parsing tools of the state's agent that its conditions read and that it did not call."""
    if duty.does != "converse":
        return []
    said = {one["function"]["name"] for one in work.agents[work.speaker].parsing_tool_calls}
    return sorted({name for way in duty.ways for name in way.calls if name not in said})


def _value(answer: Mapping[str, Any]) -> str:
    return _plain(answer["value"]) if "value" in answer else "undefined"


def _quoted(text: str) -> str:
    return f"`{text if len(text) <= SHOWN else text[:SHOWN] + '…'}`"


# the engine


def _asked(
    plan: Plan, work: Work, choices: Sequence[tuple[str, Sequence[Piece]]], moment: Moment
) -> tuple[Verdict | None, str]:
    """What the engine says to these choices, or why it says nothing; what needs no engine is not asked."""
    if (known := _known(choices)) is not None:
        return known, ""
    texts = [text for condition, then in choices for text in (condition, *(piece.text for piece in then))]
    script = {
        "choices": [
            {"condition": condition, "then": [{"kind": one.kind, "text": one.text} for one in then]}
            for condition, then in choices
        ]
    }
    match moment.evaluate(script, scope(plan, work, texts)):
        case Value(value=value):
            return Verdict(value["index"], tuple(value["conditions"]), tuple(value["then"])), ""
        case Failed(reason=reason):
            return None, reason
        case _:
            return None, "the engine gave nothing"


def _known(choices: Sequence[tuple[str, Sequence[Piece]]]) -> Verdict | None:
    """The verdict on choices that can be seen at a glance."""
    tried: list[Mapping[str, Any]] = []
    for index, (condition, then) in enumerate(choices):
        if is_true(condition) and not then:
            return Verdict(index, (*tried, {"value": True}))
        if not is_false(condition):
            return None
        tried.append({"value": False})
    return Verdict(None, tuple(tried))


def scope(plan: Plan, work: Work, texts: Sequence[str]) -> dict[str, Any]:
    """The data that texts may read, and no more."""
    read = frozenset[str]().union(*(needs(text) for text in texts))
    last = work.agents.get(work.speaker, Spoken())
    every: dict[str, Any] = {
        "agents": lambda: {name: _agent(plan, work, name) for name in plan.seats},
        "contexts": lambda: {one.name: _context(plan, work, one.name) for one in plan.workflow.contexts},
        "sub_workflow_result": lambda: work.sub_workflow_result,
        "last_agent_response": lambda: last.last_response,
        "last_tool_calls": lambda: list(last.tool_calls),
        "last_parsing_tool_calls": lambda: list(last.parsing_tool_calls),
    }
    return {"common_data": dict(work.common_data), **{name: one() for name, one in every.items() if name in read}}


def _agent(plan: Plan, work: Work, name: str) -> dict[str, Any]:
    spoken = work.agents.get(name)
    said = {} if spoken is None else encode(spoken)
    return {**said, "role": plan.seats[name].side}


def _context(plan: Plan, work: Work, name: str) -> dict[str, Any]:
    """What is needed to show a conversation: what it began with, and what is not in its thread yet."""
    context = next(one for one in plan.workflow.contexts if one.name == name)
    starting = [{"role": one.role, "text": one.content} for one in context.starting_messages]
    return {"max_length": context.max_length, "starting": starting, "fresh": list(work.fresh.get(name, ()))}


def _prepared(plan: Plan, pieces: Sequence[Piece], work: Work, moment: Moment) -> tuple[Work, Ready, str]:
    """Evaluate what a state needs before it does anything."""
    if not pieces:
        return work, Ready(), ""
    verdict, wrong = _asked(plan, work, [("true", pieces)], moment)
    return (work, Ready(), f"{pieces[0].where}: {wrong}") if verdict is None else _applied(work, pieces, verdict.then)


def _applied(work: Work, pieces: Sequence[Piece], answers: Sequence[Mapping[str, Any]]) -> tuple[Work, Ready, str]:
    """The data after some texts, what is ready for the next state, and what went wrong."""
    common, ready = dict(work.common_data), Ready()
    for piece, answer in zip(pieces, answers, strict=False):
        if "reason" in answer:
            return work, ready, f"{piece.where}: {_quoted(piece.text)} failed: {answer['reason']}"
        value = answer.get("value")
        if piece.kind == "script":
            changes = value or {"set": {}, "removed": []}
            common = {key: one for key, one in common.items() if key not in changes["removed"]} | changes["set"]
        elif piece.slot.startswith("given "):
            ready = replace(ready, given={**ready.given, piece.slot.removeprefix("given "): value})
        else:
            ready = Ready(**{**ready.__dict__, piece.slot: value})
    return replace(work, common_data=common), ready, ""


# scripts of states that have others inside, the end, and errors


def do_scripts(plan: Plan, pieces: Sequence[Piece], work: Work, event: Event, moment: Moment) -> Move[Work]:
    """Do the scripts of a state as it is entered or left."""
    work, _, wrong = _prepared(plan, pieces, work, moment)
    return Move(work, error=wrong)


def leave(plan: Plan, duty: Duty, work: Work, event: Event, moment: Moment) -> Move[Work]:
    """Do what is to be done on leaving a state, unless that was done when its transition was taken."""
    if isinstance(event, Chosen) and event.state == duty.number and event.transition >= 0:
        return Move(work)
    pieces = [Piece("script", duty.state.on_exit, f"{duty.name}, on_exit")]
    return do_scripts(plan, pieces, _since(work, event), event, moment)


def finish(plan: Plan, work: Work, event: Event, moment: Moment) -> Move[Work]:
    """Come to the end: the output is the input of `stop`, or what common_data has under its name."""
    name = plan.workflow.output.name
    if plan.stop.input is None:
        return Move(replace(work, output=work.common_data.get(name)))
    ready = work.ready.get(plan.stop.name)
    if ready is None:
        work, ready, wrong = _prepared(plan, tuple(preparing(plan.stop)), work, moment)
        if wrong:
            return Move(work, error=wrong)
    return Move(replace(work, ready={}, output=ready.input))


def note_error(duty: Duty, work: Work, event: Event) -> Work:
    """Keep what went wrong where the author's scripts can read it."""
    reason = getattr(event, "reason", "") or event.name
    error = {"state": duty.name, "reason": reason, "event": event.name}
    return _left(replace(_since(work, event), common_data={**work.common_data, "error": error}), duty)


def _post(work: Work, duty: Duty) -> Post:
    return work.posts.get(duty.name, Post())


def _at(work: Work, duty: Duty, post: Post) -> Work:
    return replace(work, posts={**work.posts, duty.name: post})


def _left(work: Work, duty: Duty) -> Work:
    return replace(work, posts={name: post for name, post in work.posts.items() if name != duty.name})
