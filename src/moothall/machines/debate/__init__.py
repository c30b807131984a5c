"""The debate: clarify, propose, critique, refine, evaluate, synthesise; it stops on consensus, not on a count.

States and events have the names of the document. A debate of a size (rounds, agents, iterations of questions, retries)
is a machine of its own, so that the certificate knows what it can cost at most. Nodes and rules from outside are rows
of the same table: a node is performed as a tool, so that it survives a crash and is not done again on replay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from typing import Any

from moothall.agents.ask import AskAgent, CallTool, Replied, Returned
from moothall.kernel.codec import encode
from moothall.kernel.effects import Alarm, AskPerson, CancelSend, Send
from moothall.kernel.events import Answered, Event, GaveUp, Named
from moothall.kernel.frozen import Frozen
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State, emitting
from moothall.kernel.step import Move
from moothall.machines.debate import moves as on
from moothall.machines.debate.result import result_of
from moothall.machines.debate.state import (
    Critique,
    Debate,
    Evaluation,
    Proposal,
    Questions,
    Ranking,
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
NODE = "node:"


class Size(Frozen):
    """How large a debate may grow: what its bounds are computed from."""

    rounds: int = 3
    agents: int = 3
    iterations: int = 3
    retries: int = 1

    @property
    def name(self) -> str:
        """What the machine of this size is called."""
        return NAME if self == Size() else f"{NAME}-{self.rounds}x{self.agents}x{self.iterations}x{self.retries}"


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
    return Size(chosen.rounds, len(debate.configuration.panel), iterations, chosen.retries)


@lru_cache(maxsize=64)
def debate(size: Size | None = None) -> Machine:
    """The machine of a debate of this size."""
    return debate_with(size or Size())


def debate_with(size: Size, nodes: Sequence[Node] = (), rules: Sequence[Rule] = (), name: str = "") -> Machine:
    """The machine of a debate, with nodes and rules from outside in front of its own."""
    tries, rounds = size.retries + 1, size.rounds
    asks, once = size.agents, rounds * tries
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
        states=[
            State("Initialization", enter=on.initialise),
            State("Clarification", enter=_agents(on.ask_questions, asks), max_visits=questions),
            State("ClarificationInput", enter=_person(on.ask_user), max_visits=questions),
            State("RoundManager", enter=on.manage_round, max_visits=rounds + 1),
            State("Summarization", enter=_agents(on.summarise, asks), max_visits=once),
            State("Proposal", enter=_asks(on.propose, asks), max_visits=once),
            State("Critique", enter=_agents(on.criticise, asks), max_visits=once),
            State("Refinement", enter=_asks(on.refine, asks), max_visits=once),
            State("Evaluation", enter=_judged(on.evaluate), max_visits=once),
            State("Synthesis", enter=_agents(on.synthesise, asks + 1), max_visits=tries),
            *(State(node.name, enter=_node(node.name), max_visits=once) for node in nodes),
            Final("Complete"),
            Final("Failed"),
        ],
        moves=[*_outside(nodes, rules, once), *_rows(size)],
    )


def _rows(size: Size) -> list[On]:
    """The rows of the document's diagram, and around them what a node keeps, and what becomes of failures."""
    tries, settled = size.retries + 1, on.is_settled
    asks = size.agents * size.rounds * tries
    questions = size.agents * (size.iterations + 1) * tries
    begin = emitting(Send)(on.begin_round)
    return [
        On("Initialization", "START", to="Clarification"),
        On("Clarification", "QUESTIONS_COLLECTED", when=settled, do=on.collect_questions, at_most=questions),
        On("Clarification", "QUESTIONS_PENDING", to="ClarificationInput", when=settled),
        On("Clarification", "ALL_CLEAR", to="RoundManager", when=settled),
        On("ClarificationInput", "ANSWERS_SUBMITTED", to="Clarification", when=has_no_open_question),
        On("RoundManager", "BEGIN_ROUND", to="Summarization", do=begin),
        On("RoundManager", "MAX_ROUNDS_REACHED", to="Synthesis"),
        On("Summarization", "CONTEXTS_READY", to="Proposal", when=settled),
        On("Proposal", "DRAFTS_IN", when=settled, do=_checks(on.drafts_in), at_most=asks),
        On("Proposal", "PROPOSALS_COMPLETE", to="Critique", when=settled),
        On("Proposal", "CONSENSUS_REACHED", to="Synthesis", when=settled),
        On("Critique", "CRITIQUES_COMPLETE", to="Refinement", when=settled),
        On("Refinement", "REFINEMENTS_COMPLETE", to="Evaluation", when=settled),
        On("Evaluation", "CONTINUE", to="RoundManager", when=settled),
        On("Evaluation", "CONSENSUS_REACHED", to="Synthesis", when=settled),
        On("Evaluation", "MAX_ROUNDS_REACHED", to="Synthesis", when=settled),
        On("Synthesis", "SOLUTION_WRITTEN", when=settled, do=on.end_synthesis, at_most=tries),
        On("Synthesis", "TIE", when=settled, do=on.note_tie, at_most=tries),
        On("Synthesis", "COMPLETE", to="Complete", when=settled),
        # what comes back
        On("Clarification", Replied, do=_retries(on.keep_questions), at_most=questions),
        On("ClarificationInput", Answered, do=on.keep_answers, at_most=size.iterations + 1),
        On("Summarization", Replied, do=_retries(on.keep_summary), at_most=asks),
        On("Proposal", [Replied, Answered], do=_retries(on.keep_draft), at_most=asks),
        On("Proposal", Returned, do=on.keep_check, at_most=size.rounds),
        On("Critique", Replied, do=_retries(on.keep_critique), at_most=asks),
        On("Refinement", [Replied, Answered], do=_retries(on.keep_refinement), at_most=asks),
        On("Evaluation", Replied, do=on.keep_evaluation, at_most=size.rounds * tries),
        On("Synthesis", Replied, do=_written(on.keep_synthesis, size.agents + 1), at_most=(size.agents + 2) * tries),
        # what fails
        *_failures("Clarification", "QUESTIONS_COLLECTED", on.collect_questions, questions),
        *_failures("Summarization", "CONTEXTS_READY", on.go_on_unsummarised, asks),
        *_failures("Proposal", "DRAFTS_IN", on.fall_back_on_drafts, asks),
        *_failures("Critique", "CRITIQUES_COMPLETE", on.go_on_without_critics, asks),
        *_failures("Refinement", "REFINEMENTS_COMPLETE", on.fall_back_on_proposals, asks),
        *_failures("Evaluation", "", on.measure_instead, size.rounds * tries),
        *_failures("Synthesis", "SOLUTION_WRITTEN", on.fall_back_on_best, (size.agents + 2) * tries),
        *(On(node, on.TIMEOUT, when=on.is_this_round, do=on.time_out, at_most=size.rounds) for node in ROUND),
        # a person at the table
        *(On(node, "STEER", do=on.steer, at_most=STEERS) for node in (*ASKING[:-1], "ClarificationInput")),
        *(
            On(node, "SYNTHESISE", to="Synthesis", when=on.has_proposals, do=on.end_early)
            for node in (*ROUND, "Evaluation")
        ),
    ]


