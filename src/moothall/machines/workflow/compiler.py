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
from moothall.kernel.events import Answered, ChildDone, Done, Event, ExecutionFailed, Exhausted, Expired, GaveUp
from moothall.kernel.machine import Budget, Machine
from moothall.kernel.nodes import Final, History, Node, On, Parallel, State
from moothall.kernel.step import Moment, Move, Scripted
from moothall.machines.assent import APPROVAL
from moothall.machines.turn import CALLS, Use
from moothall.machines.workflow import moves
from moothall.machines.workflow.data import Acted, Again, Chosen, Inner, TimedOut, WorkflowData
from moothall.machines.workflow.definition import START, STOP, Limits, StateDefinition, Workflow
from moothall.machines.workflow.digest import deciding_part
from moothall.machines.workflow.names import simple_key
from moothall.machines.workflow.plan import OLD_RULES, Plan, Rules, ScriptText, StatePlan, every_state, plan_of
from moothall.machines.workflow.shapes import shape_of

MICROSTEPS = 10_000
"""The most that states which wait for nobody may do one after the other."""


class WorkflowAction(Scripted):
    """Something that a state does; it says in which events what it wants may end, and in which shapes."""

    outcomes: tuple[type[Event], ...] = ()
    shapes: Mapping[str, Any] = field(default_factory=dict)
    child: str = ""
    decides: str = ""
    is_repeat: bool = False
    """Whether it only wants again what was wanted before: it counts as a retry."""
    attempts: int = 0
    """How often what it wants is tried, where the file says so."""


@dataclass(frozen=True, slots=True)
class Own:
    """A guard: whether an inner event is that of this state."""

    number: int
    label: str = "it is this state's"

    def __call__(self, work: WorkflowData, event: Inner) -> bool:
        return event.state == self.number


@dataclass(frozen=True, slots=True)
class Taken:
    """A guard: whether this transition of this state was chosen."""

    number: int
    transition: int
    label: str

    def __call__(self, work: WorkflowData, event: Chosen) -> bool:
        return event.state == self.number and event.transition == self.transition


@dataclass(frozen=True, slots=True)
class Here:
    """A guard: whether something went wrong in one of these states; of an effect only its own state hears."""

    names: tuple[str, ...]
    label: str = "it went wrong here"

    def __call__(self, work: WorkflowData, event: Event) -> bool:
        where = getattr(event, "where", None)
        places = tuple(f"{name}{mark}" for name in self.names for mark in (" on ", ", "))
        return where is None or where.startswith(places)


@dataclass(frozen=True, slots=True)
class AtLimit:
    """A guard: whether a limit of one of these states was reached, or one of the whole run."""

    names: tuple[str, ...]
    label: str = "a limit was reached"

    def __call__(self, work: WorkflowData, event: Exhausted) -> bool:
        return not event.where or event.where in self.names


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


def machine_of(
    workflow: Workflow, roles: Mapping[str, Role], tools: Sequence[Use] = (), rules: Rules = OLD_RULES
) -> WorkflowMachine:
    """Compile a workflow."""
    taken = {agent.agent_role: roles.get(agent.agent_role, Role()) for agent in workflow.agents}
    plan = plan_of(workflow, taken, tuple(tools), rules)
    states = [_node(plan, state) for state in workflow.states if state.name != STOP]
    machine = WorkflowMachine(
        workflow.workflow_name,
        data=WorkflowData,
        start=START,
        states=[*states, Final(STOP, enter=_deed(plan, moves.finish, "output"), result=_output)],
        moves=[row for here in plan.state_plans.values() for row in _rows(plan, here)],
        budget=_budget(workflow.budget),
        result=partial(_output_so_far, plan),
        events=(TimedOut, Acted, Chosen, Again),
        max_microsteps=MICROSTEPS,
        kind="workflow",
    )
    object.__setattr__(machine, "plan", plan)
    return machine


def first_work(workflow: Workflow, given: Any) -> WorkflowData:
    """The data that a run begins with."""
    return WorkflowData({workflow.input.name: given, **encode(workflow.variables)})


def _output(work: WorkflowData, _: Event) -> Any:
    return work.output


