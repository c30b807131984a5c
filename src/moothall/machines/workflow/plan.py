"""A workflow laid out for its moves: what each state does, and which texts are evaluated together when it is left.

One call of the engine does what a state needs: the conditions in order, then for the transition that is taken its
`before`, what is done on leaving, and what the next state does before it waits for somebody. A text that is read by
nobody's eyes but the engine's stays a text here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Literal

from moothall.agents.conversation import Seat
from moothall.agents.roles import Role
from moothall.kernel.frozen import Frozen
from moothall.machines.turn import Use
from moothall.machines.workflow.definition import STOP, StateDefinition, Transition, Workflow
from moothall.machines.workflow.script import PYTHON, is_true, reads_tool_calls
from moothall.machines.workflow.tokens import EVERYTHING, functions, reads

VISITS = 100
"""How often a state may be entered where nothing in the file says it."""

Does = Literal["converse", "add", "clear", "sub", "ask", "nothing"]


class Rules(Frozen):
    """What was decided otherwise once. A run that was begun under the old rules goes on under them.

    The output has the type that the file says; an agent that has no tools does not go on after calls of some.
    """

    checks_output: bool = False
    is_tight: bool = False


OLD_RULES = Rules()


class ScriptText(Frozen):
    """A text to evaluate: a script, or an input with the slot that its value is for. The end's is the output."""

    kind: Literal["script", "input", "output"]
    text: str
    where: str
    slot: str = ""


class TransitionPlan(Frozen):
    """A transition with the texts that belong to it, and the state whose texts are among them."""

    transition: Transition
    then: tuple[ScriptText, ...]
    prepares: str
    reads_calls: bool
    calls: frozenset[str]
    """The parsing tools that its condition reads."""


class StatePlan(Frozen):
    """What one state has to do."""

    number: int
    state: StateDefinition
    does: Does
    seat: Seat | None = None
    tools: tuple[Use, ...] = ()
    parsing: frozenset[str] = frozenset()
    preparing: tuple[ScriptText, ...] = ()
    transition_plans: tuple[TransitionPlan, ...] = ()
    stops: bool = False
    visits: int = VISITS
    rounds: int = 50
    on_error: str = ""
    on_limit: str = ""
    is_tight: bool = False

    @property
    def asks(self) -> bool:
        """Whether a person may be asked before a tool of its agent is called."""
        return any(tool.policy_for(self.state.agent) == "ask" for tool in self.tools)

    @property
    def name(self) -> str:
        return self.state.name

    @property
    def turns(self) -> int:
        """How often its agent may speak in a run."""
        if self.has_rounds:
            return self.visits * (self.rounds + 2)
        return self.visits * (2 if self.reminds else 1)

    @property
    def attempts(self) -> int:
        """How often a call of its agent is tried where the file says so; else 0."""
        return self.state.retry.attempts if self.state.retry is not None else 0

    @property
    def has_rounds(self) -> bool:
        """Whether its agent may speak again after calls of tools."""
        return bool(self.tools) or not self.is_tight

    @property
    def reminds(self) -> bool:
        """Whether its agent may be asked once to call what the conditions read."""
        ways = self.transition_plans
        always = any(is_true(way.transition.condition) for way in ways)
        return not self.stops and not always and any(way.calls for way in ways)

    @property
    def goes_on(self) -> bool:
        """Whether its agent goes on by itself after tools, because no condition looks at them."""
        return self.has_rounds and not any(transition_plan.reads_calls for transition_plan in self.transition_plans)


class Plan(Frozen):
    """A whole workflow, laid out."""

    workflow: Workflow
    seats: Mapping[str, Seat]
    state_plans: Mapping[str, StatePlan]
    roles: Mapping[str, Role]
    stop: StateDefinition
    is_read: bool = False
    """Whether a script reads conversations."""
    finals: frozenset[str] = frozenset()
    is_parallel: bool = False
    """Whether several states may be active at once."""
    tools: tuple[Use, ...] = ()
    """All tools that there are, whatever roles may use of them."""
    rules: Rules = OLD_RULES


