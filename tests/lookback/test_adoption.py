"""A waiting run goes on under a changed definition that would have taken the same steps, and under no other."""

import asyncio
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from moothall.app.kinds import python as finding
from moothall.app.runs.context import RunContext
from moothall.app.runs.fork import Fork, go_own_way, performed_since
from moothall.app.runs.resume import resume as go_on
from moothall.stores.sqlite import SqliteStore
from tests.app.around import context_over
from tests.cli.process import started
from tests.cli.ran import Moot

pytestmark = pytest.mark.slow

WORKS = Path(__file__).with_name("works.py").read_text()
ROWS = '        On("planning", Replied, to="wondering", do=noted),\n'
TWO_ROWS = ROWS + '        On("planning", Replied, to="paying"),\n'
HARMLESS = {
    "a new state and a way to it": (
        '        Final("made"),\n    ],\n    moves=[\n' + ROWS,
        '        State("mending", enter=call(measure, "what")),\n        Final("made"),\n    ],\n    moves=[\n'
        '        On("ordering", "error.effect", to="mending"),\n        On("mending", Returned, to="made"),\n' + ROWS,
    ),
    "a row at the end": (
        '        On("sailing", Replied, to="made"),\n',
        '        On("sailing", Replied, to="made"),\n        On("sailing", "error.effect", to="paying"),\n',
    ),
    "a larger budget": ("Budget(calls=50, seconds=36_000)", "Budget(calls=60, seconds=36_000)"),
    "another effect of a state to come": (
        'State("ordering", enter=call(',
        'State("ordering", enter=call(measure, "what"), exit=call(',
    ),
}
WORDINGS = {
    "a prompt that was read": ('"plan {what}"', '"design {what}"'),
    "a prompt that was read, with another field": ('"plan {what}"', '"plan {what} after {done}"'),
    "a prompt that nobody has read": ('"Sail {what}"', '"Sail {what} home"'),
    "a question that is open": ('question("For whom?", str)', 'question("For which?", str)'),
}
HARMFUL = {
    "the target of a row that was taken": (ROWS, ROWS.replace("wondering", "paying"), 1, "to"),
    "a row before the one that was taken": (ROWS, '        On("planning", Replied, to="paying"),\n' + ROWS, 1, "to"),
    "who may answer": ('question("For whom?", str)', 'question("For whom?", str, who="Ada")', 1, "effects"),
    "the shape of an answer": ('question("For whom?", str)', 'question("For whom?", bool)', 1, "effects"),
    "a type that the data do not have": ("    what: str\n", "    what: int\n", 0, "event"),
    "a new field without a default": ("    what: str\n", "    what: str\n    by: str\n", 0, "event"),
    "the start": ('    "yard",\n    data=Order,\n', '    "yard",\n    data=Order,\n    start="ordering",\n', 0, "to"),
}


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files change within a second here, which a cache of compiled code would not notice."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


def rewrite(old: str = "", new: str = "", text: str = WORKS) -> None:
    """Change the file of machines, as an author would between two commands."""
    assert old in text
    Path("works.py").write_text(text.replace(old, new) if old else text)
    for name in [name for name in sys.modules if name.startswith("moothall_file_")]:
        del sys.modules[name]
    finding._loaded.clear()


def waiting(moot: Moot, run: str = "mine") -> None:
    assert moot("run", "works.py:YARD", "lamp", "--run-id", run, "--quiet").code == 5


def exported(moot: Moot, run: str = "mine") -> Any:
    told = moot("export", run).json
    return {name: part for name, part in told.items() if name != "parcel"}  # it has the token of the last holder


def events(moot: Moot, run: str = "mine") -> list[str]:
    return [one["event"]["name"] for one in exported(moot, run)["entries"]]


def finish(moot: Moot, run: str = "mine") -> None:
    moot("answer", run, "--text", "Ada", "--quiet")
    assert moot("answer", run, "--yes", "--quiet").code == 0
    assert moot("replay", run).code == 0
    assert moot("audit").code == 0


@pytest.mark.parametrize("change", HARMLESS)
def test_a_harmless_change_adopts_a_waiting_run(moot: Moot, change: str) -> None:
    waiting(moot)
    rewrite(*HARMLESS[change])
    assert moot("resume", "mine", "--quiet").code == 5
    assert events(moot) == ["run.started", "replied", "run.adopted"]
    assert moot("resume", "mine", "--quiet").code == 5
    assert events(moot).count("run.adopted") == 1
    finish(moot)


