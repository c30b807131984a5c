"""Telemetry at the command line: by a flag, by the environment, by the settings file; the flag goes first."""

import json
from pathlib import Path

import pytest

from tests.cli.ran import Moot


def events(file: str) -> list[tuple[str, str]]:
    return [(one["run"], one["event"]) for one in map(json.loads, Path(file).read_text().splitlines())]


def test_the_flag_goes_before_the_environment_and_that_before_the_file(
    moot: Moot, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("home").mkdir()
    Path("home/settings.toml").write_text('telemetry = "log:by-file"')
    assert moot("run", "machines.py:LETTER", "Ada", "--run-id", "one").code == 0
    monkeypatch.setenv("MOOTHALL_TELEMETRY", "log:by-environment")
    assert moot("run", "machines.py:LETTER", "Ada", "--run-id", "two").code == 0
    assert moot("run", "machines.py:LETTER", "Ada", "--run-id", "three", "--telemetry", "log:by-flag").code == 0
    assert moot("run", "machines.py:LETTER", "Ada", "--run-id", "four", "--telemetry", "", "--quiet").code == 0
    found = {file: {run for run, _ in events(file)} for file in ("by-file", "by-environment", "by-flag")}
    assert found == {"by-file": {"one"}, "by-environment": {"two"}, "by-flag": {"three"}}


def test_the_log_goes_to_stderr_and_the_result_alone_to_stdout(moot: Moot) -> None:
    ran = moot("run", "machines.py:LETTER", "Ada", "--run-id", "mine", "--quiet", "--json", "--telemetry", "log")
    assert ran.json["run"] == "mine"
    assert [json.loads(line)["step"] for line in ran.err.splitlines()] == [0, 1]


def test_who_resumes_or_answers_is_watched_too(moot: Moot) -> None:
    moot("run", "machines.py:SENT", "Ada", "--run-id", "mine")
    assert moot("resume", "mine", "--telemetry", "log:resumed").code == 5
    assert moot("answer", "mine", "--yes", "--telemetry", "log:answered").code == 0
    assert events("resumed") == []
    assert events("answered")[0] == ("mine", "answered")


def test_what_cannot_be_switched_on_is_refused_before_the_run_begins(moot: Moot) -> None:
    ran = moot("run", "machines.py:LETTER", "Ada", "--run-id", "mine", "--telemetry", "smoke")
    assert (ran.code, ran.out) == (4, "")
    assert "telemetry: 'smoke' is none; write spans, counters:PORT" in ran.err
    assert "Traceback" not in ran.err
    assert moot("show", "mine").code == 1