def plan_of(workflow: Workflow, roles: Mapping[str, Role], tools: tuple[Use, ...], rules: Rules = OLD_RULES) -> Plan:
    """Lay out a workflow."""
    seats = _seats(workflow)
    states = list(every_state(workflow.states))
    leaves = {state.name for state in states if not state.states and not state.parallel}
    finals = frozenset(state.name for state in _finals(workflow.states))
    stop = next((state for state in workflow.states if state.name == STOP), StateDefinition(STOP))
    layout = _Layout(
        workflow, seats, roles, tools, rules, {state.name: state for state in states if state.name in leaves}
    )
    working = [state for state in states if state.name != STOP and state.name not in finals]
    state_plans = {state.name: layout.state_plan(number, state) for number, state in enumerate(working)}
    texts = [
        script.text
        for state_plan in state_plans.values()
        for transition_plan in state_plan.transition_plans
        for script in transition_plan.then
    ]
    texts += [
        transition_plan.transition.condition
        for state_plan in state_plans.values()
        for transition_plan in state_plan.transition_plans
    ]
    texts += [script.text for state_plan in state_plans.values() for script in state_plan.preparing] + [
        stop.input or ""
    ]
    is_read = any("contexts" in needs(text) for text in texts)
    is_parallel = any(state.parallel for state in states)
    return Plan(workflow, seats, state_plans, roles, stop, is_read, finals, is_parallel, tools, rules)


def every_state(states: tuple[StateDefinition, ...]) -> Iterator[StateDefinition]:
    """The states of a workflow and those inside them, in the order of the file."""
    for state in states:
        yield state
        yield from every_state(state.states or state.parallel)


def _finals(states: tuple[StateDefinition, ...], *, inside: bool = False) -> Iterator[StateDefinition]:
    """The states that end the state around them."""
    for state in states:
        if inside and state.transition is None and not state.states and not state.parallel:
            yield state
        yield from _finals(state.states, inside=True)
        for region in state.parallel:
            yield from _finals(region.states, inside=True)


def _seats(workflow: Workflow) -> dict[str, Seat]:
    contexts = {context.name: context for context in workflow.contexts}
    found = {}
    for agent in workflow.agents:
        context = contexts[agent.context]
        starting = tuple({"role": message.role, "text": message.content} for message in context.starting_messages)
        found[agent.agent_role] = Seat(agent.agent_role, context.name, agent.role, context.max_length, starting)
    return found


@lru_cache(maxsize=4096)
def needs(text: str) -> frozenset[str]:
    """The data that a text may read."""
    if not text.strip():
        return frozenset()
    return EVERYTHING if text.startswith(PYTHON) else reads(text)


