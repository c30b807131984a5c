"""The debate's diagram and event table: every row, every node, what is refused, and what ends it."""

from collections import Counter
from typing import Any

import pytest

from moothall.agents.ask import AskAgent
from moothall.analysis.certify import Certificate, certify
from moothall.analysis.verify import verify
from moothall.kernel.effects import Send
from moothall.kernel.events import Answered, Named
from moothall.kernel.interpreter import accepts, possible, transition
from moothall.kernel.machine import Machine
from moothall.kernel.simulate import Simulation
from moothall.kernel.step import Snapshot, Step
from moothall.machines.debate import EVENTS, INNER, OUTSIDE, Size, debate
from moothall.machines.debate.definition import AgentConfig, TerminationCondition
from moothall.machines.debate.result import result_of
from moothall.machines.debate.state import Critique, Debate, Evaluation, Questions, Review, Solution
from tests.machines.debates import (
    ANN,
    BOB,
    CAT,
    CLOSED,
    FIXED,
    Panel,
    begun,
    events,
    path,
    played,
    proposals,
    settled,
    state,
)

FIRST = ["Initialization", "Clarification", "RoundManager"]
ROUND = ["Summarization", "Proposal", "Critique", "Refinement", "Evaluation"]
QUESTIONS = {("clarify", ANN): [Questions(("How many?",)), Questions()]}
OPEN_AGAIN = {("evaluate", "judge"): [Evaluation(10)]}
GATED = {("propose", BOB): proposals("B"), ("propose", CAT): proposals("C")}

DIAGRAM: dict[tuple[str, str, str], tuple[Debate, Panel]] = {
    ("Initialization", "START", "Clarification"): (begun(), Panel()),
    ("Clarification", "QUESTIONS_PENDING", "ClarificationInput"): (
        begun(interactiveClarifications=True),
        Panel(QUESTIONS),
    ),
    ("ClarificationInput", "ANSWERS_SUBMITTED", "Clarification"): (
        begun(interactiveClarifications=True),
        Panel(QUESTIONS),
    ),
    ("Clarification", "ALL_CLEAR", "RoundManager"): (begun(), Panel()),
    ("RoundManager", "BEGIN_ROUND", "Summarization"): (begun(), Panel()),
    ("Summarization", "CONTEXTS_READY", "Proposal"): (begun(), Panel()),
    ("Proposal", "PROPOSALS_COMPLETE", "Critique"): (begun(), Panel()),
    ("Critique", "CRITIQUES_COMPLETE", "Refinement"): (begun(), Panel()),
    ("Refinement", "REFINEMENTS_COMPLETE", "Evaluation"): (begun(), Panel()),
    ("Evaluation", "CONTINUE", "RoundManager"): (begun(), Panel(OPEN_AGAIN)),
    ("Evaluation", "CONSENSUS_REACHED", "Synthesis"): (begun(), Panel()),
    ("Evaluation", "MAX_ROUNDS_REACHED", "Synthesis"): (begun(rounds=1), Panel(OPEN_AGAIN)),
    ("RoundManager", "MAX_ROUNDS_REACHED", "Synthesis"): (begun(rounds=1, terminationCondition=FIXED), Panel()),
    ("Synthesis", "COMPLETE", "Complete"): (begun(), Panel()),
    ("Proposal", "CONSENSUS_REACHED", "Synthesis"): (begun(answer=CLOSED), Panel()),
    ("Proposal", "MAX_ROUNDS_REACHED", "Synthesis"): (begun(protocol="vote", answer=CLOSED), Panel(GATED)),
    ("Proposal", "FAILED", "Failed"): (
        begun(),
        Panel(fails=Counter({("propose", name): 9 for name in (ANN, BOB, CAT)})),
    ),
    ("Proposal", "RETRY", "Proposal"): (begun(), Panel(fails=Counter({("propose", ANN): 1}))),
}


