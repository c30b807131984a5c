"""SCXML documents at the command line: `check`, `graph`, `run`, `send`."""

from pathlib import Path

import pytest

from tests.cli.ran import Moot

DOOR = """\
<scxml xmlns="http://www.w3.org/2005/07/scxml" version="1.0" name="door" initial="closed" datamodel="ecmascript">
  <datamodel><data id="opened" expr="0"/></datamodel>
  <state id="closed">
    <transition event="open" cond="opened &lt; 2" target="open"/>
    <transition event="lock" target="locked"/>
  </state>
  <state id="open">
    <onentry><assign location="opened" expr="opened + 1"/><send event="slam" delay="1ms"/></onentry>
    <transition event="slam" target="closed"/>
  </state>
  <final id="locked"><donedata><param name="times" expr="opened"/></donedata></final>
</scxml>
"""


@pytest.fixture
def door(tmp_path: Path) -> Path:
    path = tmp_path / "door.scxml"
    path.write_text(DOOR)
    return path


def test_a_document_is_checked_and_what_is_wrong_with_it_is_told_with_its_line(moot: Moot, door: Path) -> None:
    ran = moot("check", "door.scxml")
    assert (ran.code, ran.out) == (0, "door.scxml: door: 3 states, 3 transitions; 0 errors, 0 warnings\n")
    door.write_text(DOOR.replace('target="locked"', 'target="lokked"'))
    ran = moot("check", "door.scxml")
    assert ran.code == 4
    assert "door.scxml" in ran.err
    assert "lokked" in ran.err
    assert moot("check", "nothing.scxml").code == 4


def test_a_document_is_drawn_and_any_machine_is_written_as_one(moot: Moot, door: Path, tmp_path: Path) -> None:
    assert "slam → closed" in moot("graph", "door.scxml", "--format", "tree").out
    (tmp_path / "again.scxml").write_text(moot("graph", "door.scxml", "--format", "scxml").out)
    again = moot("graph", "again.scxml", "--format", "tree").out
    assert again == moot("graph", "door.scxml", "--format", "tree").out
    (tmp_path / "letter.scxml").write_text(moot("graph", "machines.py:LETTER", "--format", "scxml").out)
    assert moot("check", "letter.scxml").code == 0


def test_a_document_is_run_told_events_and_goes_on_without_its_file(moot: Moot, door: Path) -> None:
    ran = moot("run", "door.scxml", "--run-id", "mine")
    assert ran.code == 5
    assert "it waits to be told an event, such as open, lock; tell it: moot send mine EVENT" in ran.err
    assert "waiting" in moot("ls").out
    assert moot("send", "mine", "open").code == 5
    door.unlink()
    ran = moot("send", "mine", "lock")
    assert (ran.code, ran.out) == (0, '{"times": 1}\n')
    assert f"{door} cannot be used any more; run mine keeps" in ran.err
    assert moot("replay", "mine").out == "mine: the same again, 4 entries\n"


def test_a_run_is_given_first_values_of_variables_and_nothing_else(moot: Moot, door: Path) -> None:
    assert moot("run", "door.scxml", "a text").code == 1
    door.write_text(DOOR.replace(' expr="0"', ""))
    assert moot("run", "door.scxml", '{"opened": 7}', "--run-id", "mine").code == 5
    assert moot("send", "mine", "lock").out == '{"times": 7}\n'


def test_a_document_that_invokes_others_is_drawn_and_not_run(moot: Moot, tmp_path: Path) -> None:
    inner = '<invoke type="scxml"><content><scxml version="1.0"><final id="end"/></scxml></content></invoke>'
    text = DOOR.replace('<state id="closed">', f'<state id="closed">{inner}')
    (tmp_path / "calling.scxml").write_text(text)
    assert moot("graph", "calling.scxml").code == 0
    ran = moot("run", "calling.scxml")
    assert (ran.code, "it invokes other sessions" in ran.err) == (4, True)


def test_a_document_without_donedata_gives_its_own_variables_and_nothing_of_the_system(
    moot: Moot, tmp_path: Path
) -> None:
    text = (
        '<scxml xmlns="http://www.w3.org/2005/07/scxml" version="1.0" name="lamp" datamodel="ecmascript">{}'
        '<state id="on"><transition event="break" target="broken"/></state><final id="broken"/></scxml>'
    )
    (tmp_path / "lamp.scxml").write_text(text.format(""))
    (tmp_path / "hours.scxml").write_text(text.format('<datamodel><data id="hours" expr="7"/></datamodel>'))
    for name, shown in (("lamp", ""), ("hours", '{"hours": 7}\n')):
        moot("run", f"{name}.scxml", "--run-id", name)
        ran = moot("send", name, "break")
        assert (ran.code, ran.out) == (0, shown)
