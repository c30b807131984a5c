"""The tests of triage.py, as its author would write them: `pytest examples/test_triage.py`."""

import sys
from decimal import Decimal
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from moothall import hours
from moothall.testing import Trial, Walk, check, crash_everywhere
from triage import TRIAGE, Sorted, Subject, Ticket

REFUND = Sorted(Subject.REFUND, Decimal("12.50"))
RECEIPT = {"amount": "12.50", "at": "2026-01-31T12:00:00+00:00"}


def test_the_machine_is_sound() -> None:
    check(TRIAGE)


def test_a_question_is_answered_at_once() -> None:
    trial = Trial(TRIAGE, agents={"sorter": Sorted(Subject.QUESTION), "clerk": "At noon."})
    assert trial.run("When is high tide?").unwrap() == "At noon."
    trial.assert_path("sorting", "answering", "closed")


def test_a_refund_is_paid_once_it_is_approved() -> None:
    trial = Trial(TRIAGE, agents={"sorter": REFUND, "refund": RECEIPT})
    waiting = trial.run(Ticket("I want my money back", "Ada"))
    assert waiting.questions[0].prompt == "Refund 12.50 euros to Ada? I want my money back"
    assert trial.answer(True).unwrap() == "We have sent you 12.50 euros."
    assert [call["amount"] for call in trial.fake("refund").calls] == ["12.50"]


def test_a_refund_that_nobody_approves_in_a_day_is_refused() -> None:
    trial = Trial(TRIAGE, agents={"sorter": REFUND, "refund": RECEIPT})
    trial.run("I want my money back")
    trial.advance(hours(24))
    trial.assert_path("sorting", "approving", "closed")
    assert not trial.fake("refund").calls


@pytest.mark.parametrize("failing", ["sorter", "clerk"])
def test_what_fails_is_decided_by_a_person(failing: str) -> None:
    agents = {"sorter": Sorted(Subject.QUESTION), "clerk": "At noon.", failing: OSError("no line")}
    trial = Trial(TRIAGE, agents=agents)
    trial.run("When is high tide?")
    assert trial.answer("We will call you.").unwrap() == "We will call you."
    trial.assert_path("sorting", ..., "deciding", "closed")


def test_a_ticket_that_is_unclear_is_decided_by_a_person_step_by_step() -> None:
    walk = Walk(TRIAGE, Ticket("Hm"))
    walk.reply(value=Sorted(Subject.UNCLEAR))
    walk.answer("What do you mean?")
    assert walk.data.reply == "What do you mean?"
    walk.assert_path("sorting", "deciding", "closed")


def test_no_crash_changes_what_becomes_of_a_refund() -> None:
    survived = crash_everywhere(TRIAGE, Ticket("money"), agents={"sorter": REFUND, "refund": RECEIPT}, answers=[True])
    assert survived > 0