@pytest.mark.parametrize("change", WORDINGS)
def test_another_wording_adopts_a_waiting_run_with_a_note(moot: Moot, change: str) -> None:
    waiting(moot)
    before = exported(moot)
    rewrite(*WORDINGS[change])
    assert moot("resume", "mine", "--quiet").code == 5
    after = exported(moot)
    assert after["entries"][:-1] == before["entries"]
    assert (events(moot)[-1], after["entries"][-1]["event"]["reason"]) == ("run.adopted", "another wording")
    assert after["head"]["pending"] == before["head"]["pending"]
    assert moot("resume", "mine", "--quiet").code == 5
    assert events(moot).count("run.adopted") == 1
    finish(moot)


@pytest.mark.parametrize("change", WORDINGS)
def test_a_damaged_head_is_made_anew_with_the_words_that_were_said(moot: Moot, change: str) -> None:
    waiting(moot)
    rewrite(*WORDINGS[change])
    assert moot("resume", "mine", "--quiet").code == 5
    before = exported(moot)
    damage()
    assert moot("resume", "mine", "--quiet").code == 5
    assert exported(moot) == before
    finish(moot)


@pytest.mark.parametrize("change", WORDINGS)
def test_another_wording_and_another_row_are_adopted_together(moot: Moot, change: str) -> None:
    waiting(moot)
    before = exported(moot)
    rewrite(*WORDINGS[change])
    rewrite(*HARMLESS["a row at the end"], text=Path("works.py").read_text())
    assert moot("resume", "mine", "--quiet").code == 5
    after = exported(moot)
    assert (events(moot)[-1], after["entries"][-1]["event"]["reason"]) == ("run.adopted", "")
    assert after["head"]["pending"] == before["head"]["pending"]
    finish(moot)


def test_a_run_that_is_driven_in_other_words_is_not_held_up(moot: Moot) -> None:
    Path("hold").touch()
    with started("run", "works.py:LOOP", "rope", "--run-id", "mine", home=Path.cwd()) as process:
        while not Path("received.log").exists() or '"pay"' not in Path("received.log").read_text():
            assert process.poll() is None
        rewrite('"write {what}: {done}"', '"write {what}; {done}"')
        looked = moot("resume", "mine", "--quiet")
        Path("hold").unlink()
        _, err = process.communicate()
    assert "another definition" not in looked.err
    assert process.returncode == 0, err
    assert "run.adopted" not in events(moot)


def test_a_child_goes_on_in_other_words(moot: Moot) -> None:
    waiting(moot)
    moot("answer", "mine", "--text", "Ada", "--quiet")
    rewrite('"draft {what}"', '"sketch {what}"')
    assert moot("answer", "mine-2-0", "--yes", "--quiet").code == 0
    assert "run.adopted" in events(moot, "mine-2-0")
    for run in ("mine", "mine-2-0"):
        assert moot("replay", run).code == 0


def test_an_answer_adopts_a_run_as_well(moot: Moot) -> None:
    waiting(moot)
    rewrite(*HARMLESS["a row at the end"])
    assert moot("answer", "mine", "--text", "Ada", "--quiet").code == 5
    assert events(moot)[:4] == ["run.started", "replied", "run.adopted", "answered"]


def test_a_new_field_with_a_default_is_read_from_then_on(moot: Moot) -> None:
    waiting(moot)
    rewrite("    done: tuple[str, ...] = ()\n", "    done: tuple[str, ...] = ()\n    by: str = 'nobody'\n")
    assert moot("resume", "mine", "--quiet").code == 5
    finish(moot)
    assert exported(moot)["head"]["snapshot"]["data"]["by"] == "nobody"


def test_what_a_move_does_is_not_in_the_hash_but_a_replay_shows_it(moot: Moot) -> None:
    waiting(moot)
    rewrite('Append("talk",', 'Append("chat",')
    assert moot("resume", "mine", "--quiet").code == 5
    replayed = moot("replay", "mine")
    assert (replayed.code, "entry 1 differs in 'appends'" in replayed.out) == (1, True)


