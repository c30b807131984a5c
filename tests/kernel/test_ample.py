"""Bounds that cannot be spent are no warnings, and events that only the machine raises are refused at doors."""

import pytest

from moothall.agents.ask import AskAgent, Replied
from moothall.analysis.verify import verify
from moothall.kernel.events import GaveUp, Named
from moothall.kernel.interpreter import accepts, possible, start
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State, emitting
from moothall.kernel.step import Move, Step


@emitting(AskAgent, most=3)
def ask_three(data: object, event: object) -> Move[object]:
    return Move(data, tuple(AskAgent(f"agent{number}", "What?", id=f"{number}") for number in range(3)))


def close(data: object, event: object) -> Move[object]:
    return Move(data, raises=(Named("ALL_IN"),))


def machine(replies: int, failures: int, visits: int | None = 2, inner: tuple[str, ...] = ("ALL_IN",)) -> Machine:
    return Machine(
        "panel",
        states=[State("asking", enter=ask_three, max_visits=visits), Final("over")],
        moves=[
            On("asking", Replied, do=close, at_most=replies),
            On("asking", GaveUp, do=close, at_most=failures),
            On("asking", "ALL_IN", to="over"),
            On("asking", "AGAIN", to="asking"),
        ],
        inner=inner,
    )


@pytest.mark.parametrize(
    ("replies", "failures", "visits", "codes"),
    [
        (6, 6, 2, set()),
        (5, 6, 2, {"no-otherwise"}),
        (6, 5, 2, {"unhandled-failure"}),
        (6, 6, None, {"no-otherwise", "unhandled-failure", "paced-cycle"}),
    ],
)
def test_a_bound_that_cannot_be_spent_is_no_warning(
    replies: int, failures: int, visits: int | None, codes: set[str]
) -> None:
    assert {finding.code for finding in verify(machine(replies, failures, visits))} == codes


def test_an_inner_event_is_refused_at_doors_and_is_not_offered_there() -> None:
    step = start(known := machine(6, 6), None)
    assert isinstance(step, Step)
    assert not accepts(known, step.snapshot, "ALL_IN")
    assert "ALL_IN" not in possible(known, step.snapshot)
    assert accepts(known, step.snapshot, "AGAIN")


def test_an_event_that_is_not_inner_is_heard_from_outside() -> None:
    step = start(known := machine(6, 6, inner=()), None)
    assert isinstance(step, Step)
    assert accepts(known, step.snapshot, "ALL_IN")


def test_what_is_inner_is_no_part_of_the_digest() -> None:
    assert machine(6, 6).digest == machine(6, 6, inner=()).digest