def _output_so_far(plan: Plan, work: WorkflowData) -> Any:
    """What a run gives that did not come to its end: what common_data has by now of what it would have given."""
    if work.output is not None:
        return work.output
    name = plan.workflow.output.name
    key = simple_key(plan.stop.input) if plan.stop.input is not None else name
    return work.common_data.get(key or name)


def _budget(limits: Limits | None) -> Budget | None:
    return None if limits is None else Budget(**limits.__dict__)


def _deed(plan: Plan, move: Callable[..., Any], label: str, *first: Any) -> WorkflowAction:
    return WorkflowAction(partial(move, plan, *first), label)


# states


def _node(plan: Plan, state: StateDefinition) -> Node:
    if state.name in plan.finals:
        return Final(state.name, enter=_scripts(plan, state.name, "on_entry", state.on_entry))
    here = plan.state_plans[state.name]
    exit_ = (_deed(plan, moves.leave, f"on_exit {state.on_exit}", here),) if state.on_exit else ()
    if not state.states and not state.parallel:
        return State(state.name, enter=_entering(plan, here), exit=exit_, max_visits=here.visits)
    enter = _scripts(plan, state.name, "on_entry", state.on_entry)
    inner: list[Node] = [_node(plan, substate) for substate in state.states or state.parallel]
    if state.history != "none":
        inside = state.states or state.parallel
        default = inside[0].name if state.states else [node.name for node in inside]
        inner.append(History(_history(state), default, deep=state.history == "deep"))
    if state.parallel:
        return Parallel(state.name, inner, enter=enter, exit=exit_, max_visits=here.visits)
    return State(state.name, inner, start=inner[0].name, enter=enter, exit=exit_, max_visits=here.visits)


def _history(state: StateDefinition) -> str:
    return f"{state.name}, history"


def _scripts(plan: Plan, name: str, what: str, text: str) -> tuple[WorkflowAction, ...]:
    pieces = (ScriptText("script", text, f"{name}, {what}"),)
    return (_deed(plan, moves.do_scripts, f"{what} {text}", pieces),) if text else ()


def _entering(plan: Plan, here: StatePlan) -> WorkflowAction:
    state, run = here.state, partial(moves.enter, plan, here)
    alarm = {Alarm.kind: 1} if state.timeout is not None else {}
    match here.does:
        case "converse":
            tools = f" with {', '.join(_format_tool(tool, state.agent) for tool in here.tools)}" if here.tools else ""
            label, emits = f"{state.agent} replies{tools}", {Converse.kind: 1, **alarm}
            return WorkflowAction(run, label, emits, (Replied,), attempts=here.attempts)
        case "sub":
            assert state.action is not None
            child = state.action.sub_workflow
            return WorkflowAction(run, f"sub-workflow {child}", {StartChild.kind: 1, **alarm}, (ChildDone,), {}, child)
        case "ask":
            assert state.ask is not None
            shape = f"answer of {state.name}"
            outcomes = (Answered,) if state.ask.within is None else (Answered, Expired)
            shapes = {shape: shape_of(state.ask.schema, shape)}
            emits, decides = {AskPerson.kind: 1, **alarm}, f"question of {state.name}"
            return WorkflowAction(run, f"question: {state.ask.question}", emits, outcomes, shapes, decides=decides)
        case "add":
            return WorkflowAction(run, f"tell {state.agent}", alarm)
        case "clear":
            return WorkflowAction(run, f"clear {here.seat.thread if here.seat else ''}", alarm)
        case "nothing":
            return WorkflowAction(
                run, "script" if state.action is not None and state.action.script else "nothing", alarm
            )


def _format_tool(tool: Use, agent: str) -> str:
    policy = tool.policy_for(agent)
    return tool.name if policy == "allow" else f"{tool.name} ({policy})"


# rows


def _rows(plan: Plan, here: StatePlan) -> Iterator[On]:
    name = here.name
    yield from _waiting_rows(plan, here)
    for at, way in enumerate(here.transition_plans):
        target = plan.state_plans.get(way.transition.target)
        to = _history(target.state) if target is not None and target.state.history != "none" else way.transition.target
        yield On(name, Chosen, to=to, when=Taken(here.number, at, way.transition.condition))
    if here.stops:
        yield On(name, Chosen, to=STOP, when=Taken(here.number, -1, "nothing matches"))
    yield from _limit_rows(plan, here)
    if here.on_error:
        noting = partial(moves.note_error, here)
        wrong = (ExecutionFailed, GaveUp, TimedOut)
        arrived = Here(tuple(state.name for state in every_state((here.state,))))
        yield On(name, wrong, to=here.on_error, when=arrived, do=Labelled(noting, "keep the error"))


