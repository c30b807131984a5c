"""An operator's day: runs that are left to workers, and lists that show what one looks for."""

import os
from pathlib import Path

import pytest

from tests.cli.ran import Moot


def test_a_detached_run_is_begun_and_left_to_a_worker(moot: Moot) -> None:
    begun = moot("run", "machines.py:LETTER", "Ada", "--run-id", "later", "--detach")
    assert (begun.code, begun.out) == (0, "later\n")
    assert "moot watch later" in begun.err
    told = "no process drives 1 of them: moot worker goes on with them; moot ls --undriven lists them"
    assert told in moot("ls").err
    assert told not in moot("ls", "--undriven").err
    [summary] = moot("ls", "--undriven", "--json").json
    assert (summary["run"], summary["status"], summary["holder"]) == ("later", "running", "")
    assert moot("worker", "--until-idle").code == 0
    assert moot("show", "later", "--json").json["summary"]["status"] == "done"
    assert moot("ls", "--undriven", "--json").json == []


def test_a_detached_run_prints_its_id_as_json(moot: Moot) -> None:
    begun = moot("run", "machines.py:LETTER", "Ada", "--run-id", "later", "--detach", "--json", "--quiet")
    assert (begun.json, begun.err) == ({"run": "later"}, "")


def test_runs_are_found_by_status_machine_and_who_is_asked(moot: Moot) -> None:
    moot("run", "machines.py:LETTER", "Ada", "--run-id", "first")
    moot("run", "machines.py:SENT", "Ada", "--run-id", "second")

    def found(*filters: str) -> list[str]:
        return [summary["run"] for summary in moot("ls", *filters, "--json").json]

    assert found("--status", "waiting") == ["second"]
    assert found("--status", "done") == ["first"]
    assert found("--waiting") == ["second"]
    machine = moot("show", "first", "--json").json["summary"]["machine"]
    assert found("--machine", machine) == ["first"]
    assert found("--machine", machine, "--status", "waiting") == []
    assert moot("ls", "--status", "limited").out.rstrip() in (
        "no run fits; in this store are 1 done, 1 waiting. List them:  moot ls --all",
        "no run fits; in this store are 1 waiting, 1 done. List them:  moot ls --all",
    )


def test_a_status_that_no_run_can_have_is_refused_and_the_others_are_named(moot: Moot) -> None:
    listed = moot("ls", "--status", "runing")
    assert listed.code == 2
    assert "'runing'" in listed.err
    assert all(status in listed.err for status in ("running", "waiting", "set aside"))


PAID = """
from moothall import Final, Machine, On, Replied, Reply, State, ask

async def writer(prompt: str) -> Reply:
    return Reply("written", usage={"usd": 0.6})

WRITING = Machine("writing", states=[State("writing", enter=ask(writer, "Write.")), Final("written")],
                  moves=[On("writing", Replied, to="written")])
BY_NAME = Machine("by_name", states=[State("writing", enter=ask("poet", "Write.")), Final("written")],
                  moves=[On("writing", Replied, to="written")])
"""


@pytest.mark.parametrize("machine", ["WRITING", "BY_NAME"])
def test_what_functions_and_scripts_say_that_they_cost_counts_towards_the_day(
    moot: Moot, tmp_path: Path, machine: str
) -> None:
    (tmp_path / "paid.py").write_text(PAID)
    (tmp_path / "said.json").write_text('{"poet": [{"text": "written", "usage": {"usd": 0.6}}]}')
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "settings.toml").write_text("daily_usd = 1\n")
    model = ("--model", f"scripted:{tmp_path / 'said.json'}") if machine == "BY_NAME" else ()
    for run in ("first", "second"):
        assert moot("run", f"paid.py:{machine}", "--run-id", run, *model).code == 0
    assert any("usd 1.20 of 1.00 were spent today" in line for line in moot("doctor").out.splitlines())
    moot("run", f"paid.py:{machine}", "--run-id", "third", "--detach", *model)
    worked = moot("worker", "--until-idle")
    assert "usd 1.20 were spent today, and daily_usd in the settings allows 1.00" in worked.err
    assert moot("show", "third", "--json").json["summary"]["status"] == "running"


