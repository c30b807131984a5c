"""The debate: clarify, propose, critique, refine, evaluate, synthesise; it stops on consensus, not on a count.

States and events have the names of the document. A debate of a size (rounds, agents, iterations of questions, retries)
is a machine of its own, so that the certificate knows what it can cost at most. Nodes and rules from outside are rows
of the same table: a node is performed as a tool, so that it survives a crash and is not done again on replay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from importlib.resources import files
from typing import Any, NamedTuple

from moothall.agents.ask import ASKS, AskAgent, CallTool, Replied, Returned, Turning
from moothall.kernel.codec import encode
from moothall.kernel.effects import Alarm, AskPerson, CancelSend, Effect, Send, StartChild
from moothall.kernel.events import Answered, Event, Expired, GaveUp, Named
from moothall.kernel.frozen import Frozen
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State
from moothall.kernel.step import Move
from moothall.machines.debate import moves as on
from moothall.machines.debate.definition import turn_machine
from moothall.machines.debate.result import result_of
from moothall.machines.debate.state import (
    Critique,
    Debate,
    Evaluation,
    Proposal,
    Questions,
    Ranking,
    Retry,
    RoundTimeout,
    Solution,
    Summary,
)

NAME = "debate"
PROMPTS = ("clarify", "propose", "critique", "refine", "evaluate", "synthesise", "summarise", "rank")
EVENTS = (
    "START",
    "QUESTIONS_PENDING",
    "ANSWERS_SUBMITTED",
    "ALL_CLEAR",
    "BEGIN_ROUND",
    "CONTEXTS_READY",
    "PROPOSALS_COMPLETE",
    "CRITIQUES_COMPLETE",
    "REFINEMENTS_COMPLETE",
    "CONTINUE",
    "CONSENSUS_REACHED",
    "MAX_ROUNDS_REACHED",
    "COMPLETE",
    "FAILED",
    "RETRY",
    "FALLBACK",
)
"""The events of the document; the journal has them by these names."""
PUBLIC = frozenset((*EVENTS, "TIE", "STEER", "SYNTHESISE", "ROUND_TIMEOUT"))
"""What the result tells of; a node's own bookkeeping is left out."""
STEERS = 100
ROUND = ("Summarization", "Proposal", "Critique", "Refinement")
ASKING = ("Clarification", *ROUND, "Evaluation", "Synthesis")
ENDING = ("Summarization", "Critique", "Refinement", "Evaluation")
"""Where there are proposals, of which a solution can be written at once."""
OUTSIDE = ("STEER", "SYNTHESISE")
"""What people may tell a debate; everything else it raises itself."""
INNER = (
    *EVENTS,
    "QUESTIONS_COLLECTED",
    "DRAFTS_IN",
    "SUMMARY_READY",
    "SOLUTION_WANTED",
    "SOLUTION_WRITTEN",
    "TIE",
    "PAUSE",
    "ROUND_TIMEOUT",
)
NODE = "node:"
Moving = Callable[[Debate, Any], Any]


class Size(Frozen):
    """How large a debate may grow: what its bounds are computed from."""

    rounds: int = 3
    agents: int = 3
    iterations: int = 3
    retries: int = 1
    calls: int = 0
    """The most calls of tools before one reply; 0 where nobody has any."""
    asks: bool = False
    """Whether a person may be asked before one."""

    @property
    def name(self) -> str:
        """What the machine of this size is called."""
        if self == Size():
            return NAME
        tools = f"x{self.calls}{ASKS if self.asks else ''}" if self.calls else ""
        return f"{NAME}-{self.rounds}x{self.agents}x{self.iterations}x{self.retries}{tools}"

    @property
    def turn(self) -> str:
        """The machine that an agent with tools takes its turn in; "" where nobody has any."""
        return turn_machine(self.calls, asks=self.asks) if self.calls else ""


class Node(Frozen):
    """A node from outside: its name, which is a state, and what it may be followed by."""

    name: str


class Rule(Frozen):
    """A transition from outside: from a state, on an event, to a state, where a condition holds."""

    source: str
    event: str
    target: str | None
    condition: Callable[[Any], bool] | None = None


