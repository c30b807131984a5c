"""Machines that start each other, as users write them: in a file, as objects, and with people to ask."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from moothall import (
    Answered,
    Budget,
    ChildDone,
    DefinitionError,
    Final,
    GaveUp,
    Machine,
    On,
    Outcome,
    Refused,
    Replied,
    State,
    answer,
    ask,
    child,
    question,
    resume,
    run,
)
from moothall.analysis.certify import Certificate, Unbounded
from moothall.app.config.access import opened
from moothall.app.kinds.bindings import missing_agents, names_asked
from moothall.app.kinds.check import certificate
from moothall.app.kinds.source import find
from moothall.app.runs import view as looking
from moothall.app.runs.resume import cancel
from tests.app.around import context_over
from tests.app.families import FAMILY
from tests.app.files import written


@dataclass(frozen=True)
class Letter:
    to: str
    text: str = ""


async def shout(prompt: str) -> str:
    return prompt.upper()


def keep(letter: Letter, reply: Replied) -> Letter:
    return replace(letter, text=reply.text)


def keep_child(letter: Letter, done: ChildDone) -> Letter:
    return replace(letter, text=done.data)


def keep_reason(letter: Letter, gave_up: GaveUp) -> Letter:
    return replace(letter, text=gave_up.reason)


def written_by(agent: Any, name: str = "writing") -> Machine:
    """A child that asks one agent."""
    return Machine(
        name,
        data=Letter,
        result=lambda letter: letter.text,
        states=[State("writing", enter=ask(agent, "Dear {to}")), Final("written")],
        moves=[On("writing", Replied, to="written", do=keep)],
    )


def delegating(*enter: Any, name: str = "office", **more: Any) -> Machine:
    """A parent that waits for its children."""
    return Machine(
        name,
        data=Letter,
        result=lambda letter: letter.text,
        states=[State("delegating", enter=enter), Final("posted"), Final("lost")],
        moves=[
            On("delegating", ChildDone, to="posted", do=keep_child),
            On("delegating", GaveUp, to="lost", do=keep_reason),
        ],
        **more,
    )


SIGNING = Machine(
    "signing",
    data=Letter,
    result=lambda letter: letter.text,
    states=[State("asking", enter=question("Who signs for {to}?", str)), Final("signed")],
    moves=[On("asking", Answered, to="signed", do=lambda letter, event: replace(letter, text=f"signed {event.value}"))],
)
DESK = delegating(child(SIGNING, "to"), name="desk")
HOUSE = delegating(child(DESK, "to"), name="house")


@pytest.fixture
def family(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file with a family of machines, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return str(written(tmp_path, FAMILY, "family.py"))


# who is started


def test_a_child_may_be_given_as_a_machine() -> None:
    outcome = run(delegating(child(written_by(shout), "to")), "Ada", run_id="office")
    assert (outcome.status, outcome.result, outcome.spent) == ("done", "DEAR ADA", {"calls": 1})


def test_a_child_gets_the_functions_that_its_parent_was_given() -> None:
    machine = delegating(child(written_by("clerk"), "to"))
    assert run(machine, "Ada", agents={"clerk": shout}).result == "DEAR ADA"


def test_an_agent_of_a_child_that_nobody_plays_is_announced_like_one_of_its_parent(
    capsys: pytest.CaptureFixture[str],
) -> None:
    outcome = run(delegating(child(written_by("clerk"), "to")), "Ada")
    assert outcome.status == "done"
    assert "rehearsal stands in for clerk" in capsys.readouterr().err


def test_a_child_that_nobody_knows_is_the_author_s_mistake_and_no_run_begins() -> None:
    with pytest.raises(DefinitionError, match="no machine is called 'nobody'; put it into the same file as 'office'"):
        run(delegating(child("nobody", "to")), "Ada", run_id="office")
    with pytest.raises(Refused, match="there is no run 'office'"):
        resume("office")


def test_a_field_that_the_child_does_not_take_is_given_up_with_the_field_s_name() -> None:
    outcome = run(delegating(child(written_by(shout), "to", "text", "to")), "Ada")
    assert outcome.status == "done", "the child has both fields"

    @dataclass(frozen=True)
    class Stamp:
        cents: int = 0

    stamped = Machine("stamped", data=Stamp, states=[Final("over")], moves=[])
    outcome = run(delegating(child(stamped, "to")), "Ada")
    assert outcome.result == "child stamped: input: unknown field 'to'; known are cents"


def test_a_dotted_field_is_given_by_its_last_name() -> None:
    @dataclass(frozen=True)
    class Envelope:
        letter: Letter
        text: str = ""

    machine = Machine(
        "office",
        data=Envelope,
        result=lambda envelope: envelope.text,
        states=[State("delegating", enter=child(written_by(shout), "letter.to")), Final("posted")],
        moves=[On("delegating", ChildDone, to="posted", do=lambda envelope, done: replace(envelope, text=done.data))],
    )
    assert run(machine, {"letter": {"to": "Ada"}}).result == "DEAR ADA"


def test_a_machine_that_starts_itself_runs_into_the_depth_limit_and_says_so(family: str, tmp_path: Path) -> None:
    text = FAMILY.replace('child("writing", "to")', 'child("office", "to")')
    source = written(tmp_path, text, "self.py")
    outcome = run(find(f"{source}:OFFICE"), "Ada")
    assert outcome.status == "failed"
    assert outcome.reason.endswith("children are nested more than 16 deep")


def test_machines_that_start_each_other_run_into_the_depth_limit_too(tmp_path: Path) -> None:
    text = FAMILY.replace('child("writing", "to")', 'child("desk", "to")').replace(
        'child("signing", "to")), Final', 'child("office", "to")), Final'
    )
    machine = find(f"{written(tmp_path, text, 'circle.py')}:OFFICE")
    assert (names_asked(machine), missing_agents(machine, {})) == (set(), [])
    outcome = run(machine, "Ada")
    assert outcome.status == "failed"
    assert outcome.reason.endswith("children are nested more than 16 deep")
    assert isinstance(certificate(machine), Unbounded)


def test_the_certificate_of_a_family_is_the_sum_of_its_members() -> None:
    bound = certificate(delegating(child(written_by(shout), "to"), child(written_by(shout, "typing"), "to")))
    assert isinstance(bound, Certificate)
    assert bound.resources == {"ask.agent": 2, "calls": 6, "start.child": 2}
    assert bound.transitions == 3


def test_a_budget_in_the_table_is_what_a_child_may_spend() -> None:
    outcome = run(delegating(child(written_by(shout), "to", budget=Budget(calls=0))), "Ada", budget=Budget(calls=9))
    assert outcome.result == "child writing: limited: limit of 0 calls reached in writing"


def test_a_child_that_may_never_end_needs_a_budget_as_its_parent_would() -> None:
    endless = Machine(
        "endless",
        data=Letter,
        states=[State("writing", enter=ask(shout, "Dear {to}"))],
        moves=[On("writing", Replied, to="writing")],
    )
    with pytest.raises(DefinitionError, match="may never end"):
        run(delegating(child(endless, "to")), "Ada")


# asking people


def test_a_parent_waits_while_its_child_asks_and_shows_the_question() -> None:
    outcome = run(DESK, "Ada", run_id="desk")
    assert (outcome.status, outcome.states) == ("waiting", ("delegating",))
    (asked,) = outcome.questions
    assert (asked.run, asked.id, asked.prompt) == ("desk-0-0", "0.0", "Who signs for Ada?")


@pytest.mark.parametrize("whom", ["desk", "desk-0-0"], ids=["the parent", "the child"])
def test_who_answers_the_parent_or_the_child_takes_both_on(whom: str) -> None:
    run(DESK, "Ada", run_id="desk")
    outcome = answer(whom, "Eve")
    assert (outcome.run, outcome.status, outcome.result) == ("desk", "done", "signed Eve")


@pytest.mark.parametrize("whom", ["house", "house-0-0", "house-0-0-0-0"])
def test_an_answer_finds_its_way_through_three_generations(whom: str) -> None:
    waiting = run(HOUSE, "Ada", run_id="house")
    assert [one.run for one in waiting.questions] == ["house-0-0-0-0"]
    outcome = answer(whom, "Eve")
    assert (outcome.run, outcome.status, outcome.result) == ("house", "done", "signed Eve")


def test_a_wrong_answer_through_the_parent_is_refused_and_both_go_on_waiting() -> None:
    run(DESK, "Ada", run_id="desk")
    with pytest.raises(Refused, match="the answer: expected a text, got 3"):
        answer("desk", 3)
    assert resume("desk").status == "waiting"


def test_answering_twice_through_the_parent_is_refused_and_changes_nothing() -> None:
    run(DESK, "Ada", run_id="desk")
    answer("desk", "Eve")
    with pytest.raises(Refused, match="run desk is done; it accepts no answer"):
        answer("desk", "Bob")
    assert resume("desk").result == "signed Eve"


@pytest.mark.parametrize("whom", ["desk", "desk-0-0"], ids=["the parent", "the child"])
def test_resuming_either_of_them_while_nobody_has_answered_changes_nothing(whom: str) -> None:
    run(DESK, "Ada", run_id="desk")
    outcome = resume(whom)
    assert (outcome.run, outcome.status) == (whom, "waiting")
    assert [one.run for one in outcome.questions] == ["desk-0-0"]


def test_a_family_that_was_made_on_the_fly_is_answered_with_its_machine() -> None:
    machine = delegating(child(SIGNING, "to"), name="fly")
    run(machine, "Ada", run_id="fly")
    assert answer("fly", "Eve", machine).result == "signed Eve"


@pytest.mark.anyio
async def test_who_cancels_a_parent_cancels_its_children() -> None:
    outcome = run(DESK, "Ada", run_id="desk")
    assert outcome.status == "waiting"
    with opened(None) as store:
        await cancel(context_over(store), "desk", "enough")
        summaries = {one.run: one.status for one in await looking.summaries(store)}
    assert summaries == {"desk": "cancelled", "desk-0-0": "cancelled"}


@pytest.mark.anyio
async def test_a_list_of_runs_shows_that_a_parent_waits_for_a_person() -> None:
    run(DESK, "Ada", run_id="desk")
    with opened(None) as store:
        summaries = {one.run: one.status for one in await looking.summaries(store)}
    assert summaries == {"desk": "waiting", "desk-0-0": "waiting"}


# orphans


@pytest.mark.anyio
async def test_a_child_whose_parent_was_deleted_can_still_be_answered(family: str) -> None:
    run(find(f"{family}:DESK"), "Ada", run_id="desk")
    with opened(None) as store:
        await store.forget("desk")
    outcome: Outcome = answer("desk-0-0", "Eve")
    assert (outcome.status, outcome.result) == ("done", "signed Eve")


def test_the_outcome_of_a_family_can_be_shown_as_json(family: str) -> None:
    outcome = run(find(f"{family}:OFFICE"), "Ada", run_id="office")
    assert json.loads(json.dumps(outcome.result)) == "DEAR ADA"
    assert resume("office").result == "DEAR ADA"
    assert resume("office-0-0").result == "DEAR ADA"