def test_a_comment_or_a_docstring_is_no_change(moot: Moot) -> None:
    waiting(moot)
    rewrite('"""What is made, and what has been done for it."""', '"""Whatever."""  # or not')
    assert moot("resume", "mine", "--quiet").code == 5
    assert events(moot) == ["run.started", "replied"]


@pytest.mark.parametrize("change", HARMFUL)
def test_a_harmful_change_is_refused_with_the_first_difference(moot: Moot, change: str) -> None:
    old, new, seq, part = HARMFUL[change]
    waiting(moot)
    before = exported(moot)
    rewrite(old, new)
    for command in (("resume", "mine"), ("answer", "mine", "--text", "Ada")):
        refused = moot(*command, "--quiet")
        assert (refused.code, f"entry {seq} differs in '{part}'" in refused.err) == (4, True), refused.err
        assert ("--at -1" in refused.err, "bring the old one back" in refused.err) == (False, True)
    assert exported(moot) == before
    rewrite()
    assert moot("resume", "mine", "--quiet").code == 5
    finish(moot)


def test_rows_in_another_order_are_refused_where_that_matters(moot: Moot) -> None:
    rewrite(ROWS, TWO_ROWS)
    waiting(moot)
    rewrite(ROWS, "".join(reversed(TWO_ROWS.splitlines(keepends=True))))
    refused = moot("resume", "mine", "--quiet")
    assert (refused.code, "entry 1 differs in 'to'" in refused.err) == (4, True), refused.err


def test_an_event_class_that_is_gone_is_a_difference(moot: Moot) -> None:
    moot("run", "works.py:WATCH", "sail", "--run-id", "mine", "--quiet")
    moot("answer", "mine", "--yes", "--quiet")
    assert "rang" in events(moot)
    rewrite("Rang", "Tolled")
    refused = moot("resume", "mine", "--quiet")
    assert (refused.code, "differs in 'effects'" in refused.err) == (4, True), refused.err
    rewrite()
    assert moot("answer", "mine", "--no", "--quiet").code == 0


def test_children_are_adopted_with_their_parent(moot: Moot) -> None:
    waiting(moot)
    moot("answer", "mine", "--text", "Ada", "--quiet")
    rewrite(
        '        On("asking", Answered, to="charging"),\n',
        '        On("asking", Answered, to="charging", do=lambda made, said: made),\n',
    )
    assert moot("answer", "mine", "--yes", "--quiet").code == 0
    assert "run.adopted" in events(moot, "mine-2-0")
    for run in ("mine", "mine-2-0"):
        assert moot("replay", run).code == 0
    assert moot("audit").code == 0


def test_a_child_that_cannot_be_adopted_leaves_its_parent_as_it_was(moot: Moot) -> None:
    waiting(moot)
    moot("answer", "mine", "--text", "Ada", "--quiet")
    before = exported(moot), exported(moot, "mine-2-0")
    rewrite('        On("drafting", Replied, to="asking"', '        On("drafting", Replied, to="charging"')
    refused = moot("answer", "mine-2-0", "--yes", "--quiet")
    assert (refused.code, "run mine-2-0 cannot go on" in refused.err) == (4, True), refused.err
    assert (exported(moot), exported(moot, "mine-2-0")) == before
    rewrite()
    assert moot("answer", "mine", "--yes", "--quiet").code == 0


def test_a_run_is_adopted_again_and_again(moot: Moot) -> None:
    waiting(moot)
    for change in ("a row at the end", "a larger budget"):
        rewrite(*HARMLESS[change])
        assert moot("resume", "mine", "--quiet").code == 5
    rewrite()
    assert moot("resume", "mine", "--quiet").code == 5
    assert events(moot).count("run.adopted") == 3
    digests = [one["event"] for one in exported(moot)["entries"] if one["event"]["name"] == "run.adopted"]
    assert [one["digest"] for one in digests[:-1]] == [one["was"] for one in digests[1:]]
    finish(moot)


def test_a_run_that_is_driven_elsewhere_is_not_adopted(moot: Moot) -> None:
    Path("hold").touch()
    with started("run", "works.py:LOOP", "rope", "--run-id", "mine", home=Path.cwd()) as process:
        while not Path("received.log").exists() or '"pay"' not in Path("received.log").read_text():
            assert process.poll() is None
        rewrite("budget=Budget(calls=6)", "budget=Budget(calls=7)")
        refused = moot("resume", "mine", "--quiet")
        Path("hold").unlink()
        _, err = process.communicate()
    assert (refused.code, "is being driven under another definition" in refused.err) == (4, True), refused.err
    assert process.returncode == 0, err
    assert "run.adopted" not in events(moot)


