"""`moot doctor`: a table of checks, and the exit code says whether something is wrong."""

import re
from pathlib import Path

import pytest

from tests.cli.process import moot as moot_process
from tests.cli.ran import Moot
from tests.cli.terminal import terminal


def test_all_is_well_before_the_first_run_and_nothing_is_made(moot: Moot, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    ran = moot("doctor")
    assert (ran.code, ran.err) == (0, "")
    rows = {line.split()[0]: line.split()[1] for line in ran.out.splitlines()}
    assert {"python", "sqlite", "store", "disk", "model", "quickjs"} <= rows.keys()
    assert set(rows.values()) <= {"ok", "warning"}
    assert sorted(tmp_path.rglob("*")) == before


def test_runs_are_counted(moot: Moot) -> None:
    moot("run", "machines.py:LETTER", "Ada")
    moot("run", "machines.py:SENT", "Ada")
    ran = moot("doctor")
    assert ran.code == 0
    assert [line.split(None, 2)[2] for line in ran.out.splitlines() if line.startswith("runs")] == ["1 done, 1 waiting"]


def test_json_has_every_check_and_how_many_are_wrong(moot: Moot) -> None:
    told = moot("doctor", "--json").json
    assert told["problems"] == 0
    assert told["warnings"] == sum(check["level"] == "warning" for check in told["checks"])
    assert all(set(check) == {"name", "level", "says"} for check in told["checks"])


@pytest.mark.parametrize("as_json", [(), ("--json",)], ids=["for people", "as json"])
def test_a_problem_exits_with_1(moot: Moot, as_json: tuple[str, ...]) -> None:
    Path("diary.db").write_text("dear diary " * 99)
    ran = moot("doctor", "--store", "sqlite:diary.db", *as_json)
    assert ran.code == 1
    assert "problem" in ran.out
    assert Path("diary.db").read_text() == "dear diary " * 99


@pytest.mark.parametrize("address", ["postgres:x", "runs.db"])
def test_what_is_no_store_is_told_in_a_sentence(moot: Moot, address: str) -> None:
    ran = moot("doctor", "--store", address)
    assert (ran.code, ran.out) == (4, "")
    assert ran.err == f"moot doctor: {address!r} is no store; write sqlite:FILE or memory\n"


def test_a_terminal_gets_colours_and_lines_that_fit(tmp_path: Path) -> None:
    place = {"COLUMNS": "60", "MOOTHALL_MODEL": "scripted:" + "far/" * 20 + "away.json"}
    with terminal("doctor", home=tmp_path, more=place) as screen:
        said = screen.read_all()
    assert "\x1b[31mproblem" in said
    assert max(len(line) for line in re.sub(r"\x1b\[\d+m", "", said).splitlines()) <= 60
    assert "\x1b" not in moot_process("doctor", home=tmp_path, more=place).stdout
