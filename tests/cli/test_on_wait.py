"""`--on-wait`: whoever is named is told when a run waits, and the run is none the worse for it."""

import json
import time
from pathlib import Path

import pytest

from tests.app.listening import WRITES_DOWN, command, hanging, listening, refusing
from tests.cli.ran import Moot


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


def test_an_address_is_told_when_a_run_waits(moot: Moot) -> None:
    with listening() as server:
        ran = moot("run", "machines.py:SENT", "Ada", "--run-id", "mine", "--on-wait", server.url)
    assert (ran.code, ran.out) == (5, "")
    [told] = server.got
    assert (told["run"], told["machine"], told["status"], told["states"]) == ("mine", "sent", "waiting", ["approving"])
    assert [one["prompt"] for one in told["questions"]] == ["Send DEAR ADA?"]


def test_a_command_is_told_by_the_environment_and_says_nothing_itself(
    moot: Moot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOOTHALL_ON_WAIT", command(tmp_path, WRITES_DOWN, "told"))
    ran = moot("run", "machines.py:TOLD", "Ada", "--run-id", "mine", "--quiet", "--json")
    assert (ran.code, ran.json["status"]) == (5, "waiting")
    assert json.loads(Path("told").read_text())["questions"][0]["schema"] == {"type": "string"}
    assert "not shown" not in ran.err


def test_an_option_goes_before_the_environment_and_an_empty_one_tells_nobody(
    moot: Moot, monkeypatch: pytest.MonkeyPatch
) -> None:
    with listening() as server:
        monkeypatch.setenv("MOOTHALL_ON_WAIT", server.url)
        assert moot("run", "machines.py:SENT", "Ada", "--on-wait", "").code == 5
        assert moot("run", "machines.py:SENT", "Ada", "--on-wait", "true").code == 5
        assert server.got == []
        assert moot("run", "machines.py:SENT", "Ada").code == 5
    assert len(server.got) == 1


TWICE = """
from moothall import Answered, Final, Machine, On, State, question
TWICE = Machine("twice",
    states=[State("first", enter=question("One?")), State("second", enter=question("Two?")), Final("over")],
    moves=[On("first", Answered, to="second"), On("second", Answered, to="over")])
"""


def test_an_answer_that_leads_to_the_next_question_tells_it(moot: Moot) -> None:
    Path("twice.py").write_text(TWICE)
    with listening() as server:
        moot("run", "twice.py", "--run-id", "mine")
        assert moot("answer", "mine", "--yes", "--on-wait", server.url).code == 5
    assert [one["prompt"] for got in server.got for one in got["questions"]] == ["Two?"]


def test_resuming_a_run_that_only_waits_tells_nothing_new(moot: Moot) -> None:
    with listening() as server:
        moot("run", "machines.py:SENT", "Ada", "--run-id", "mine")
        assert moot("resume", "mine", "--on-wait", server.url).code == 5
    assert server.got == []


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("/no/such/pigeon", "pigeon was not told that a run waits: it cannot be started: No such file or directory"),
        ("false", "false was not told that a run waits: it exits with 1"),
        (
            "$HOME/pigeon",
            "pigeon was not told that a run waits: it cannot be started: No such file or directory; "
            "no shell reads it; let one:  sh -c 'COMMAND'",
        ),
    ],
)
def test_what_goes_wrong_is_one_line_and_no_traceback(moot: Moot, target: str, says: str) -> None:
    ran = moot("run", "machines.py:SENT", "Ada", "--quiet", "--on-wait", target)
    assert ran.code == 5
    assert ran.err.splitlines().count(says) == 1
    assert "Traceback" not in ran.err
    assert "question 1.0: Send DEAR ADA?" in ran.err


def test_an_address_where_nobody_listens_is_one_line(moot: Moot) -> None:
    ran = moot("run", "machines.py:SENT", "Ada", "--on-wait", refusing())
    assert ran.code == 5
    assert len([line for line in ran.err.splitlines() if "Connection refused, 3 attempts" in line]) == 1
    assert "secret" not in ran.err


@pytest.mark.slow
def test_a_server_that_never_answers_keeps_the_command_only_for_a_moment(moot: Moot) -> None:
    before = time.monotonic()
    with hanging() as url:
        ran = moot("run", "machines.py:SENT", "Ada", "--on-wait", url)
    assert ran.code == 5
    assert "it takes too long, and the command ends" in ran.err
    assert time.monotonic() - before < 9


@pytest.mark.parametrize("target", ["http://", "say 'x", "tee told.json | cat"])
def test_what_cannot_be_told_is_refused_before_the_run_begins(moot: Moot, target: str) -> None:
    ran = moot("run", "machines.py:SENT", "Ada", "--run-id", "mine", "--on-wait", target)
    assert (ran.code, ran.out) == (4, "")
    assert "to call when a run waits" in ran.err
    assert moot("show", "mine").code == 1


def test_a_run_that_waits_for_nobody_tells_nobody(moot: Moot) -> None:
    with listening() as server:
        assert moot("run", "machines.py:LETTER", "Ada", "--on-wait", server.url).code == 0
    assert server.got == []


FAMILY = """
from moothall import Answered, ChildDone, Final, Machine, On, State, child, question
ASKING = Machine("asking", data=None,
    states=[State("wondering", enter=question("May I?")), Final("settled")],
    moves=[On("wondering", Answered, to="settled")])
PARENT = Machine("parent", data=None,
    states=[State("minding", enter=child("asking")), Final("rested")],
    moves=[On("minding", ChildDone, to="rested")])
"""


def test_a_question_of_a_child_is_told_with_the_child_s_id_and_can_be_answered_by_it(moot: Moot) -> None:
    Path("family.py").write_text(FAMILY)
    with listening() as server:
        ran = moot("run", "family.py:PARENT", "--run-id", "mine", "--on-wait", server.url)
    [told] = server.got
    assert (told["machine"], [one["prompt"] for one in told["questions"]]) == ("asking", ["May I?"])
    assert f"answer with:  moot answer {told['run']} --yes | --no" in ran.err
    again = moot("answer", told["run"], told["questions"][0]["id"], "--yes")
    assert again.code == 0
    assert "mine is done (in rested, " in again.err