def _failures(node: str, complete: str, fall_back: Callable[[Debate, Any], Any], most: int) -> list[On]:
    """An agent that failed, the node done again for those that did, and what becomes of them in the end."""
    lose = on.lose_synthesis if node == "Synthesis" else on.lose(complete)
    return [
        On(node, GaveUp, do=_retries(lose), at_most=most),
        On(node, "RETRY", to=node, when=on.is_settled),
        On(node, "FALLBACK", when=on.is_settled, do=fall_back, at_most=most),
        On(node, "FAILED", to="Failed", when=on.is_settled, do=on.fail),
    ]


def has_no_open_question(debate: Debate, _: Event) -> bool:
    """Whether every question has an answer."""
    return all(question.answer for question in debate.clarifications)


# what a move may want


def _asks(move: Callable[[Debate, Any], Any], most: int) -> Any:
    """A move that asks the panel, agents and people."""
    return _wanting(move, {AskAgent: most, AskPerson: most})


def _agents(move: Callable[[Debate, Any], Any], most: int) -> Any:
    """A move that asks agents, and may cancel a timer."""
    return _wanting(move, {AskAgent: most, CancelSend: 1})


def _judged(move: Callable[[Debate, Any], Any]) -> Any:
    return _wanting(move, {AskAgent: 1, CancelSend: 1})