def test_two_processes_that_adopt_at_once_leave_one_entry(moot: Moot) -> None:
    waiting(moot)
    rewrite(*HARMLESS["a row at the end"])
    both = [started("resume", "mine", "--quiet", home=Path.cwd()) for _ in range(2)]
    told = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [5, 5], told
    assert events(moot) == ["run.started", "replied", "run.adopted"]
    finish(moot)


@pytest.mark.parametrize("change", ["a row at the end", "a larger budget"])
def test_a_damaged_head_is_made_anew_before_its_run_is_adopted(moot: Moot, change: str) -> None:
    waiting(moot)
    damage()
    rewrite(*HARMLESS[change])
    assert moot("resume", "mine", "--quiet").code == 5
    assert events(moot) == ["run.started", "replied", "run.adopted"]
    finish(moot)


@pytest.mark.parametrize("change", ["who may answer", "the start"])
def test_a_damaged_head_is_not_made_anew_by_a_definition_that_decides_otherwise(moot: Moot, change: str) -> None:
    waiting(moot)
    before = exported(moot)
    damage()
    rewrite(*HARMFUL[change][:2])
    assert moot("resume", "mine", "--quiet").code == 4
    rewrite()
    assert moot("resume", "mine", "--quiet").code == 5
    assert exported(moot)["head"] == before["head"]
    finish(moot)


def test_a_head_that_was_adopted_and_damaged_is_made_anew(moot: Moot) -> None:
    waiting(moot)
    rewrite(*HARMLESS["a row at the end"])
    moot("resume", "mine", "--quiet")
    before = exported(moot)
    damage()
    assert moot("resume", "mine", "--quiet").code == 5
    assert exported(moot) == before
    finish(moot)


def damage() -> None:
    db = sqlite3.connect("moothall.db")
    db.execute("UPDATE runs SET head = x'00' WHERE run = 'mine'")
    db.commit()
    db.close()


class Died(BaseException):
    """The process is dead."""


def died(when: str, work: Callable[[Any], Awaitable[Any]]) -> None:
    """Do something with the store of this folder, and die in the first commit, or before anybody hears of it."""
    store = SqliteStore(Path("moothall.db"), Path("audit.key").read_bytes(), anchors=Path("anchors"))

    def die(*_: Any) -> None:
        raise Died

    for name in ("_begin", "_move") if when == "before" else ("_anchor",):
        setattr(store, name, die)
    with pytest.raises(Died):
        asyncio.run(_done(work(context_over(store))))
    store.close()


async def _done(work: Awaitable[Any]) -> None:
    await work


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.unreplayed("who dies after a commit does not hear of it")
def test_a_death_around_the_commit_of_an_adoption_does_no_harm(moot: Moot, when: str) -> None:
    waiting(moot)
    rewrite(*HARMLESS["a row at the end"])
    died(when, lambda setting: go_on(setting, "mine"))
    assert events(moot).count("run.adopted") == (when == "after")
    assert moot("audit").code in (0, 6)
    assert moot("resume", "mine", "--quiet").code == 5
    assert events(moot).count("run.adopted") == 1
    finish(moot)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.unreplayed("who dies after a commit does not hear of it")
def test_a_death_around_the_commit_of_a_fork_does_no_harm(moot: Moot, when: str) -> None:
    waiting(moot)

    async def fork(setting: RunContext) -> None:
        origin = await performed_since(setting, "mine", None)
        await go_own_way(setting, origin, Fork("fork"))

    died(when, fork)
    audit = moot("audit")
    assert (audit.code, "broken" in audit.out) == (6, False), audit.out
    if when == "before":
        assert moot("audit", "fork").out.startswith("fork: cannot tell: it is not there")
        assert moot("fork", "mine", "--run-id", "fork", "--quiet").code == 5
    assert moot("resume", "fork", "--quiet").code == 5
    finish(moot, "fork")
    assert moot("answer", "mine", "--text", "Ada", "--quiet").code == 5
