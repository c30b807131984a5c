"""The moves of a workflow's states: what is said, what is called, and which transition is taken.

A state that is entered does what it does; what it waits for ends in one event; then its transitions are judged. Every
text of the author goes to the engine, and what comes back is applied here: scripts change `common_data` and nothing
else. The rules:

- Conditions are tried in order, and only the transition that is taken does its `before`. A condition that fails is no
  "no": it is an error that names state, transition and expression.
- A reply's calls of tools are performed before transitions are tried. A transition from a state to itself that is taken
  because of them goes on with the same conversation: nothing is said again, and it is not a new visit. So does a state
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
    failure_of,
    input_of,
    plain_call,
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
from moothall.machines.workflow.data import Acted, Again, Chosen, LastReply, Prepared, Progress, TimedOut, WorkflowData
from moothall.machines.workflow.plan import Plan, ScriptText, StatePlan, TransitionPlan, needs, preparing, type_name
from moothall.machines.workflow.script import is_false, is_true

NOTED = "noted"
"""What a call of a parsing tool returns: the call itself is the answer."""
SHOWN = 200


# entering a state


def enter(plan: Plan, here: StatePlan, work: WorkflowData, event: Event, moment: Moment) -> Move[WorkflowData]:
    """Do what a state does when it is entered."""
    ready = work.ready.get(here.name)
    if ready is None:
        work, ready, wrong = _prepare(plan, here.preparing, work, moment)
        if wrong:
            return Move(work, error=wrong)
    others = {name: prepared for name, prepared in work.ready.items() if name != here.name}
    visits = {**work.visits, here.name: work.visits.get(here.name, 0) + 1}
    work = replace(work, ready=others, posts={**work.posts, here.name: Progress()}, visits=visits)
    move = _begin(plan, here, work, ready)
    if here.state.timeout is None:
        return move
    late = TimedOut(f"{here.name}: nothing came of it within {here.state.timeout:g} s")
    return replace(move, effects=(*move.effects, Alarm(late, here.state.timeout)))


def _begin(plan: Plan, here: StatePlan, work: WorkflowData, ready: Prepared) -> Move[WorkflowData]:
    done = (Acted(here.number),)
    match here.does:
        case "converse":
            assert here.seat is not None
            return _say(plan, here.seat, work, _input_messages(here.seat, ready.input), (_turn(here, ready.input),))
        case "add":
            assert here.seat is not None
            return replace(_say(plan, here.seat, work, _input_messages(here.seat, ready.input)), raises=done)
        case "clear":
            assert here.seat is not None
            return replace(_say(plan, here.seat, work, [CLEAR]), raises=done)
        case "sub":
            assert here.state.action is not None
            return Move(work, (StartChild(here.state.action.sub_workflow, dict(ready.given), budget=_share(here)),))
        case "ask":
            return Move(work, (_question(here, ready.question),))
        case "nothing":
            return Move(work, raises=done)


def _input_messages(seat: Seat, given: Any) -> list[Message]:
    return [] if given is None else [input_of(seat, _plain(given))]


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _turn(here: StatePlan, told: Any = None) -> Converse:
    assert here.seat is not None
    template, arguments = ("", {}) if told is None else ("{told}", {"told": told})
    tools = tuple(tool.name for tool in here.tools)
    attempts = here.attempts or Converse.attempts
    return Converse(here.seat.agent, template, arguments, thread=here.seat.thread, tools=tools, attempts=attempts)


def _share(here: StatePlan) -> Mapping[str, float]:
    budget = here.state.budget
    return {} if budget is None else {name: most for name, most in encode(budget).items() if most is not None}


def _question(here: StatePlan, prompt: Any) -> AskPerson:
    ask = here.state.ask
    assert ask is not None
    return AskPerson(_plain(prompt), encode(ask.schema), f"answer of {here.name}", ask.within, ask.who)


def _say(
    plan: Plan, seat: Seat, work: WorkflowData, messages: Sequence[Message], effects: tuple[Effect, ...] = ()
) -> Move[WorkflowData]:
    """Add to a conversation."""
    if plan.is_read:
        work = replace(work, fresh={**work.fresh, seat.thread: (*work.fresh.get(seat.thread, ()), *messages)})
    return Move(work, effects, tuple(Append(seat.thread, message) for message in messages))


def _outside(work: WorkflowData) -> WorkflowData:
    """The same at the beginning of an event from outside: what was said before is kept in the threads by now."""
    return replace(work, fresh={}) if work.fresh else work


def _since(work: WorkflowData, event: Event) -> WorkflowData:
    """The same where a state is left: an error that a move made came amid an event, and what was said is still new."""
    return _outside(work) if isinstance(event, GaveUp | TimedOut | Cancelled) else work


# what a state waited for


def hear_reply(plan: Plan, here: StatePlan, work: WorkflowData, replied: Replied, moment: Moment) -> Move[WorkflowData]:
    """An agent replied: have its tools called, or judge."""
    assert here.seat is not None
    seat, tools = here.seat, {tool.name: tool for tool in here.tools}
    parsing = [call for call in replied.calls if call.tool in here.parsing]
    wanted = [call for call in replied.calls if call.tool not in here.parsing]
    able = tuple(call for call in wanted[:CALLS] if may_be_called(call, tools, seat.agent))
    messages = [reply_of(seat, replied.text, replied.calls), *(result_of(seat, call, NOTED) for call in parsing)]
    messages += [failure_of(seat, call, why_not(call, tools, seat.agent)) for call in wanted if call not in able]
    spoken = LastReply(replied.text, tuple(map(plain_call, replied.calls)), tuple(map(plain_call, parsing)))
    work = replace(_outside(work), agents={**work.agents, seat.agent: spoken}, speaker=seat.agent)
    work = _at(work, here, replace(_post(work, here), open=able))
    effects = tuple(tools[call.tool].effect(seat.agent, call) for call in able)
    move = _say(plan, seat, work, messages, effects)
    return move if able else _decide(plan, here, move, moment)


def take_return(
    plan: Plan, here: StatePlan, work: WorkflowData, event: Returned | GaveUp, moment: Moment
) -> Move[WorkflowData]:
    """A tool came back, with a value or without: when all have, judge."""
    assert here.seat is not None
    call = next(call for call in _post(work, here).open if call.id == event.id)
    if isinstance(event, Returned):
        message = result_of(here.seat, call, encode(event.value))
    else:
        message = failure_of(here.seat, call, event.reason)
    left = tuple(waiting for waiting in _post(work, here).open if waiting is not call)
    work = replace(_outside(work), speaker=here.seat.agent)  # in a parallel state another may have spoken meanwhile
    move = _say(plan, here.seat, _at(work, here, replace(_post(work, here), open=left)), [message])
    return move if left else _decide(plan, here, move, moment)


def is_tool(here: StatePlan, work: WorkflowData, event: Returned | GaveUp) -> bool:
    """Whether an event ends a call of a tool that the state waits for, and its agent can do something about it."""
    if isinstance(event, GaveUp) and not is_the_tools_own(work, event):
        return False
    return any(call.id == event.id for call in _post(work, here).open)


def child_done(plan: Plan, here: StatePlan, work: WorkflowData, event: ChildDone, moment: Moment) -> Move[WorkflowData]:
    """A sub-workflow came to its end."""
    return _judge(plan, here, Move(replace(_outside(work), sub_workflow_result=event.data)), moment)


def take_answer(plan: Plan, here: StatePlan, work: WorkflowData, event: Answered, moment: Moment) -> Move[WorkflowData]:
    """A person answered."""
    assert here.state.ask is not None
    common = {
        **work.common_data,
        here.state.ask.answer: _without_open_fields(here.state.ask.schema, encode(event.value)),
    }
    return _judge(plan, here, Move(replace(_outside(work), common_data=common)), moment)


def _without_open_fields(schema: Mapping[str, Any], value: Any) -> Any:
    """An answer without the fields that were left open."""
    if not isinstance(value, dict):
        return value
    return {key: part for key, part in value.items() if part is not None or key in schema.get("required", ())}


def take_expiry(plan: Plan, here: StatePlan, work: WorkflowData, event: Event, moment: Moment) -> Move[WorkflowData]:
    """Nobody answered in time."""
    return Move(_outside(work), error=f"{here.name}: nobody answered in time")


def finish_action(plan: Plan, here: StatePlan, work: WorkflowData, event: Event, moment: Moment) -> Move[WorkflowData]:
    """A state that waits for nothing has done its part, or the states inside it have come to their end."""
    return _judge(plan, here, Move(work), moment)


# going on with a conversation


def go_on(here: StatePlan, work: WorkflowData, event: Event) -> Move[WorkflowData]:
    """Have the agent of a state go on."""
    return Move(work, (_turn(here),))


def _decide(plan: Plan, here: StatePlan, move: Move[WorkflowData], moment: Moment) -> Move[WorkflowData]:
    """Go on with the conversation where tools were called that no condition looks at; else judge."""
    spoken = move.data.agents[move.data.speaker]
    only_tools = bool(spoken.tool_calls) and not spoken.parsing_tool_calls
    return _again(here, move) if only_tools and here.goes_on else _judge(plan, here, move, moment)


def _again(here: StatePlan, move: Move[WorkflowData]) -> Move[WorkflowData]:
    post = _post(move.data, here)
    if post.rounds >= here.rounds:
        return replace(move, raises=(Exhausted("max_tool_rounds", here.rounds, here.name),))
    work = _at(move.data, here, replace(post, rounds=post.rounds + 1))
    return replace(move, data=work, raises=(Again(here.number),))


# judging


class Verdict(Frozen):
    """What the engine says to a batch: the choice (None: none), and the answers to conditions and texts."""

    index: int | None
    conditions: tuple[Mapping[str, Any], ...] = ()
    then: tuple[Mapping[str, Any], ...] = ()


def _judge(plan: Plan, here: StatePlan, move: Move[WorkflowData], moment: Moment) -> Move[WorkflowData]:
    """Try the transitions of a state and take the first whose condition holds."""
    work, ways = move.data, here.transition_plans
    thens = [_then(plan, here, way, work) for way in ways]
    choices = [(way.transition.condition, then) for way, then in zip(ways, thens, strict=True)]
    verdict, wrong = _ask_engine(plan, work, choices, moment)
    if verdict is None:
        return replace(move, error=f"{here.name}: {wrong}")
    if verdict.conditions and "reason" in verdict.conditions[-1]:
        at, reason = len(verdict.conditions) - 1, verdict.conditions[-1]["reason"]
        where = f"{here.name}, transition {at + 1} to {ways[at].transition.target}"
        return replace(move, error=f"{where}: condition {_quote(ways[at].transition.condition)} failed: {reason}")
    if verdict.index is None:
        return _take_no_match(plan, here, move, verdict)
    way, then = ways[verdict.index], thens[verdict.index]
    work, ready, wrong = _apply_answers(work, then, verdict.then)
    move = replace(move, data=work)
    if wrong:
        return replace(move, error=wrong)
    if _is_continued(here, way, work):
        return _again(here, move)
    if way.prepares:
        work = replace(work, ready={**work.ready, way.prepares: ready})
    return replace(move, data=_leave(work, here), raises=(Chosen(here.number, verdict.index),))


def _then(plan: Plan, here: StatePlan, way: TransitionPlan, work: WorkflowData) -> tuple[ScriptText, ...]:
    """What is evaluated when a transition is taken.

    One that only goes on leaves and enters nothing; a state that was visited too often is not entered either.
    """
    if _is_continued(here, way, work):
        return way.then[: bool(way.transition.before)]
    target = plan.state_plans.get(way.prepares)
    if target is not None and work.visits.get(target.name, 0) >= target.visits:
        return way.then[: len(way.then) - len(target.preparing)]
    return way.then


def _is_continued(here: StatePlan, way: TransitionPlan, work: WorkflowData) -> bool:
    """Whether taking a transition only goes on with a conversation, because of calls of tools."""
    if here.does != "converse" or not here.has_rounds or not way.reads_calls or way.transition.target != here.name:
        return False
    return bool(work.agents[work.speaker].tool_calls)


def _take_no_match(plan: Plan, here: StatePlan, move: Move[WorkflowData], verdict: Verdict) -> Move[WorkflowData]:
    """No condition holds: stop where the file says so, else ask for the call that one reads, or fail and say why."""
    work, post = move.data, _post(move.data, here)
    if here.stops:
        return replace(move, data=_leave(work, here), raises=(Chosen(here.number, -1),))
    missing = _uncalled_tools(here, work)
    if missing and here.seat is not None and not post.reminded:
        text = f"Please call {' or '.join(missing)}: what happens next depends on it."
        told = _say(
            plan,
            here.seat,
            _at(work, here, replace(post, reminded=True)),
            [input_of(here.seat, text)],
        )
        return Move(told.data, appends=(*move.appends, *told.appends), raises=(Again(here.number),))
    tried = zip(here.transition_plans, verdict.conditions, strict=True)
    values = "; ".join(f"{_quote(way.transition.condition)} is {_value(value)}" for way, value in tried)
    return replace(move, error=f"{here.name}: no transition can be taken: {values or 'there is none'}")


def _uncalled_tools(here: StatePlan, work: WorkflowData) -> list[str]:
    """The parsing tools of the state's agent that its conditions read and that it did not call."""
    if here.does != "converse":
        return []
    said = {call["function"]["name"] for call in work.agents[work.speaker].parsing_tool_calls}
    return sorted({name for way in here.transition_plans for name in way.calls if name not in said})