def whole(data: Debate, panel: Panel) -> Simulation:
    """A debate to its end; whoever asks a person is told the same."""
    simulation = played(data, panel)
    while simulation.live:
        questions = [wanted for wanted in simulation.open if wanted.effect in panel.people]
        if questions:
            fields = questions[0].effect.schema["properties"]  # type: ignore[attr-defined]
            given = dict.fromkeys(fields, "seven")
            simulation.answer(questions[0], Answered(given, id=panel.people[-1].id))
        else:
            simulation.tick()
    return simulation


def edges(simulation: Simulation) -> set[tuple[str, str, str]]:
    """The transitions that a debate took: from, on what, to."""
    return {
        (microstep.exited[0], microstep.event, microstep.entered[0])
        for step in simulation.steps
        for microstep in step.microsteps
        if microstep.exited and microstep.entered
    }


@pytest.mark.covers("D6", "D7")
@pytest.mark.parametrize("edge", DIAGRAM, ids=lambda edge: " ".join(edge))
def test_every_row_of_the_diagram_is_taken(edge: tuple[str, str, str]) -> None:
    data, panel = DIAGRAM[edge]
    assert edge in edges(whole(data, Panel(panel.replies, panel.fails.copy())))


@pytest.mark.covers("D6")
def test_the_table_has_no_other_way_between_states_than_the_diagram() -> None:
    machine = debate()
    rows = {(row.on.state, str(row.on.event), str(row.on.to)) for row in machine.chart.rows if row.on.to}
    asking = {"Clarification", *ROUND, "Synthesis"}
    failing = {(node, "RETRY", node) for node in asking} | {(node, "FAILED", "Failed") for node in asking}
    early = {(node, "SYNTHESISE", "Synthesis") for node in (*ROUND, "Evaluation") if node != "Proposal"}
    assert rows == set(DIAGRAM) | failing | early | {("Proposal", "SOLUTION_WANTED", "Synthesis")}


@pytest.mark.covers("D6")
def test_every_event_of_the_table_is_seen_in_some_debate() -> None:
    seen = {event for data, panel in DIAGRAM.values() for event in events(whole(data, panel))}
    ill = Panel(fails=Counter({("propose", ANN): 9}))
    seen |= set(events(settled(begun(), ill)))
    assert set(EVENTS) <= seen


def test_a_debate_that_agrees_takes_the_way_of_the_document() -> None:
    simulation = played(begun())
    assert path(simulation) == [*FIRST, *ROUND, "Synthesis", "Complete"]
    assert [name for name in events(simulation) if name in EVENTS] == [
        *("START", "ALL_CLEAR", "BEGIN_ROUND", "CONTEXTS_READY", "PROPOSALS_COMPLETE", "CRITIQUES_COMPLETE"),
        *("REFINEMENTS_COMPLETE", "CONSENSUS_REACHED", "COMPLETE"),
    ]


def templates(step: Step) -> list[str]:
    return [wanted.effect.template for wanted in step.effects if isinstance(wanted.effect, AskAgent)]


# what is refused


def stations() -> dict[str, tuple[Machine, Snapshot]]:
    """A debate at rest in every state in which it can rest."""
    silent = {name: (begun(interactiveClarifications=name == "Clarification"), name) for name in RESTS}
    found = {}
    for name, (data, _) in silent.items():
        template = RESTS[name]
        panel = Panel(silent={(template, agent) for agent in (ANN, BOB, CAT, "judge")})
        simulation = played(data, panel)
        assert simulation.active == (name,)
        found[name] = (simulation.machine, simulation.snapshot)
    asking = played(begun(interactiveClarifications=True), Panel(QUESTIONS))
    found["ClarificationInput"] = (asking.machine, asking.snapshot)
    ended = played(begun())
    found["Complete"] = (ended.machine, ended.snapshot)
    return found


RESTS = {
    "Clarification": "clarify",
    "Proposal": "propose",
    "Critique": "critique",
    "Refinement": "refine",
    "Evaluation": "evaluate",
    "Synthesis": "synthesise",
}