def _person(move: Callable[[Debate, Any], Any]) -> Any:
    return _wanting(move, {AskPerson: 1})


def _checks(move: Callable[[Debate, Any], Any]) -> Any:
    return _wanting(move, {CallTool: 1})


def _retries(move: Callable[[Debate, Any], Any]) -> Any:
    return _wanting(move, {Alarm: 1})


def _written(move: Callable[[Debate, Any], Any], most: int) -> Any:
    return _wanting(move, {AskAgent: most, Alarm: 1})


def _wanting(move: Callable[[Debate, Any], Any], wanted: Mapping[Any, int]) -> Any:
    """The same move, which says what it may want at most."""

    def moved(data: Debate, event: Any) -> Any:
        return move(data, event)

    moved.__name__, moved.__qualname__, moved.__doc__ = move.__name__, move.__qualname__, move.__doc__
    moved.emits = {effect.kind: most for effect, most in wanted.items()}  # type: ignore[attr-defined]
    moved.effects = tuple(wanted)  # type: ignore[attr-defined]
    moved.outcomes = tuple(outcome for effect in wanted for outcome in effect.outcomes)  # type: ignore[attr-defined]
    return moved


# from outside


def _node(name: str) -> Any:
    """Perform a node from outside, with all that the debate knows."""

    def perform(debate: Debate, _: Event) -> Move[Debate]:
        return Move(replace(debate, waiting=()), (CallTool(f"{NODE}{name}", {"state": encode(debate)}, id=name),))

    perform.__qualname__ = f"node({name!r})"
    return _wanting(perform, {CallTool: 1})


def keep_node(debate: Debate, returned: Returned) -> Move[Debate]:
    """Go on with the event that a node gives; what it adds to the context is kept under its name."""
    event, added = str(returned.value["event"]), returned.value.get("updated_context") or {}
    return on.raised(replace(debate, extra={**debate.extra, returned.id: added}), event)


def _outside(nodes: Sequence[Node], rules: Sequence[Rule], most: int) -> list[On]:
    rows = [
        On(rule.source, rule.event, to=rule.target or "Complete", when=_condition(rule), at_most=most) for rule in rules
    ]
    for node in nodes:
        rows += [
            On(node.name, Returned, do=keep_node, at_most=most),
            On(node.name, GaveUp, to="Failed", do=on.fail),
            On(node.name, "FAILED", to="Failed", do=on.fail),
        ]
    return rows


def _condition(rule: Rule) -> Callable[[Debate, Event], bool]:
    def holds(debate: Debate, event: Event) -> bool:
        return on.is_settled(debate, event) and (rule.condition is None or bool(rule.condition(debate)))

    holds.__qualname__ = f"rule({rule.source!r}, {rule.event!r})"
    return holds


def _prompt(name: str) -> str:
    return files(__name__).joinpath(f"prompts/{name}.md").read_text(encoding="utf-8").strip()


__all__ = ["EVENTS", "Debate", "Named", "Node", "Rule", "Size", "debate", "debate_with", "size_of"]
