"""The examples do what they say, as scripts and through `moot`, and fit on a screen."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.process import EXAMPLES, environment, moot

SHORT = ("writer_critic.py", "approval.py", "research.py")
EVERY = (*SHORT, "newsroom.py", "shop.py", "triage.py")
OTHERS = (
    "coding_assistant.py",
    "debate.py",
    "debate_models.py",
    "demo.py",
    "demo_debate.py",
    "demo_team.py",
    "endless.py",
    "haiku.py",
    "service.py",
    "test_triage.py",
)


@pytest.mark.parametrize("name", SHORT)
def test_an_example_has_fewer_than_forty_lines(name: str) -> None:
    assert len((EXAMPLES / name).read_text().splitlines()) < 40


def test_every_example_is_tried_here() -> None:
    assert {file.name for file in EXAMPLES.glob("*.py")} == {*EVERY, *OTHERS}


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("writer_critic.py", "The sea rises and falls twice a day.\n"),
        ("approval.py", "Send this? Dear Ada, ten tide tables for 90 euros."),
        ("research.py", "[rehearsal] editor"),
        ("newsroom.py", "status='waiting'"),
        ("shop.py", "a lamp: paid\n"),
        ("triage.py", "The tides are in the table on page 3.\n"),
        ("haiku.py", "judging → implementing (Soft failure, refining implementation)\n"),
        ("debate_models.py", "three models were asked: big-one, fast-one, old-one\n"),
    ],
)
def test_an_example_runs_as_a_script(tmp_path: Path, name: str, says: str) -> None:
    ran = subprocess.run(
        [sys.executable, EXAMPLES / name], cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert says in ran.stdout


def test_the_writer_and_the_critic_agree(tmp_path: Path) -> None:
    ran = moot("run", str(EXAMPLES / "writer_critic.py"), "tides", home=tmp_path)
    assert (ran.returncode, ran.stdout) == (0, "The sea rises and falls twice a day.\n")
    assert "reviewing → drafting  replied critic say how often" in ran.stderr


def test_the_offer_waits_for_a_person_and_is_sent(tmp_path: Path) -> None:
    assert moot("run", str(EXAMPLES / "approval.py"), "Ada", "--run-id", "ada", home=tmp_path).returncode == 5
    ran = moot("answer", "ada", "--yes", home=tmp_path)
    assert (ran.returncode, ran.stdout) == (0, "Dear Ada, ten tide tables for 90 euros.\n")
    assert "sending → sent  returned send" in ran.stderr


def test_the_offer_is_dropped_where_the_person_says_no(tmp_path: Path) -> None:
    moot("run", str(EXAMPLES / "approval.py"), "Ada", "--run-id", "ada", home=tmp_path)
    ran = moot("answer", "ada", "--no", "--json", home=tmp_path)
    assert json.loads(ran.stdout)["states"] == ["dropped"]


def test_the_three_researchers_are_asked_together_and_the_editor_gets_all_they_found(tmp_path: Path) -> None:
    ran = moot("run", str(EXAMPLES / "research.py"), "tides", "--run-id", "study", home=tmp_path)
    assert ran.returncode == 0
    entries = json.loads(moot("show", "study", "--json", home=tmp_path).stdout)["entries"]
    assert [effect["effect"]["agent"] for effect in entries[0]["effects"]] == ["press", "papers", "patents"]
    [editor] = [effect["effect"] for entry in entries[1:] for effect in entry["effects"]]
    found = " ".join(editor["arguments"]["found"])
    assert editor["agent"] == "editor"
    assert all(f"{who}: " in found for who in ("press", "papers", "patents"))


def test_the_journal_of_an_example_has_no_gaps(tmp_path: Path) -> None:
    moot("run", str(EXAMPLES / "writer_critic.py"), "tides", "--run-id", "tides", home=tmp_path)
    shown = json.loads(moot("show", "tides", "--json", home=tmp_path).stdout)
    assert [entry["seq"] for entry in shown["entries"]] == list(range(shown["summary"]["seq"] + 1))
    assert len(shown["entries"]) == 5


@pytest.mark.parametrize("name", EVERY)
def test_every_example_passes_the_check_and_is_bounded(tmp_path: Path, name: str) -> None:
    ran = moot("check", str(EXAMPLES / name), home=tmp_path)
    assert ran.returncode == 0
    assert ran.stdout.splitlines()[-1].startswith("bounded: at most ")


def test_without_its_bound_the_loop_of_the_writer_and_the_critic_is_refused_and_named(tmp_path: Path) -> None:
    text = (EXAMPLES / "writer_critic.py").read_text()
    (tmp_path / "endless.py").write_text(text.replace(", at_most=3", ""))
    ran = moot("check", "endless.py", home=tmp_path)
    assert ran.returncode == 4
    assert "drafting → reviewing → drafting" in ran.stdout
    assert ran.stdout.splitlines()[-1].startswith("no bound: drafting → reviewing → drafting")


@pytest.mark.parametrize("name", EVERY)
def test_every_example_can_be_drawn_as_mermaid(tmp_path: Path, name: str) -> None:
    ran = moot("graph", str(EXAMPLES / name), home=tmp_path)
    assert ran.returncode == 0
    assert ran.stdout.startswith("stateDiagram-v2")
    assert "-->" in ran.stdout