@pytest.mark.covers("D6")
def test_every_event_that_a_state_does_not_accept_is_refused_and_changes_nothing() -> None:
    pairs = 0
    for name, (machine, snapshot) in stations().items():
        for event in (*INNER, *OUTSIDE, "NONSENSE"):
            if event in possible(machine, snapshot):
                assert event in OUTSIDE
                continue
            assert not accepts(machine, snapshot, event), (name, event)
            pairs += 1
    assert pairs > 150


@pytest.mark.parametrize("name", RESTS)
def test_an_event_that_no_row_of_a_state_names_changes_nothing_even_if_it_came(name: str) -> None:
    machine, snapshot = stations()[name]
    named = {descriptor for row in machine.chart.rows if row.on.state == name for descriptor in row.descriptors or ()}
    for event in {*INNER, *OUTSIDE} - named:
        step = transition(machine, snapshot, Named(event))
        assert isinstance(step, Step)
        assert (step.taken, step.snapshot.data, step.effects) == ((), snapshot.data, ())


# what can be known of it before it runs


@pytest.mark.parametrize("size", [Size(), Size(1, 1, 0, 0), Size(5, 7, 3, 1), Size(2, 50, 3, 3)], ids=str)
def test_nothing_is_wrong_with_the_machine_and_it_has_a_bound(size: Size) -> None:
    assert verify(debate(size)) == ()
    bound = certify(debate(size))
    assert isinstance(bound, Certificate)
    rounds, agents = size.rounds * (size.retries + 1), size.agents
    assert bound.resources["ask.agent"] >= 3 * rounds * agents


def test_no_debate_takes_more_than_its_certificate_says() -> None:
    ill = Panel(OPEN_AGAIN, fails=Counter({(template, ANN): 1 for template in ("propose", "critique", "refine")}))
    simulation = settled(begun(), ill)
    bound = certify(simulation.machine)
    assert isinstance(bound, Certificate)
    assert len(ill.asked) <= bound.resources["ask.agent"]
    assert sum(len(step.taken) for step in simulation.steps) <= bound.transitions


# rounds and their end


@pytest.mark.covers("D15", "D16", "D39")
@pytest.mark.parametrize("rounds", [1, 2, 3, 5])
def test_rounds_are_begun_while_fewer_were_evaluated_than_are_allowed(rounds: int) -> None:
    simulation = played(begun(rounds=rounds), Panel(OPEN_AGAIN))
    assert events(simulation).count("BEGIN_ROUND") == rounds == state(simulation).rounds
    assert state(simulation).termination.reason == "max_rounds"


@pytest.mark.covers("D25")
@pytest.mark.parametrize("rounds", [1, 3])
def test_a_fixed_number_of_rounds_asks_no_judge_for_an_evaluation(rounds: int) -> None:
    panel = Panel()
    simulation = played(begun(rounds=rounds, terminationCondition=FIXED), panel)
    assert panel.count("evaluate") == 0
    assert events(simulation).count("CONTINUE") == rounds
    assert "MAX_ROUNDS_REACHED" in events(simulation)


@pytest.mark.covers("D22")
@pytest.mark.parametrize(
    ("confidence", "threshold", "ends"),
    [(80, 80, True), (79.9, 80, False), (100, 100, True), (0, 0, True), (50, 51, False)],
)
def test_the_confidence_of_the_judge_ends_the_rounds_from_the_threshold_on(
    confidence: float, threshold: float, ends: bool
) -> None:
    panel = Panel({("evaluate", "judge"): [Evaluation(confidence), Evaluation(100)]})
    simulation = played(begun(terminationCondition=TerminationCondition("convergence", threshold)), panel)
    assert (state(simulation).rounds == 1) is ends
    assert state(simulation).termination.threshold == threshold


