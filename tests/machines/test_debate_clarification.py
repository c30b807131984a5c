"""Questions before a debate: iterative, capped, never lost, never asked twice."""

from typing import Any

import pytest

from moothall.kernel.effects import AskPerson
from moothall.kernel.events import Answered
from moothall.kernel.simulate import Simulation
from moothall.machines.debate.state import Debate, Questions
from tests.machines.debates import ANN, BOB, CAT, Panel, begun, events, path, played, state

NAMES = (ANN, BOB, CAT)


def asking(*rounds: dict[str, tuple[str, ...]]) -> Panel:
    """A panel that asks this, iteration by iteration, and then nothing."""
    replies = {
        ("clarify", name): [*(Questions(asked.get(name, ())) for asked in rounds), Questions()] for name in NAMES
    }
    return Panel(replies)


def answer(simulation: Simulation, given: dict[str, str]) -> None:
    [question] = [wanted for wanted in simulation.open if isinstance(wanted.effect, AskPerson)]
    simulation.answer(question, Answered(given))


def clarified(data: Debate) -> list[tuple[str, str, str, str]]:
    return [(known.id, known.agent, known.text, known.answer) for known in data.clarifications]


def form(panel: Panel) -> Any:
    return panel.people[-1].schema


@pytest.mark.covers("D2", "D9")
def test_without_clarifications_all_is_clear_at_once_and_nobody_is_called() -> None:
    panel = asking({ANN: ("Why?",)})
    simulation = played(begun(), panel)
    assert panel.count("clarify") == 0
    assert path(simulation)[:3] == ["Initialization", "Clarification", "RoundManager"]


@pytest.mark.covers("D2", "D11")
def test_empty_lists_from_all_mean_that_all_is_clear() -> None:
    panel = Panel()
    simulation = played(begun(interactiveClarifications=True), panel)
    assert panel.count("clarify") == 3
    assert "QUESTIONS_PENDING" not in events(simulation)


@pytest.mark.covers("D7", "D11", "D13")
def test_after_answers_all_agents_are_asked_again_with_all_questions_and_answers() -> None:
    panel = asking({ANN: ("How many?",), BOB: ("By when?",)}, {CAT: ("Why seven?",)})
    simulation = played(begun(interactiveClarifications=True), panel)
    assert simulation.active == ("ClarificationInput",)
    assert state(simulation).clarificationIterations == 1
    answer(simulation, {"q1": "seven", "q2": "May"})
    assert simulation.active == ("ClarificationInput",)
    assert panel.count("clarify") == 6
    for name in NAMES:
        told = panel.asks("clarify", name)[1].arguments["clarifications"]
        assert "Q: How many?\nA: seven\nQ: By when?\nA: May" in told
    answer(simulation, {"q3": "NA"})
    assert clarified(state(simulation)) == [
        ("q1", ANN, "How many?", "seven"),
        ("q2", BOB, "By when?", "May"),
        ("q3", CAT, "Why seven?", "NA"),
    ]
    assert panel.count("clarify") == 9
    assert [name for name in path(simulation) if name.startswith("Clarification")] == [
        *("Clarification", "ClarificationInput") * 2,
        "Clarification",
    ]
    assert "A: NA" in panel.asks("propose")[0].arguments["clarifications"]


@pytest.mark.covers("D10")
@pytest.mark.parametrize("most", [0, 1, 2])
def test_at_the_end_of_the_iterations_nobody_is_asked(most: int) -> None:
    rounds: list[dict[str, tuple[str, ...]]] = [{ANN: (f"question {number}?",)} for number in range(9)]
    panel = asking(*rounds)
    simulation = played(begun(interactiveClarifications=True, clarificationsMaxIterations=most), panel)
    for number in range(most):
        answer(simulation, {f"q{number + 1}": "yes"})
    assert panel.count("clarify", ANN) == most
    assert simulation.active == ("Complete",)