def test_a_project_sees_its_own_runs_unless_all_are_asked_for(
    moot: Moot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines = str(tmp_path / "machines.py") + ":LETTER"
    for name in ("one", "two"):
        (tmp_path / name / ".git").mkdir(parents=True)
        (tmp_path / name / "deep").mkdir()
        monkeypatch.chdir(tmp_path / name / "deep")
        assert moot("run", machines, "Ada", "--run-id", f"of-{name}").code == 0
    listed = moot("ls")
    assert [line.split()[0] for line in listed.out.splitlines()] == ["of-two"]
    assert "1 more run outside this project: moot ls --all" in listed.err
    nothing = moot("ls", "--machine", "nobody")
    assert nothing.out == "no run fits; in this store are 2 done. List them:  moot ls --all\n"
    (tmp_path / "three" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "three")
    fresh = moot("ls")
    assert fresh.out == f"no run of {tmp_path / 'three'} fits\n"
    assert "2 runs outside this project: moot ls --all" in fresh.err
    assert len(moot("ls", "--all", "--json").json) == 2
    assert [line.split()[:3] for line in moot("ls", "--all").out.splitlines()] == [
        ["of-two", "two", "done"],
        ["of-one", "one", "done"],
    ]
    [summary] = moot("ls", "--project", str(tmp_path / "one"), "--json").json
    assert summary["project"] == os.path.realpath(tmp_path / "one")
    assert moot("ls", "--project", "x", "--all").code == 2
    monkeypatch.chdir(tmp_path)
    assert len(moot("ls", "--json").json) == 2


def test_a_file_of_settings_makes_a_folder_a_project_too(
    moot: Moot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines = str(tmp_path / "machines.py") + ":LETTER"
    (tmp_path / "here" / "deep").mkdir(parents=True)
    (tmp_path / "here" / "moothall.toml").write_text("")
    for folder, run in ((tmp_path, "outside"), (tmp_path / "here" / "deep", "inside")):
        monkeypatch.chdir(folder)
        assert moot("run", machines, "Ada", "--run-id", run).code == 0
    [summary] = moot("ls", "--json").json
    assert (summary["run"], summary["project"]) == ("inside", os.path.realpath(tmp_path / "here"))
    assert len(moot("ls", "--all", "--json").json) == 2


def test_a_project_prunes_its_own_runs_unless_all_are_meant(
    moot: Moot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines = str(tmp_path / "machines.py") + ":LETTER"
    for name in ("one", "two", "three"):
        (tmp_path / name / ".git").mkdir(parents=True)
        monkeypatch.chdir(tmp_path / name)
        assert moot("run", machines, "Ada", "--run-id", f"of-{name}").code == 0
    listed = moot("prune", "--days", "0")
    three = os.path.realpath(tmp_path / "three")
    assert listed.out == "of-three\n"
    assert listed.err.startswith(f"1 run of {three} would be deleted; say --yes\n")
    assert "2 more runs outside this project: moot prune --all" in listed.err
    assert moot("prune", "--days", "0", "--yes").out == "of-three\n"
    assert f"no run of {three} ended more than 0 days ago" in moot("prune", "--days", "0").err
    assert moot("prune", "--days", "0", "--project", str(tmp_path / "two"), "--yes").out == "of-two\n"
    assert [summary["run"] for summary in moot("ls", "--all", "--json").json] == ["of-one"]
    assert moot("prune", "--project", "x", "--all").code == 2
    deleted = moot("prune", "--days", "0", "--all", "--yes")
    assert (deleted.out, deleted.err) == ("of-one\n", "1 run of every project deleted\n")
    assert moot("ls", "--all", "--json").json == []


def test_a_run_that_came_to_a_bad_end_is_shown_and_exits_as_failed(moot: Moot, tmp_path: Path) -> None:
    (tmp_path / "gate.py").write_text(
        "from moothall import Final, Machine, On, State, always\n"
        "GATE = Machine('gate', data=dict, start='waiting', states=[State('waiting'), Final('open'),\n"
        "    Final('shut', ends='failed')], moves=[On('waiting', always, to='shut')])\n"
    )
    ran = moot("run", "gate.py:GATE", "--run-id", "gate-1")
    assert ran.code == 1
    assert "gate-1 is failed: it ended in shut" in ran.err
    assert "shut  run.started  failed" in ran.err
    assert "shut  run.started  failed" in moot("show", "gate-1").out
    [summary] = moot("ls", "--status", "failed", "--json").json
    assert (summary["run"], summary["reason"]) == ("gate-1", "it ended in shut")
    watched = moot("watch", "gate-1")
    assert (watched.code, watched.out) == (1, "    0  shut  run.started  failed\n")
    again = moot("retry", "gate-1")
    assert again.code == 1
    assert "run gate-1 took the way to shut, which its machine calls a bad end" in again.err
    assert "moot fork gate-1 --at ENTRY" in again.err


def test_a_fork_may_repeat_what_agents_did_and_nothing_else(moot: Moot) -> None:
    moot("run", "machines.py:LETTER", "Ada", "--run-id", "first")
    asked = moot("fork", "first", "--at", "0", "--run-id", "second")
    assert asked.code == 5
    assert "it asks you how it ended; with --repeat it does it again" in asked.err
    assert moot("fork", "first", "--at", "0", "--repeat", "agents").out == "DEAR ADA\n"
    assert moot("fork", "first", "--at", "0", "--repeat").out == "DEAR ADA\n"
    assert moot("fork", "first", "--at", "0", "--repeat", "tools").code == 2