def size_of(debate: Debate) -> Size:
    """The size that a debate needs."""
    chosen = debate.configuration.debate
    iterations = chosen.clarificationsMaxIterations if chosen.interactiveClarifications else Size().iterations
    known = debate.configuration
    return Size(chosen.rounds, len(known.panel), iterations, chosen.retries, known.most_calls, known.asks)


@lru_cache(maxsize=64)
def debate(size: Size | None = None) -> Machine:
    """The machine of a debate of this size."""
    return debate_with(size or Size())


def debate_with(size: Size, nodes: Sequence[Node] = (), rules: Sequence[Rule] = (), name: str = "") -> Machine:
    """The machine of a debate, with nodes and rules from outside in front of its own."""
    tries, rounds = size.retries + 1, size.rounds
    asks, once = size.agents, rounds * tries
    panel: Mapping[type[Effect], int] = {AskAgent: asks}
    seats: Mapping[type[Effect], int] = {AskAgent: asks, AskPerson: asks}
    asking, judging = partial(wanting, turn=size.turn, turns=asks), partial(wanting, turn=size.turn, turns=1)
    questions = (size.iterations + 1) * tries
    return Machine(
        name or size.name,
        data=Debate,
        kind=NAME,
        start="Initialization",
        result=result_of,
        replies=[Questions, Proposal, Critique, Evaluation, Solution, Summary, Ranking],
        prompts={name: _prompt(name) for name in PROMPTS},
        costs={CallTool.kind: {"calls": 0}},
        inner=[*INNER, *(rule.event for rule in rules if rule.event not in OUTSIDE)],
        states=[
            State("Initialization", enter=on.initialise),
            State("Clarification", enter=asking(on.ask_questions, panel), max_visits=questions),
            State("ClarificationInput", enter=wanting(on.ask_user, {AskPerson: 1}), max_visits=questions),
            State("RoundManager", enter=on.manage_round, max_visits=rounds + 1),
            State("Summarization", enter=wanting(on.summarise, panel), max_visits=once),
            State("Proposal", enter=asking(on.propose, seats), max_visits=once),
            State("Critique", enter=asking(on.criticise, panel), max_visits=once),
            State("Refinement", enter=asking(on.refine, seats), max_visits=once),
            State("Evaluation", enter=judging(on.evaluate, {AskAgent: 1, CancelSend: 1}), max_visits=once),
            State("Synthesis", enter=judging(on.synthesise, {AskAgent: asks + 1, CancelSend: 1}), max_visits=tries),
            *(State(node.name, enter=_node(node.name), max_visits=once) for node in nodes),
            Final("Complete"),
            Final("Failed", ends="failed"),
        ],
        moves=[*_outside(nodes, rules, once), *_rows(size)],
    )


def _rows(size: Size) -> list[On]:
    """The rows of the document's diagram, and around them what a node keeps, and what becomes of failures."""
    return [*_diagram(size), *_arrivals(size), *_trouble(size), *_table_talk(), *_later()]


