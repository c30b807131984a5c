"""`moot replay` decides a journal again: the same where nothing changed, the first difference where something did."""

from pathlib import Path

import pytest

from tests.cli.ran import Moot

RETRYING = """
from dataclasses import dataclass, replace
from moothall import Answered, Budget, ChildDone, EffectFailed, Final, Machine, On, Replied, Returned, State
from moothall import ask, call, child, question, tool

tries = []

@dataclass(frozen=True)
class Note:
    to: str
    text: str = ""

async def shout(prompt: str) -> str:
    return prompt.upper()

async def post(text: str, key: str) -> str:
    tries.append(key)
    if len(tries) == 1:
        raise EffectFailed("the box is full")
    return f"posted {text}"

WRITING = Machine(
    "writing", data=Note,
    states=[State("writing", enter=ask(shout, "dear {to}")), State("asking", enter=question("Send?")), Final("sent")],
    moves=[On("writing", Replied, to="asking", do=lambda note, reply: replace(note, text=reply.text)),
           On("asking", Answered, to="sent")],
)
OFFICE = Machine(
    "office", data=Note, budget=Budget(calls=9),
    states=[State("delegating", enter=child("writing", "to")),
            State("posting", enter=call(tool(post, repeats="at-most-once"), "text")),
            State("again", enter=call(post, "text")), Final("over")],
    moves=[On("delegating", ChildDone, to="posting", do=lambda note, done: replace(note, text=done.data["text"])),
           On("posting", Returned, to="over"), On("posting", "error.effect", to="again"),
           On("again", Returned, to="over", do=lambda note, back: replace(note, text=back.value))],
)
"""


@pytest.fixture
def ran(moot: Moot) -> Moot:
    Path("office.py").write_text(RETRYING)
    assert moot("run", "office.py:OFFICE", "Ada", "--run-id", "mine").code == 5
    assert moot("answer", "mine", "--yes").code == 0
    return moot


FIELDLESS = """
from moothall import Final, Machine, On, Replied, State, ask

MENDING = Machine("mending", states=[State("mending", enter=ask("smith", "Mend {issue}")), Final("whole")],
    moves=[On("mending", Replied, to="whole")])
"""


def test_a_run_that_wants_a_field_of_a_text_says_who_wants_it_and_replays(moot: Moot) -> None:
    Path("mending.py").write_text(FIELDLESS)
    ran = moot("run", "mending.py", "the gate", "--run-id", "mine", "--model", "rehearsal")
    assert ran.code == 1
    told = "mending, enter: AttributeError: 'str' object has no attribute 'issue'"
    assert f"{told}; 'ask smith: Mend {{issue}}' wants the field 'issue', and the data is a text: give" in ran.err
    assert moot("replay", "mine").out == "mine: the same again, 1 entry\n"


@pytest.mark.parametrize("run", ["mine", "mine-0-0"], ids=["the parent", "the child"])
def test_a_journal_with_children_marks_and_answers_replays_as_it_was(ran: Moot, run: str) -> None:
    replayed = ran("replay", run)
    assert (replayed.code, replayed.out.startswith(f"{run}: the same again, ")) == (0, True)


def test_a_definition_that_decides_otherwise_is_shown_with_the_first_entry_that_differs(ran: Moot) -> None:
    Path("changed.py").write_text(
        RETRYING.replace('On("posting", "error.effect", to="again")', 'On("posting", "error.effect", to="over")')
    )
    replayed = ran("replay", "mine", "--machine", "changed.py:OFFICE")
    assert replayed.code == 1
    assert "machine office is not defined as it was when the run began" in replayed.err
    assert replayed.out == 'mine: entry 4 differs in \'to\': it says ["again"], now it would be ["over"]\n'
    assert ran("replay", "mine", "--machine", "changed.py:OFFICE", "--json").json["difference"]["seq"] == 4


def test_a_change_that_decides_the_same_is_told_and_passes(ran: Moot) -> None:
    Path("changed.py").write_text(RETRYING.replace("budget=Budget(calls=9)", "budget=Budget(calls=8)"))
    replayed = ran("replay", "mine", "--machine", "changed.py:OFFICE")
    assert (replayed.code, "not defined as it was" in replayed.err) == (0, True)


def test_a_run_that_is_not_there_is_refused(moot: Moot) -> None:
    replayed = moot("replay", "nobody")
    assert (replayed.code, "there is no run 'nobody'" in replayed.err) == (1, True)
