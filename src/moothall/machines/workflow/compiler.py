"""A workflow as a machine: its states are the file's, its rows the file's transitions, its bounds the file's limits.

What a state waits for ends in an event that one row of the state takes without leaving it: the move behind it judges
the transitions and raises which one is taken; the rows of the transitions take that. So the picture is the file's
picture, and a script is asked once per state. A state may be entered `max_visits` times, else `max_iterations`, else a
hundred: every workflow has an end.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from hashlib import sha256
from typing import Any

from moothall.agents.ask import CallTool, Replied, Returned
from moothall.agents.conversation import Converse
from moothall.agents.roles import Role
from moothall.kernel.codec import encode
from moothall.kernel.effects import Alarm, AskPerson, StartChild
from moothall.kernel.events import Answered, ChildDone, Done, Event, Expired, GaveUp, Misbehaved
from moothall.kernel.machine import Budget, Machine
from moothall.kernel.nodes import Final, History, Node, On, Parallel, State
from moothall.kernel.step import Moment, Move, Scripted
from moothall.machines.assent import APPROVAL
from moothall.machines.turn import CALLS, Use
from moothall.machines.workflow import moves
from moothall.machines.workflow.definition import START, STOP, Limits, StateDefinition, Workflow
from moothall.machines.workflow.plan import Duty, Piece, Plan, every_state, plan_of
from moothall.machines.workflow.shapes import shape_of
from moothall.machines.workflow.wording import deciding_part
from moothall.machines.workflow.work import Acted, Again, Chosen, Inner, TimedOut, Work

MICROSTEPS = 10_000
"""The most that states which wait for nobody may do one after the other."""


class Deed(Scripted):
    """Something that a state does; it says in which events what it wants may end, and in which shapes."""

    outcomes: tuple[type[Event], ...] = ()
    shapes: Mapping[str, Any] = field(default_factory=dict)
    child: str = ""
    decides: str = ""


@dataclass(frozen=True, slots=True)
class Own:
    """A guard: whether an inner event is that of this state."""

    number: int
    label: str = "it is this state's"

    def __call__(self, work: Work, event: Inner) -> bool:
        return event.state == self.number


@dataclass(frozen=True, slots=True)
class Taken:
    """A guard: whether this transition of this state was chosen."""

    number: int
    transition: int
    label: str

    def __call__(self, work: Work, event: Chosen) -> bool:
        return event.state == self.number and event.transition == self.transition


@dataclass(frozen=True, slots=True)
class Here:
    """A guard: whether something went wrong in one of these states; of an effect only its own state hears."""

    names: tuple[str, ...]
    label: str = "it went wrong here"

    def __call__(self, work: Work, event: Event) -> bool:
        where = getattr(event, "where", None)
        places = tuple(f"{name}{mark}" for name in self.names for mark in (" on ", ", "))
        return where is None or where.startswith(places)


class WorkflowMachine(Machine):
    """A machine that was compiled from a workflow file; it remembers the plan."""

    plan: Plan

    @cached_property
    def deciding(self) -> str:
        """The hash of what decides steps: also of contexts and roles, without what is only said there."""
        return self._with_plan(super().deciding, deciding_part(encode(self.plan.workflow), encode(self.plan.roles)))

    @cached_property
    def worded(self) -> str:
        """The hash of the definition: also of texts, contexts and roles, which the table does not show."""
        return self._with_plan(super().worded, encode((self.plan.workflow, self.plan.roles)))

    def _with_plan(self, table: str, plan: Any) -> str:
        return sha256(f"{table}\n{json.dumps(plan, sort_keys=True)}".encode()).hexdigest()


def machine_of(workflow: Workflow, roles: Mapping[str, Role], tools: Sequence[Use] = ()) -> WorkflowMachine:
    """Compile a workflow."""
    taken = {agent.agent_role: roles.get(agent.agent_role, Role()) for agent in workflow.agents}
    plan = plan_of(workflow, taken, tuple(tools))
    states = [_node(plan, state) for state in workflow.states if state.name != STOP]
    machine = WorkflowMachine(
        workflow.workflow_name,
        data=Work,
        start=START,
        states=[*states, Final(STOP, enter=_deed(plan, moves.finish, "output"), result=_output)],
        moves=[row for duty in plan.duties.values() for row in _rows(plan, duty)],
        budget=_budget(workflow.budget),
        result=_output_of,
        events=(TimedOut, Acted, Chosen, Again),
        max_microsteps=MICROSTEPS,
        kind="workflow",
    )
    object.__setattr__(machine, "plan", plan)
    return machine


def first_work(workflow: Workflow, given: Any) -> Work:
    """The data that a run begins with."""
    return Work({workflow.input.name: given, **encode(workflow.variables)})


def _output(work: Work, _: Event) -> Any:
    return work.output


def _output_of(work: Work) -> Any:
    return work.output


def _budget(limits: Limits | None) -> Budget | None:
    return None if limits is None else Budget(**limits.__dict__)


def _deed(plan: Plan, move: Callable[..., Any], label: str, *first: Any) -> Deed:
    return Deed(partial(move, plan, *first), label)


# states


def _node(plan: Plan, state: StateDefinition) -> Node:
    if state.name in plan.finals:
        return Final(state.name, enter=_scripts(plan, state.name, "on_entry", state.on_entry))
    duty = plan.duties[state.name]
    exit_ = (_deed(plan, moves.leave, f"on_exit {state.on_exit}", duty),) if state.on_exit else ()
    if not state.states and not state.parallel:
        return State(state.name, enter=_entering(plan, duty), exit=exit_, max_visits=duty.visits)
    enter = _scripts(plan, state.name, "on_entry", state.on_entry)
    inner: list[Node] = [_node(plan, one) for one in state.states or state.parallel]
    if state.history != "none":
        inside = state.states or state.parallel
        default = inside[0].name if state.states else [one.name for one in inside]
        inner.append(History(_history(state), default, deep=state.history == "deep"))
    if state.parallel:
        return Parallel(state.name, inner, enter=enter, exit=exit_, max_visits=duty.visits)
    return State(state.name, inner, start=inner[0].name, enter=enter, exit=exit_, max_visits=duty.visits)


def _history(state: StateDefinition) -> str:
    return f"{state.name}, history"


def _scripts(plan: Plan, name: str, what: str, text: str) -> tuple[Deed, ...]:
    pieces = (Piece("script", text, f"{name}, {what}"),)
    return (_deed(plan, moves.do_scripts, f"{what} {text}", pieces),) if text else ()


def _entering(plan: Plan, duty: Duty) -> Deed:
    state, run = duty.state, partial(moves.enter, plan, duty)
    alarm = {Alarm.kind: 1} if state.timeout is not None else {}
    match duty.does:
        case "converse":
            tools = f" with {', '.join(_shown(tool, state.agent) for tool in duty.tools)}" if duty.tools else ""
            return Deed(run, f"{state.agent} replies{tools}", {Converse.kind: 1, **alarm}, (Replied,))
        case "sub":
            assert state.action is not None
            child = state.action.sub_workflow
            return Deed(run, f"sub-workflow {child}", {StartChild.kind: 1, **alarm}, (ChildDone,), {}, child)
        case "ask":
            assert state.ask is not None
            shape = f"answer of {state.name}"
            outcomes = (Answered,) if state.ask.within is None else (Answered, Expired)
            shapes = {shape: shape_of(state.ask.schema, shape)}
            emits, decides = {AskPerson.kind: 1, **alarm}, f"question of {state.name}"
            return Deed(run, f"question: {state.ask.question}", emits, outcomes, shapes, decides=decides)
        case "add":
            return Deed(run, f"tell {state.agent}", alarm)
        case "clear":
            return Deed(run, f"clear {duty.seat.thread if duty.seat else ''}", alarm)
        case "nothing":
            return Deed(run, "script" if state.action is not None and state.action.script else "nothing", alarm)


def _shown(tool: Use, agent: str) -> str:
    policy = tool.policy_for(agent)
    return tool.name if policy == "allow" else f"{tool.name} ({policy})"


# rows


def _rows(plan: Plan, duty: Duty) -> Iterator[On]:
    name = duty.name
    yield from _waiting_rows(plan, duty)
    for at, way in enumerate(duty.ways):
        target = plan.duties.get(way.transition.target)
        to = _history(target.state) if target is not None and target.state.history != "none" else way.transition.target
        yield On(name, Chosen, to=to, when=Taken(duty.number, at, way.transition.condition))
    if duty.stops:
        yield On(name, Chosen, to=STOP, when=Taken(duty.number, -1, "nothing matches"))
    if duty.on_error:
        noting = partial(moves.note_error, duty)
        wrong = (Misbehaved, GaveUp, TimedOut)
        here = Here(tuple(one.name for one in every_state((duty.state,))))
        yield On(name, wrong, to=duty.on_error, when=here, do=Labelled(noting, "keep the error"))


def _waiting_rows(plan: Plan, duty: Duty) -> Iterator[On]:
    """The rows that take what a state waited for."""
    name, state = duty.name, duty.state
    judge = _deed(plan, moves.acted, "judge", duty)
    if state.parallel:
        if state.join == "first":
            yield from (On(region.name, Done, do=judge, at_most=duty.visits) for region in state.parallel)
        else:
            yield On(name, Done, do=judge, at_most=duty.visits)
    elif state.states and duty.ways:
        yield On(name, Done, do=judge, at_most=duty.visits)
    elif state.states:
        return
    elif duty.does == "converse":
        yield from _conversing_rows(plan, duty)
    elif duty.does == "sub":
        yield On(name, ChildDone, do=_deed(plan, moves.child_done, "judge", duty), at_most=duty.visits)
    elif duty.does == "ask":
        keep = _deed(plan, moves.answered, "keep the answer, judge", duty)
        yield On(name, Answered, do=keep, at_most=duty.visits)
        yield On(name, Expired, do=_deed(plan, moves.expired, "fail", duty), at_most=duty.visits)
    else:
        yield On(name, Acted, when=_own(plan, duty), do=judge, at_most=duty.visits)


def _own(plan: Plan, duty: Duty) -> Own | None:
    """The guard of what a state tells itself; where one state is active at a time, nobody else can be meant."""
    return Own(duty.number) if plan.is_parallel else None


def _conversing_rows(plan: Plan, duty: Duty) -> Iterator[On]:
    name, turns = duty.name, duty.turns
    emits = {CallTool.kind: CALLS, **({StartChild.kind: CALLS} if duty.asks else {})}
    child = APPROVAL.name if duty.asks else ""
    heard = Deed(partial(moves.heard, plan, duty), "keep the reply, judge", emits, (Returned,), {}, child)
    yield On(name, Replied, do=heard, at_most=turns)
    if duty.tools:
        back = _deed(plan, moves.returned, "keep the result, judge", duty)
        of_tool = Labelled(partial(moves.is_tool, duty), "it is a tool's")
        yield On(name, Returned, do=back, at_most=turns * CALLS)
        yield On(name, GaveUp, when=of_tool, do=back, at_most=turns * CALLS)
    going_on = Deed(_plain(partial(moves.go_on, duty)), f"{duty.state.agent} goes on", {Converse.kind: 1}, (Replied,))
    yield On(name, Again, when=_own(plan, duty), do=going_on, at_most=turns)


def _plain(move: Callable[[Any, Any], Move[Work]]) -> Callable[[Any, Event, Moment], Any]:
    """A move that asks no engine, in the form of one that does."""
    return lambda work, event, moment: move(work, event)


@dataclass(frozen=True, slots=True)
class Labelled:
    """A guard or move with a name for the picture."""

    call: Callable[[Any, Any], Any]
    label: str

    def __call__(self, work: Work, event: Any) -> Any:
        return self.call(work, event)