class _Layout:
    """What is at hand while a workflow is laid out."""

    def __init__(
        self,
        workflow: Workflow,
        seats: Mapping[str, Seat],
        roles: Mapping[str, Role],
        tools: tuple[Use, ...],
        rules: Rules,
        leaves: Mapping[str, StateDefinition],
    ) -> None:
        self.workflow = workflow
        self.seats = seats
        self.roles = roles
        self.tools = tools
        self.rules = rules
        self.leaves = leaves
        self.around = _around(workflow.states)
        most = workflow.variables.get("max_iterations")
        self.visits = most if isinstance(most, int) else VISITS

    def state_plan(self, number: int, state: StateDefinition) -> StatePlan:
        """What a state has to do."""
        role = self.roles.get(state.agent)
        transition_plans = tuple(
            self.transition_plan(state, transition, at) for at, transition in enumerate(state.transition or (), 1)
        )
        read = {
            name
            for transition_plan in transition_plans
            for text in (transition_plan.transition.condition, *_texts(transition_plan))
            for name in functions(text)
        }
        decided = {tool.function.name for tool in role.parsingTools} if role is not None else set()
        stops = (state.on_no_match or self.workflow.on_no_match) == STOP
        return StatePlan(
            number,
            state,
            does(state),
            self.seats.get(state.agent),
            tuple(tool for tool in self.tools if role is None or role.may_use(tool.name)) if state.agent else (),
            frozenset(decided | (read - {tool.name for tool in self.tools})),
            tuple(preparing(state)),
            transition_plans,
            stops,
            state.max_visits or self.visits,
            self.workflow.max_tool_rounds,
            state.on_error or (self.workflow.on_error if self.workflow.on_error != state.name else ""),
            state.on_limit or (self.workflow.on_limit if self.workflow.on_limit != state.name else ""),
            self.rules.is_tight,
        )

    def transition_plan(self, state: StateDefinition, transition: Transition, at: int) -> TransitionPlan:
        """A transition with all that is evaluated when it is taken."""
        then: list[ScriptText] = []
        if transition.before:
            then.append(
                ScriptText("script", transition.before, f"{state.name}, before transition {at} to {transition.target}")
            )
        if state.on_exit:
            then.append(ScriptText("script", state.on_exit, f"{state.name}, on_exit"))
        target = self.leaves.get(transition.target, StateDefinition(STOP) if transition.target == STOP else None)
        prepares = target is not None and (target.name == STOP or self._is_beside(state, target))
        if prepares and target is not None:
            then += preparing(target)
        condition = transition.condition
        name = transition.target if prepares else ""
        return TransitionPlan(transition, tuple(then), name, reads_tool_calls(condition), functions(condition))

    def _is_beside(self, state: StateDefinition, target: StateDefinition) -> bool:
        """Whether going from one state to another leaves and enters no state around them."""
        return self.around[state.name] == self.around[target.name]


def _texts(transition_plan: TransitionPlan) -> Iterator[str]:
    return (script.text for script in transition_plan.then)


def _around(states: tuple[StateDefinition, ...], outer: str = "") -> dict[str, str]:
    """The state around each state, by name; "" where there is none."""
    found = {state.name: outer for state in states}
    for state in states:
        found |= _around(state.states or state.parallel, state.name)
    return found


def does(state: StateDefinition) -> Does:
    """What a state does after its scripts."""
    action = state.action
    if state.ask is not None:
        return "ask"
    if action is not None and action.sub_workflow:
        return "sub"
    function = action.function if action is not None else None
    only_script = action is not None and bool(action.script) and not function and state.input is None
    if not state.agent or function == "script" or only_script:
        return "nothing"
    return "add" if function == "addUserMessage" else "clear" if function == "clearConversation" else "converse"


def preparing(state: StateDefinition) -> Iterator[ScriptText]:
    """What is evaluated before a state does anything; `stop` only has an input."""
    action = state.action if state.name != STOP else None
    if state.on_entry and state.name != STOP:
        yield ScriptText("script", state.on_entry, f"{state.name}, on_entry")
    if action is not None and action.script:
        yield ScriptText("script", action.script, f"{state.name}, script")
    if state.input is not None and (state.name == STOP or does(state) in ("converse", "add")):
        kind: Literal["input", "output"] = "output" if state.name == STOP else "input"
        yield ScriptText(kind, state.input, f"{state.name}, input", "input")
    if state.ask is not None:
        yield ScriptText("input", state.ask.question, f"{state.name}, question", "question")
    if action is not None and action.sub_workflow:
        for name, text in action.sub_workflow_input.items():
            yield ScriptText("input", text, f"{state.name}, input {name} of {action.sub_workflow}", f"given {name}")


def type_name(value: Any) -> str:
    """The type of a value, as workflow files name types."""
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool) or value is None:
        return "boolean" if isinstance(value, bool) else "null"
    if isinstance(value, int | float):
        return "number"
    return "array" if isinstance(value, list) else "object"