def test_the_person_sees_new_questions_and_earlier_answers_and_may_change_these() -> None:
    panel = asking({ANN: ("How many?",)}, {BOB: ("By when?",)})
    simulation = played(begun(interactiveClarifications=True), panel)
    answer(simulation, {"q1": "seven"})
    assert set(form(panel)["properties"]) == {"q1", "q2"}
    assert form(panel)["required"] == ["q2"]
    assert form(panel)["properties"]["q1"]["earlier"] == "seven"
    answer(simulation, {"q1": "eight", "q2": "May"})
    assert [known.answer for known in state(simulation).clarifications] == ["eight", "May"]
    assert "A: eight" in panel.asks("clarify", ANN)[2].arguments["clarifications"]


def test_an_answer_that_is_not_given_again_is_not_dropped() -> None:
    panel = asking({ANN: ("How many?",)}, {BOB: ("By when?",)})
    simulation = played(begun(interactiveClarifications=True), panel)
    answer(simulation, {"q1": "seven"})
    answer(simulation, {"q1": "", "q2": "May"})
    assert [known.answer for known in state(simulation).clarifications] == ["seven", "May"]


def test_a_question_that_was_asked_before_is_not_asked_again() -> None:
    panel = asking({ANN: ("How many?", "How many?")}, {ANN: (" how many? ",), BOB: ("How many?",)})
    simulation = played(begun(interactiveClarifications=True), panel)
    answer(simulation, {"q1": "seven"})
    assert clarified(state(simulation)) == [("q1", ANN, "How many?", "seven"), ("q2", BOB, "How many?", "")]


@pytest.mark.parametrize("empty", ["", "   "])
def test_an_empty_answer_is_none_and_the_question_stays_open(empty: str) -> None:
    panel = asking({ANN: ("How many?",)})
    simulation = played(begun(interactiveClarifications=True), panel)
    answer(simulation, {"q1": empty})
    assert simulation.active == ("ClarificationInput",)
    assert clarified(state(simulation)) == [("q1", ANN, "How many?", "")]
    answer(simulation, {"q1": "NA"})
    assert simulation.active == ("Complete",)


@pytest.mark.covers("D8")
@pytest.mark.parametrize("most", [0, 1, 2])
def test_an_agent_asks_at_most_so_many_questions_each_time(most: int) -> None:
    panel = asking({ANN: ("1?", "2?", "3?")})
    simulation = played(begun(interactiveClarifications=True, clarificationsMaxPerAgent=most), panel)
    assert len(state(simulation).clarifications) == most


def test_every_question_has_its_id_its_agent_and_its_text_in_the_form() -> None:
    panel = asking({ANN: ("How many?",), CAT: ("By when?",)})
    played(begun(interactiveClarifications=True), panel)
    fields = form(panel)["properties"]
    assert {name: (known["description"], known["asked_by"]) for name, known in fields.items()} == {
        "q1": ("How many?", ANN),
        "q2": ("By when?", CAT),
    }


@pytest.mark.parametrize("given", [{"How many?": "seven"}, {"q1": "seven"}])
def test_answers_that_were_brought_along_are_not_asked_for(given: dict[str, str]) -> None:
    data = begun(interactiveClarifications=True)
    simulation = played(type(data)(**{**fields_of(data), "given_answers": given}), asking({ANN: ("How many?",)}))
    assert simulation.active == ("Complete",)
    assert [known.answer for known in state(simulation).clarifications] == ["seven"]


def fields_of(data: Debate) -> dict[str, Any]:
    return {name: getattr(data, name) for name in data.__dataclass_fields__}


def test_an_agent_that_fails_to_ask_is_asked_again_alone_and_then_done_without() -> None:
    panel = asking({BOB: ("By when?",)})
    panel.fails["clarify", ANN] = 2
    simulation = played(begun(interactiveClarifications=True), panel)
    assert simulation.active == ("Clarification",)
    simulation.advance(1)
    assert simulation.active == ("ClarificationInput",)
    assert [panel.count("clarify", name) for name in NAMES] == [2, 1, 1]
