"""A reply that no row takes is found before the run that would drop it."""

import pytest

from moothall.agents.ask import Replied, ask, call, question
from moothall.analysis.verify import verify
from moothall.kernel.events import Answered, GaveUp
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Action, Final, Node, On, State, anywhere, otherwise


def asking(enter: Action, *moves: On) -> Machine:
    states: list[Node] = [State("outer", [State("asking", enter=enter)]), Final("end")]
    return Machine("asking", states=states, moves=[*moves, On(anywhere, GaveUp, to="end"), On("outer", "go", to="end")])


@pytest.mark.parametrize(
    ("enter", "event"),
    [(ask("writer", "Write."), "Replied"), (call("send"), "Returned"), (question("Well?"), "Answered")],
)
def test_an_effect_whose_end_no_row_takes_is_named(enter: Action, event: str) -> None:
    [finding] = verify(asking(enter))
    assert (finding.level, finding.code, finding.place) == ("warning", "unheard", "asking")
    assert event in finding.why


@pytest.mark.parametrize(
    "row",
    [
        On("asking", Replied, to="end"),
        On("outer", Replied, to="end"),
        On("asking", otherwise, to="end"),
        On("asking", "*", to="end"),
        On(anywhere, Replied, to="end"),
    ],
    ids=["its own", "of the state around it", "otherwise", "any event", "anywhere"],
)
def test_a_row_in_the_state_or_around_it_hears_the_end(row: On) -> None:
    assert "unheard" not in {finding.code for finding in verify(asking(ask("writer", "Write."), row))}


def test_a_name_in_the_wrong_case_hears_nothing() -> None:
    found = verify(asking(question("Well?"), On("asking", Answered.__name__, to="end")))
    assert "unheard" in {finding.code for finding in found}