def _diagram(size: Size) -> list[On]:
    """The document's diagram; a row without `to` is a step inside a node."""
    tries, visits = size.retries + 1, size.rounds * (size.retries + 1)
    checks = visits + size.agents
    begin = wanting(on.begin_round, {Send: 1}, (RoundTimeout,))
    write = wanting(on.write_solution, {AskAgent: size.agents + 1}, turn=size.turn, turns=1)
    return [
        On("Initialization", "START", to="Clarification"),
        On("Clarification", "QUESTIONS_COLLECTED", do=on.collect_questions, at_most=(size.iterations + 1) * tries),
        On("Clarification", "QUESTIONS_PENDING", to="ClarificationInput"),
        On("Clarification", "ALL_CLEAR", to="RoundManager"),
        On("ClarificationInput", "ANSWERS_SUBMITTED", to="Clarification"),
        On("RoundManager", "BEGIN_ROUND", to="Summarization", do=begin),
        On("RoundManager", "MAX_ROUNDS_REACHED", to="Synthesis"),
        On("Summarization", "CONTEXTS_READY", to="Proposal"),
        On("Proposal", "DRAFTS_IN", do=wanting(on.drafts_in, {CallTool: 1}), at_most=checks),
        On("Proposal", "PROPOSALS_COMPLETE", to="Critique"),
        On("Proposal", "CONSENSUS_REACHED", to="Synthesis"),
        On("Critique", "CRITIQUES_COMPLETE", to="Refinement"),
        On("Refinement", "REFINEMENTS_COMPLETE", to="Evaluation"),
        On("Evaluation", "CONTINUE", to="RoundManager"),
        On("Evaluation", "CONSENSUS_REACHED", to="Synthesis"),
        On("Evaluation", "MAX_ROUNDS_REACHED", to="Synthesis"),
        On("Synthesis", "SUMMARY_READY", do=write, at_most=tries),
        On("Synthesis", "SOLUTION_WRITTEN", do=on.end_synthesis, at_most=tries),
        On("Synthesis", "TIE", do=on.note_tie, at_most=tries),
        On("Synthesis", "COMPLETE", to="Complete"),
    ]


def _arrivals(size: Size) -> list[On]:
    """What agents, people and checks say, each as often as it is asked for."""
    tries, visits = size.retries + 1, size.rounds * (size.retries + 1)
    questions, asks = size.agents * (size.iterations + 1) * tries, size.agents * visits
    return [
        On("Clarification", Replied, do=on.keep_questions, at_most=questions),
        On("ClarificationInput", Answered, do=on.keep_answers, at_most=(size.iterations + 1) * tries),
        On("Summarization", Replied, do=on.keep_summary, at_most=asks),
        On("Proposal", Replied, do=on.keep_draft, at_most=asks),
        On("Proposal", Answered, do=on.keep_draft, at_most=asks),
        On("Proposal", Returned, do=on.keep_check, at_most=visits + size.agents),
        On("Critique", Replied, do=on.keep_critique, at_most=asks),
        On("Refinement", Replied, do=on.keep_refinement, at_most=asks),
        On("Refinement", Answered, do=on.keep_refinement, at_most=asks),
        On("Evaluation", Replied, do=on.keep_evaluation, at_most=visits),
        On("Synthesis", Replied, do=on.keep_synthesis, at_most=2 * (size.agents + 1) * tries),
    ]


def _trouble(size: Size) -> list[On]:
    """Agents that fail, nodes that are done again for them, what becomes of them in the end, and time that runs out."""
    rounds, panel = Times(size.rounds, size.retries), size.agents * (2 if size.calls else 1)  # an ask or a turn each
    before, once = Times(size.iterations + 1, size.retries), Times(1, size.retries)
    return [
        *_failures("Clarification", on.lose("QUESTIONS_COLLECTED"), on.collect_questions, before, panel),
        *_failures("Summarization", on.lose("CONTEXTS_READY"), on.go_on_unsummarised, rounds, panel),
        *_failures("Proposal", on.lose_draft, on.fall_back_on_drafts, rounds, 2 * panel + 1),
        *_failures("Critique", on.lose("CRITIQUES_COMPLETE"), on.go_on_without_critics, rounds, panel),
        *_failures("Refinement", on.lose("REFINEMENTS_COMPLETE"), on.fall_back_on_proposals, rounds, panel),
        *_failures("Evaluation", on.lose(""), on.measure_instead, rounds, 2 if size.calls else 1),
        *_failures("Synthesis", on.lose_synthesis, on.fall_back_on_best, once, 2 * (panel + 1)),
        *(On(node, RoundTimeout.name, do=on.time_out, at_most=size.rounds) for node in ROUND),
    ]


class Times(NamedTuple):
    """How often a node is come to, and how often it is then done again."""

    visits: int
    retries: int

    @property
    def all(self) -> int:
        return self.visits * (self.retries + 1)