def _value(answer: Mapping[str, Any]) -> str:
    return _plain(answer["value"]) if "value" in answer else "undefined"


def _quote(text: str) -> str:
    return f"`{text if len(text) <= SHOWN else text[:SHOWN] + '…'}`"


# the engine


def _ask_engine(
    plan: Plan, work: WorkflowData, choices: Sequence[tuple[str, Sequence[ScriptText]]], moment: Moment
) -> tuple[Verdict | None, str]:
    """What the engine says to these choices, or why it says nothing; what needs no engine is not asked."""
    if (known := _known_verdict(choices)) is not None:
        return known, ""
    texts = [text for condition, then in choices for text in (condition, *(piece.text for piece in then))]
    script = {
        "choices": [
            {"condition": condition, "then": [{"kind": script.kind, "text": script.text} for script in then]}
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


def _known_verdict(choices: Sequence[tuple[str, Sequence[ScriptText]]]) -> Verdict | None:
    """The verdict on choices that can be seen at a glance."""
    tried: list[Mapping[str, Any]] = []
    for index, (condition, then) in enumerate(choices):
        if is_true(condition) and not then:
            return Verdict(index, (*tried, {"value": True}))
        if not is_false(condition):
            return None
        tried.append({"value": False})
    return Verdict(None, tuple(tried))


def scope(plan: Plan, work: WorkflowData, texts: Sequence[str]) -> dict[str, Any]:
    """The data that texts may read, and no more."""
    read = frozenset[str]().union(*(needs(text) for text in texts))
    last = work.agents.get(work.speaker, LastReply())
    every: dict[str, Any] = {
        "agents": lambda: {name: _agent(plan, work, name) for name in plan.seats},
        "contexts": lambda: {context.name: _context(plan, work, context.name) for context in plan.workflow.contexts},
        "sub_workflow_result": lambda: work.sub_workflow_result,
        "last_agent_response": lambda: last.last_response,
        "last_tool_calls": lambda: list(last.tool_calls),
        "last_parsing_tool_calls": lambda: list(last.parsing_tool_calls),
    }
    return {
        "common_data": dict(work.common_data),
        **{name: read_value() for name, read_value in every.items() if name in read},
    }


def _agent(plan: Plan, work: WorkflowData, name: str) -> dict[str, Any]:
    spoken = work.agents.get(name)
    said = {} if spoken is None else encode(spoken)
    return {**said, "role": plan.seats[name].side}


def _context(plan: Plan, work: WorkflowData, name: str) -> dict[str, Any]:
    """What is needed to show a conversation: what it began with, and what is not in its thread yet."""
    context = next(context for context in plan.workflow.contexts if context.name == name)
    starting = [{"role": message.role, "text": message.content} for message in context.starting_messages]
    return {"max_length": context.max_length, "starting": starting, "fresh": list(work.fresh.get(name, ()))}


def _prepare(
    plan: Plan, pieces: Sequence[ScriptText], work: WorkflowData, moment: Moment
) -> tuple[WorkflowData, Prepared, str]:
    """Evaluate what a state needs before it does anything."""
    if not pieces:
        return work, Prepared(), ""
    verdict, wrong = _ask_engine(plan, work, [("true", pieces)], moment)
    return (
        (work, Prepared(), f"{pieces[0].where}: {wrong}")
        if verdict is None
        else _apply_answers(work, pieces, verdict.then)
    )


def _apply_answers(
    work: WorkflowData, pieces: Sequence[ScriptText], answers: Sequence[Mapping[str, Any]]
) -> tuple[WorkflowData, Prepared, str]:
    """The data after some texts, what is ready for the next state, and what went wrong."""
    common, ready = dict(work.common_data), Prepared()
    for piece, answer in zip(pieces, answers, strict=False):
        if "reason" in answer:
            return work, ready, f"{piece.where}: {_quote(piece.text)} failed: {answer['reason']}"
        value = answer.get("value")
        if piece.kind == "script":
            changes = value or {"set": {}, "removed": []}
            common = {key: part for key, part in common.items() if key not in changes["removed"]} | changes["set"]
        elif piece.slot.startswith("given "):
            ready = replace(ready, given={**ready.given, piece.slot.removeprefix("given "): value})
        else:
            ready = Prepared(**{**ready.__dict__, piece.slot: value})
    return replace(work, common_data=common), ready, ""


# scripts of states that have others inside, the end, and errors


def do_scripts(
    plan: Plan, pieces: Sequence[ScriptText], work: WorkflowData, event: Event, moment: Moment
) -> Move[WorkflowData]:
    """Do the scripts of a state as it is entered or left."""
    work, _, wrong = _prepare(plan, pieces, work, moment)
    return Move(work, error=wrong)


def leave(plan: Plan, here: StatePlan, work: WorkflowData, event: Event, moment: Moment) -> Move[WorkflowData]:
    """Do what is to be done on leaving a state, unless that was done when its transition was taken."""
    if isinstance(event, Chosen) and event.state == here.number and event.transition >= 0:
        return Move(work)
    pieces = [ScriptText("script", here.state.on_exit, f"{here.name}, on_exit")]
    return do_scripts(plan, pieces, _since(work, event), event, moment)


def finish(plan: Plan, work: WorkflowData, event: Event, moment: Moment) -> Move[WorkflowData]:
    """Come to the end: the output is the input of `stop`, or what common_data has under its name."""
    if plan.stop.input is None:
        return _given_out(plan, replace(work, output=work.common_data.get(plan.workflow.output.name)))
    ready = work.ready.get(plan.stop.name)
    if ready is None:
        work, ready, wrong = _prepare(plan, tuple(preparing(plan.stop)), work, moment)
        if wrong:
            return Move(work, error=wrong)
    return _given_out(plan, replace(work, ready={}, output=ready.input))


def _given_out(plan: Plan, work: WorkflowData) -> Move[WorkflowData]:
    """The end, unless what the run gives has another type than the file says."""
    wanted, given = plan.workflow.output, type_name(encode(work.output))
    if not plan.rules.checks_output or work.output is None or given == wanted.type:
        return Move(work)
    shown = _quote(_plain(encode(work.output)))
    why = f"the output {wanted.name!r} is to be of type {wanted.type} and is of type {given}: {shown}"
    return Move(work, error=f"stop: {why}")


def note_error(here: StatePlan, work: WorkflowData, event: Event) -> WorkflowData:
    """Keep what went wrong where the author's scripts can read it."""
    reason = getattr(event, "reason", "") or event.name
    error = {"state": here.name, "reason": reason, "event": event.name}
    return _leave(replace(_since(work, event), common_data={**work.common_data, "error": error}), here)


def note_limit(here: StatePlan, work: WorkflowData, event: Exhausted) -> WorkflowData:
    """Keep which limit was reached where the author's scripts can read it."""
    limit = {"state": event.where or here.name, "resource": event.resource, "limit": event.limit}
    work = replace(_since(work, event), common_data={**work.common_data, "limit": limit}, ready={})
    return _leave(work, here)


def _post(work: WorkflowData, here: StatePlan) -> Progress:
    return work.posts.get(here.name, Progress())


def _at(work: WorkflowData, here: StatePlan, post: Progress) -> WorkflowData:
    return replace(work, posts={**work.posts, here.name: post})


def _leave(work: WorkflowData, here: StatePlan) -> WorkflowData:
    return replace(work, posts={name: post for name, post in work.posts.items() if name != here.name})