@pytest.mark.parametrize(
    ("points", "ends"), [({"fit": 8}, True), ({"fit": 7}, False), ({"fit": 10, "cost": 6}, True), ({}, False)]
)
def test_points_of_a_rubric_count_tenfold(points: dict[str, float], ends: bool) -> None:
    panel = Panel({("evaluate", "judge"): [Evaluation(10, rubric=points), Evaluation(100, rubric={"fit": 10})]})
    condition = TerminationCondition("quality", 80)
    simulation = played(begun(rubric=("fit", "cost"), terminationCondition=condition), panel)
    assert (state(simulation).rounds == 1) is ends
    assert "Score each of these from 1 to 10 as rubric: fit, cost." in panel.asks("evaluate")[0].arguments["rubric"]


@pytest.mark.parametrize(("confidence", "rubric"), [(101, {}), (-1, {}), (50, {"fit": 0}), (50, {"fit": 11})])
def test_an_evaluation_outside_its_scale_is_no_evaluation(confidence: float, rubric: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="from"):
        Evaluation(confidence, rubric=rubric)


def test_counted_answers_that_differ_contradict_a_judge_who_is_sure() -> None:
    drafts = {("propose", BOB): proposals("B"), ("propose", CAT): proposals("C"), ("refine", BOB): proposals("B")}
    panel = Panel({**drafts, ("refine", CAT): proposals("C")})
    simulation = played(begun(answer=CLOSED, protocol="debate", rounds=2), panel)
    assert state(simulation).termination.reason == "max_rounds"
    assert [known.confidence for known in state(simulation).history] == [pytest.approx(100 / 3, abs=0.01)] * 2


def test_texts_that_are_the_same_agree_whatever_the_judge_says() -> None:
    same = proposals("the same way")
    panel = Panel({**OPEN_AGAIN, **{("refine", name): same for name in (ANN, BOB, CAT)}})
    simulation = played(begun(), panel)
    assert (state(simulation).rounds, state(simulation).termination.confidence) == (1, 100)


# the nodes


@pytest.mark.covers("D18")
def test_later_rounds_begin_with_the_refinements_of_the_round_before() -> None:
    panel = Panel(OPEN_AGAIN)
    played(begun(rounds=2), panel)
    assert panel.count("propose") == 3
    [first, second] = panel.asks("refine", ANN)
    assert (first.arguments["proposal"], second.arguments["proposal"]) == ("draft of ann", "refinement of ann")


@pytest.mark.covers("D19")
def test_everybody_reviews_all_others_at_once_and_refines_with_every_review_of_its_own() -> None:
    panel = Panel()
    simulation = played(begun(), panel)
    [step] = [step for step in simulation.steps if "critique" in templates(step)]
    assert templates(step) == ["critique"] * 3
    for name, others in ((ANN, (BOB, CAT)), (BOB, (ANN, CAT)), (CAT, (ANN, BOB))):
        [critique], [refine] = panel.asks("critique", name), panel.asks("refine", name)
        assert all(f"draft of {other}" in critique.arguments["arguments"] for other in others)
        assert f"draft of {name}" not in critique.arguments["arguments"]
        shown = refine.arguments["critiques"]
        assert all(f"{other} on " in shown for other in others)
        assert f"{name} on " not in shown


def test_the_judge_writes_the_solution_from_the_last_proposals_and_is_not_on_the_panel() -> None:
    panel = Panel()
    simulation = played(begun(), panel)
    [ask] = panel.asks("synthesise")
    assert ask.agent == "judge"
    assert all(f"refinement of {name}" in ask.arguments["arguments"] for name in (ANN, BOB, CAT))
    assert not [asked for asked in panel.asked if asked.agent == "judge" and asked.template in ("propose", "refine")]
    solution = state(simulation).solution
    assert solution is not None
    assert (solution.description, result_of(state(simulation))["solution"]["confidence"]) == ("the way", 80)


def test_what_is_unmet_caps_the_confidence() -> None:
    panel = Panel({("synthesise", "judge"): [Solution("the way", confidence=95, unmet_requirements=("cheap",))]})
    assert result_of(state(played(begun(), panel)))["solution"]["confidence"] == 50