def _limit_rows(plan: Plan, here: StatePlan) -> Iterator[On]:
    """The rows that are taken where a limit is reached: that of a state which is not entered again, or of this one."""
    noting = Labelled(partial(moves.note_limit, here), "keep the limit")
    targets = dict.fromkeys(way.transition.target for way in here.transition_plans)
    for target in targets:
        there = plan.state_plans.get(target)
        if there is not None and there.state.on_limit and target != here.name:
            yield On(here.name, Exhausted, to=there.state.on_limit, when=AtLimit((target,)), do=noting)
    if here.on_limit:
        inside = tuple(state.name for state in every_state((here.state,)))
        yield On(here.name, Exhausted, to=here.on_limit, when=AtLimit((*inside, *targets)), do=noting)


def _waiting_rows(plan: Plan, here: StatePlan) -> Iterator[On]:
    """The rows that take what a state waited for."""
    name, state = here.name, here.state
    judge = _deed(plan, moves.finish_action, "judge", here)
    if state.parallel:
        if state.join == "first":
            yield from (On(region.name, Done, do=judge, at_most=here.visits) for region in state.parallel)
        else:
            yield On(name, Done, do=judge, at_most=here.visits)
    elif state.states and here.transition_plans:
        yield On(name, Done, do=judge, at_most=here.visits)
    elif state.states:
        return
    elif here.does == "converse":
        yield from _conversing_rows(plan, here)
    elif here.does == "sub":
        yield On(name, ChildDone, do=_deed(plan, moves.child_done, "judge", here), at_most=here.visits)
    elif here.does == "ask":
        keep = _deed(plan, moves.take_answer, "keep the answer, judge", here)
        yield On(name, Answered, do=keep, at_most=here.visits)
        yield On(name, Expired, do=_deed(plan, moves.take_expiry, "fail", here), at_most=here.visits)
    else:
        yield On(name, Acted, when=_own(plan, here), do=judge, at_most=here.visits)


def _own(plan: Plan, here: StatePlan) -> Own | None:
    """The guard of what a state tells itself; where one state is active at a time, nobody else can be meant."""
    return Own(here.number) if plan.is_parallel else None


def _conversing_rows(plan: Plan, here: StatePlan) -> Iterator[On]:
    name, turns = here.name, here.turns
    emits = {CallTool.kind: CALLS, **({StartChild.kind: CALLS} if here.asks else {})} if here.has_rounds else {}
    child = APPROVAL.name if here.asks else ""
    heard = WorkflowAction(
        partial(moves.hear_reply, plan, here), "keep the reply, judge", emits, (Returned,), {}, child
    )
    yield On(name, Replied, do=heard, at_most=turns)
    if here.tools:
        back = _deed(plan, moves.take_return, "keep the result, judge", here)
        of_tool = Labelled(partial(moves.is_tool, here), "it is a tool's")
        yield On(name, Returned, do=back, at_most=turns * CALLS)
        yield On(name, GaveUp, when=of_tool, do=back, at_most=turns * CALLS)
    label, again = f"{here.state.agent} goes on", _plain(partial(moves.go_on, here))
    going_on = WorkflowAction(
        again, label, {Converse.kind: 1}, (Replied,), is_repeat=not here.has_rounds, attempts=here.attempts
    )
    if here.has_rounds or here.reminds:
        yield On(name, Again, when=_own(plan, here), do=going_on, at_most=turns if here.has_rounds else here.visits)


def _plain(move: Callable[[Any, Any], Move[WorkflowData]]) -> Callable[[Any, Event, Moment], Any]:
    """A move that asks no engine, in the form of one that does."""
    return lambda work, event, moment: move(work, event)


@dataclass(frozen=True, slots=True)
class Labelled:
    """A guard or move with a name for the picture."""

    call: Callable[[Any, Any], Any]
    label: str

    def __call__(self, work: WorkflowData, event: Any) -> Any:
        return self.call(work, event)