def _failures(node: str, lose: Moving, fall_back: Moving, times: Times, asked: int) -> list[On]:
    """An agent that failed, the node done again for those that did, and what becomes of them in the end."""
    return [
        On(node, GaveUp, do=lose, at_most=asked * times.all),
        On(node, "PAUSE", do=wanting(on.pause, {Alarm: 1}, (Retry,)), at_most=times.visits * times.retries),
        On(node, Retry.name, to=node),
        On(node, "FALLBACK", do=fall_back, at_most=times.all),
        On(node, "FAILED", to="Failed", do=on.fail),
    ]


def _table_talk() -> list[On]:
    """A person at the table."""
    steered = (*ASKING[:-1], "ClarificationInput")
    return [
        *(On(node, "STEER", do=on.steer, at_most=STEERS) for node in steered),
        *(On(node, "SYNTHESISE", to="Synthesis", do=on.end_early) for node in ENDING),
        On("Proposal", "SYNTHESISE", do=on.end_drafts, at_most=STEERS),
    ]


def _later() -> list[On]:
    """Rows that came later. They stand below all others: journals know rows by their places."""
    return [
        On("Proposal", "MAX_ROUNDS_REACHED", to="Synthesis"),
        On("Proposal", "SOLUTION_WANTED", to="Synthesis"),
    ]


def wanting(
    move: Moving,
    wanted: Mapping[type[Effect], int],
    outcomes: Sequence[type[Event]] = (),
    *,
    turn: str = "",
    turns: int = 0,
) -> Any:
    """The same move, which says what it may want at most, and which events come of it.

    Nobody at the table has a deadline of its own, so a question of a debate does not expire. Where agents have tools,
    an ask may be a turn of this machine, which ends as the ask would.
    """

    def moved(data: Debate, event: Any) -> Any:
        return move(data, event)

    known = [outcome for effect in wanted for outcome in effect.outcomes if outcome is not Expired]
    moved.__name__, moved.__qualname__, moved.__doc__ = move.__name__, move.__qualname__, move.__doc__
    if turn:
        wanted = {**wanted, StartChild: turns}
        moved.child, moved.words = turn, Turning.words  # type: ignore[attr-defined]
    moved.emits = {effect.kind: most for effect, most in wanted.items()}  # type: ignore[attr-defined]
    moved.effects = tuple(wanted)  # type: ignore[attr-defined]
    moved.outcomes = (*known, *outcomes)  # type: ignore[attr-defined]
    return moved


# from outside


def _node(name: str) -> Any:
    """Perform a node from outside, with all that the debate knows."""

    def perform(debate: Debate, _: Event) -> Move[Debate]:
        return Move(replace(debate, waiting=()), (CallTool(f"{NODE}{name}", {"state": encode(debate)}, id=name),))

    perform.__qualname__ = f"node({name!r})"
    return wanting(perform, {CallTool: 1})


def keep_node(debate: Debate, returned: Returned) -> Move[Debate]:
    """Go on with the event that a node gives; what it adds to the context is kept under its name."""
    event, added = str(returned.value["event"]), returned.value.get("updated_context") or {}
    return on.raised(replace(debate, extra={**debate.extra, returned.id: added}), event)


def _outside(nodes: Sequence[Node], rules: Sequence[Rule], most: int) -> list[On]:
    rows: list[On] = [
        On(rule.source, rule.event, to=rule.target or "Complete", when=_condition(rule), at_most=most) for rule in rules
    ]
    for node in nodes:
        rows += [
            On(node.name, Returned, do=keep_node),
            On(node.name, GaveUp, to="Failed", do=on.fail),
            On(node.name, "FAILED", to="Failed", do=on.fail),
        ]
    return rows


def _condition(rule: Rule) -> Callable[[Debate, Event], bool]:
    def holds(debate: Debate, event: Event) -> bool:
        return rule.condition is None or bool(rule.condition(debate))

    holds.__qualname__ = f"rule({rule.source!r}, {rule.event!r})"
    return holds


def _prompt(name: str) -> str:
    return files(__name__).joinpath(f"prompts/{name}.md").read_text(encoding="utf-8").strip()


__all__ = ["EVENTS", "Debate", "Named", "Node", "Rule", "Size", "debate", "debate_with", "size_of"]
