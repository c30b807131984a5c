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
    assert ran.err == f"moot doctor: {address!r} is not a store; write sqlite:FILE, postgresql://… or memory\n"


@pytest.mark.parametrize("content", ["model = [", "modl = 'x'", None], ids=["no toml", "unknown field", "a folder"])
def test_settings_that_cannot_be_read_are_a_finding_and_the_rest_is_looked_at(moot: Moot, content: str | None) -> None:
    moot("run", "machines.py:LETTER", "Ada")
    file = Path("home/settings.toml")
    file.mkdir() if content is None else file.write_text(content)
    ran = moot("doctor", "--json")
    found = {check["name"]: check for check in ran.json["checks"]}
    assert (ran.code, ran.err, ran.json["problems"]) == (1, "", 1)
    assert found["settings"]["level"] == "problem"
    assert "settings.toml" in found["settings"]["says"]
    assert found["runs"]["says"] == "1 done"
    assert {"secrets", "signing", "anchors", "quickjs"} <= found.keys()


def test_secrets_are_not_shown_where_the_settings_cannot_be_read(moot: Moot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "sesame-open-sesame-1")
    Path("home").mkdir()
    Path("home/settings.toml").write_text("model = 'scripted:sesame-open-sesame-1'\ntimeout = 3")
    ran = moot("doctor", "--store", "sqlite:sesame-open-sesame-1.db")
    assert ran.code == 1
    assert "SHOP_API_KEY" in ran.out
    assert "sesame" not in ran.out + ran.err


@pytest.mark.parametrize("name", ["MOOTHALL_AUDIT_KEY", "MOOTHALL_ANCHORS", "MOOTHALL_HOME"])
@pytest.mark.parametrize("place", ["circle", "machines.py/below", "dangling"])
def test_a_place_that_leads_nowhere_is_a_finding(
    moot: Moot, monkeypatch: pytest.MonkeyPatch, name: str, place: str
) -> None:
    moot("run", "machines.py:LETTER", "Ada")
    Path("circle").symlink_to("circle")
    Path("dangling").symlink_to("nowhere")
    monkeypatch.setenv(name, place)
    ran = moot("doctor")
    assert (ran.code, ran.err) == (1, "")
    assert place in "".join(line for line in ran.out.splitlines() if " problem " in line)
    assert "quickjs" in ran.out


@pytest.mark.parametrize(("name", "says"), [("MOOTHALL_STORE", "MOOTHALL_STORE"), (None, "settings.toml")])
def test_a_store_that_is_set_and_is_none_is_a_finding(
    moot: Moot, monkeypatch: pytest.MonkeyPatch, name: str | None, says: str
) -> None:
    if name:
        monkeypatch.setenv(name, "runs.db")
    else:
        Path("home").mkdir()
        Path("home/settings.toml").write_text("store = 'runs.db'")
    ran = moot("doctor", "--json")
    [store] = [check for check in ran.json["checks"] if check["name"] == "store"]
    assert (ran.code, store["level"]) == (1, "problem")
    assert store["says"] == f"{says}: 'runs.db' is not a store; write sqlite:FILE, postgresql://… or memory"


def test_a_terminal_gets_colours_and_lines_that_fit(tmp_path: Path) -> None:
    place = {"COLUMNS": "60", "MOOTHALL_MODEL": "scripted:" + "far/" * 20 + "away.json"}
    with terminal("doctor", home=tmp_path, more=place) as screen:
        said = screen.read_all()
    assert "\x1b[31mproblem" in said
    assert max(len(line) for line in re.sub(r"\x1b\[\d+m", "", said).splitlines()) <= 60
    assert "\x1b" not in moot_process("doctor", home=tmp_path, more=place).stdout
