"""The shared reproductions of what was once untrue, as commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.process import moot

REPAIRS = Path(__file__).parents[3] / "shared" / "repairs"


def reproduction(name: str) -> str:
    """The text of a reproduction."""
    if not (REPAIRS / name).exists():
        pytest.skip("the shared reproductions are not beside the project")
    return (REPAIRS / name).read_text()


def test_a_payment_that_was_made_and_gave_no_receipt_that_can_be_kept_waits_for_a_person(tmp_path: Path) -> None:
    (tmp_path / "paid.py").write_text(reproduction("paid.py"))
    more = {"LEDGER": str(tmp_path / "ledger")}
    ran = moot("run", "paid.py", "a lamp", "--run-id", "shop", "--json", home=tmp_path, more=more)
    assert ran.returncode == 5
    assert json.loads(ran.stdout)["questions"][0]["prompt"].startswith("pay returned, but what it returned cannot")
    assert (tmp_path / "ledger").read_text() == "paid shop.0.0\n"


def test_a_run_goes_on_after_its_bug_is_mended_and_the_agent_is_asked_once(tmp_path: Path) -> None:
    file, calls = tmp_path / "bug.py", tmp_path / "calls"
    file.write_text(reproduction("bug.py"))
    more = {"CALLS": str(calls)}
    ran = moot("run", "bug.py", "tides", "--run-id", "note", home=tmp_path, more=more)
    assert ran.returncode == 1
    line = 1 + file.read_text().splitlines().index("    return replace(note, textt=reply.text)")
    assert f"(in keep, {file}:{line})" in ran.stderr
    refused = moot("retry", "note", home=tmp_path, more=more)
    assert refused.returncode == 1
    assert "run note would be failed again" in refused.stderr
    file.write_text(file.read_text().replace("textt=", "text="))
    retried = moot("retry", "note", "--json", "--as", "Ada", home=tmp_path, more=more)
    assert (retried.returncode, json.loads(retried.stdout)["result"]) == (0, "hi")
    assert calls.read_text() == "call\n"
    assert moot("replay", "note", "--machine", "bug.py", home=tmp_path, more=more).returncode == 0
    assert "intact" in moot("audit", "note", home=tmp_path, more=more).stdout
    [note] = [
        entry["event"]
        for entry in json.loads(moot("show", "note", "--json", home=tmp_path, more=more).stdout)["entries"]
        if entry["event"]["name"] == "run.retried"
    ]
    assert (note["by"], note["entry"]) == ("Ada", 1)


def test_a_run_is_retried_with_the_machine_of_another_file(tmp_path: Path) -> None:
    text = reproduction("bug.py")
    (tmp_path / "bug.py").write_text(text)
    (tmp_path / "mended.py").write_text(text.replace("textt=", "text="))
    more = {"CALLS": str(tmp_path / "calls")}
    moot("run", "bug.py", "tides", "--run-id", "note", home=tmp_path, more=more)
    retried = moot("retry", "note", "--machine", "mended.py:NOTE", home=tmp_path, more=more)
    assert (retried.returncode, retried.stdout) == (0, "hi\n")
