"""A run that waits goes on under another wording, and under another definition where somebody insists."""

import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

from moothall.app.kinds import python as finding
from tests.cli.ran import Moot

REPAIRS = Path(__file__).resolve().parents[2].parent / "shared" / "repairs"


LETTER = """
from dataclasses import dataclass
from moothall import Answered, Final, Machine, On, Replied, State, ask, question

@dataclass(frozen=True)
class Letter:
    to: str

async def writer(prompt: str) -> str:
    return "Dear reader"

LETTER = Machine("letter", data=Letter, result=lambda letter: letter.to,
    states=[State("writing", enter=ask(writer, "Write to {to}")), State("asking", enter=question("Send it?")),
            State("sorting"), Final("sent"), Final("kept")],
    moves=[On("writing", Replied, to="asking"),
           On("asking", Answered, to="sent", when=lambda letter, said: said.value),
           On("asking", Answered, to="kept")])
"""


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files change within a second here, which a cache of compiled code would not notice."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


def forget_files() -> None:
    """Load files anew, as another process would."""
    for name in [name for name in sys.modules if name.startswith("moothall_file_")]:
        del sys.modules[name]
    finding._loaded.clear()


def rewrite(name: str, old: str, new: str) -> None:
    """Change a file, as an author would between two commands."""
    path = Path(name)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    forget_files()


def waiting(moot: Moot) -> None:
    Path("letter.py").write_text(LETTER)
    assert moot("run", "letter.py", "Ada", "--run-id", "mine").code == 5


@pytest.mark.skipif(not (REPAIRS / "wait.py").exists(), reason="the folder with the reproductions is not there")
def test_a_mended_prompt_does_not_strand_a_run_that_waits(moot: Moot) -> None:
    Path("wait.py").write_text((REPAIRS / "wait.py").read_text())
    assert moot("run", "wait.py", "My parcel is late", "--run-id", "mail").code == 5
    rewrite("wait.py", "this mail", "this e-mail")
    gone_on = moot("answer", "mail", "--yes")
    assert (gone_on.code, gone_on.out) == (0, "complaint\n"), gone_on.err
    assert "run.adopted another wording" in gone_on.err
    assert moot("replay", "mail").code == 0


OTHER_WAY = (
    'On("writing", Replied, to="asking")',
    'On("writing", Replied, to="sorting"), On("sorting", "x", to="asking")',
)


def test_a_definition_that_decides_otherwise_goes_on_where_somebody_says_why(moot: Moot) -> None:
    waiting(moot)
    rewrite("letter.py", *OTHER_WAY)
    refused = moot("answer", "mine", "--yes")
    assert (refused.code, "moot resume mine --adopt WHY" in refused.err) == (4, True), refused.err
    gone_on = moot("answer", "mine", "--yes", "--adopt", "sorting came later", "--as", "Ada")
    assert (gone_on.code, gone_on.out) == (0, "Ada\n"), gone_on.err
    entries = moot("export", "mine").json["entries"]
    note = entries[2]["event"]
    assert (note["name"], note["by"], note["reason"]) == ("run.adopted", "Ada", "sorting came later")
    assert note["difference"].startswith("entry 1 differs in 'to'")
    assert moot("replay", "mine").code == 0
    assert moot("audit").code == 0


def exported(moot: Moot) -> dict[str, Any]:
    """The run as it is told; the parcel beside it also has the token of whoever held the run last."""
    told = moot("export", "mine").json
    return {name: part for name, part in told.items() if name != "parcel"}


def test_a_head_that_is_damaged_after_somebody_insisted_is_made_anew(moot: Moot) -> None:
    waiting(moot)
    rewrite("letter.py", *OTHER_WAY)
    assert moot("resume", "mine", "--adopt", "I know").code == 5
    before = exported(moot)
    with sqlite3.connect(next(Path("home").glob("*.db"))) as db:
        db.execute("UPDATE runs SET head = x'00'")
    db.close()
    assert moot("resume", "mine").code == 5
    assert exported(moot) == before
    assert before["entries"][2]["event"]["by"]
    forked = moot("fork", "mine", "--run-id", "other")
    assert forked.code == 5, forked.err
    assert moot("answer", "other", "--no").code == 0
    assert moot("replay", "other").code == 0


def test_nobody_can_insist_on_a_definition_that_cannot_stand_where_the_run_does(moot: Moot) -> None:
    waiting(moot)
    before = exported(moot)
    rewrite("letter.py", '"asking"', '"wondering"')
    refused = moot("resume", "mine", "--adopt", "I know")
    assert (refused.code, "it stands in asking" in refused.err) == (4, True), refused.err
    assert exported(moot) == before


@pytest.mark.parametrize("command", [("resume", "mine"), ("answer", "mine", "--yes")])
def test_a_file_that_moved_is_named_where_it_is_now(moot: Moot, command: tuple[str, ...]) -> None:
    waiting(moot)
    Path("there").mkdir()
    Path("letter.py").rename("there/letter.py")
    forget_files()
    lost = moot(*command)
    assert (lost.code, "moot resume mine --machine FILE:NAME" in lost.err) == (4, True), lost.err
    assert moot(*command, "--machine", "there/letter.py:LETTER").code == (5 if command[0] == "resume" else 0)
    assert "run.adopted" not in [entry["event"]["name"] for entry in moot("export", "mine").json["entries"]]