def test_one_agent_alone_writes_no_critiques_and_is_not_ranked() -> None:
    panel = Panel()
    simulation = played(begun(ANN), panel)
    assert path(simulation) == [*FIRST, *ROUND, "Synthesis", "Complete"]
    assert Counter(ask.template for ask in panel.asked) == Counter(
        {"propose": 1, "refine": 1, "evaluate": 1, "synthesise": 1}
    )


def test_reviews_of_labels_that_nobody_has_are_dropped() -> None:
    wild = Critique((Review("Z", "who?"), Review("[A].", "fine"), Review("B", "  ")))
    panel = Panel({("critique", ANN): [wild]})
    simulation = played(begun(), panel)
    [own] = [remark for remark in state(simulation).critiques if remark.by == ANN]
    assert own.text == "fine"


# a person at the table


def test_what_a_person_says_reaches_everybody_from_the_next_ask_on() -> None:
    panel = Panel(silent={("propose", CAT)})
    simulation = played(begun(), panel)
    simulation.send(Named("STEER", "It has to be cheap."))
    simulation.advance(300)
    assert all("It has to be cheap." not in ask.arguments["steering"] for ask in panel.asks("propose"))
    assert "It has to be cheap." in panel.asks("synthesise")[0].arguments["steering"]


@pytest.mark.parametrize("text", ["", "   ", None])
def test_an_empty_word_of_a_person_is_no_word(text: Any) -> None:
    simulation = played(begun(), Panel(silent={("propose", CAT)}))
    simulation.send(Named("STEER", text))
    assert state(simulation).steering == ()


@pytest.mark.parametrize(
    ("template", "shown"),
    [("propose", "draft of bob"), ("critique", "draft of bob"), ("refine", "refinement of bob"), ("evaluate", "bob")],
)
def test_a_person_can_ask_for_the_solution_early_from_what_there_is(template: str, shown: str) -> None:
    panel = Panel(silent={(template, CAT), (template, "judge")})
    simulation = played(begun(), panel)
    simulation.send(Named("SYNTHESISE"))
    assert simulation.active == ("Complete",)
    assert state(simulation).termination.reason == "asked_for"
    assert shown in panel.asks("synthesise")[0].arguments["arguments"]


def test_a_solution_that_is_asked_for_before_any_proposal_is_not_written() -> None:
    panel = Panel(silent={("propose", name) for name in (ANN, BOB, CAT)})
    simulation = played(begun(), panel)
    simulation.send(Named("SYNTHESISE"))
    assert simulation.active == ("Proposal",)
    assert state(simulation).carried == ("a solution was asked for before there was any proposal",)


def test_a_person_with_a_seat_proposes_and_refines_and_is_neither_asked_to_review_nor_to_rank() -> None:
    panel = Panel()
    seat = AgentConfig("you", "you", person=True)
    simulation = whole(begun(seats=[seat]), panel)
    assert [question.who for question in panel.people] == ["you", "you"]
    assert {ask.agent for ask in panel.asked} == {ANN, BOB, CAT, "judge"}
    assert "seven" in panel.asks("critique", ANN)[0].arguments["arguments"]
    assert state(simulation).proposals["you"].text == "seven"


def test_a_person_who_does_not_come_is_left_out_when_the_round_is_over() -> None:
    panel = Panel()
    simulation = settled(begun(seats=[AgentConfig("you", person=True)]), panel)
    assert simulation.active == ("Complete",)
    assert state(simulation).left_out == {"you": "it took longer than timeoutPerRound"}


def test_a_round_sets_one_timer_and_cancels_it_when_it_is_over() -> None:
    simulation = played(begun(timeoutPerRound=5_000))
    [timer] = [wanted.effect for wanted in simulation.effects if isinstance(wanted.effect, Send)]
    assert (timer.delay, timer.id) == (5, "round-1")
    assert simulation.due is None
