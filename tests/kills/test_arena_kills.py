"""`moot arena`, killed with SIGKILL while a real command runs in the sandbox, and gone on with: it ran once."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.arena_scenes import command, edit, script, vote
from tests.cli.process import moot
from tests.kills.survivors import entries, kill_when

RUN = "case"
WAITING, REFUSED, DONE = 5, 1, 0

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed"),
]


class Place:
    """A home, a workspace and a plan whose command leaves a mark and then takes for ever."""

    def __init__(self, folder: Path, *, effect: str = "at-most-once", undo: str = "true") -> None:
        self.folder, self.workspace = folder, folder / "work"
        self.workspace.mkdir()
        (self.workspace / "kept.txt").write_text("kept\n")
        slow = command("slow", "echo x >> marks; test -e go || sleep 3600", needs=["first"], effect=effect)
        first = edit("first", "kept.txt", "changed\n", reverse={"kind": "command", "command": undo})
        model = script(folder / "script.json", first, slow, critic=[vote(), {"diagnosis": ""}])
        self.begin = (
            "arena",
            "tidy up",
            "--workspace",
            str(self.workspace),
            "--model",
            model,
            "--run-id",
            RUN,
            "--json",
        )

    def marks(self) -> list[str]:
        """What the command left behind, one for each time that it ran."""
        file = self.workspace / "marks"
        return file.read_text().split() if file.exists() else []

    def kill(self) -> None:
        """Kill the command line when the command has begun."""
        kill_when(lambda: bool(self.marks()), self.begin, self.folder)


def test_a_command_that_was_under_way_is_not_run_again_and_a_person_who_says_it_failed_leads_back(
    tmp_path: Path,
) -> None:
    place = Place(tmp_path)
    place.kill()
    resumed = moot("resume", RUN, "--json", home=tmp_path)
    assert (resumed.returncode, json.loads(resumed.stdout)["status"]) == (WAITING, "waiting"), resumed.stderr
    assert place.marks() == ["x"]
    answered = moot("answer", RUN, "--json", '{"outcome": "failed"}', "--json", home=tmp_path)
    told = json.loads(answered.stdout)
    assert (answered.returncode, told["status"], told["rollback"]) == (
        REFUSED,
        "rolled_back",
        {"complete": True, "left": []},
    )
    assert [file.name for file in place.workspace.iterdir()] == ["kept.txt"]
    assert (place.workspace / "kept.txt").read_text() == "kept\n"


def test_a_command_that_may_be_repeated_is_and_the_run_goes_on(tmp_path: Path) -> None:
    place = Place(tmp_path, effect="idempotent")
    place.kill()
    (place.workspace / "go").touch()
    resumed = moot("resume", RUN, "--json", home=tmp_path)
    assert (resumed.returncode, json.loads(resumed.stdout)["status"]) == (DONE, "succeeded"), resumed.stderr
    assert place.marks() == ["x", "x"]
    begun = [entry["event"].get("task") for entry in entries(tmp_path, RUN)]
    assert [name for name in begun if name] == ["first", "slow"]


def test_a_rollback_that_was_cut_off_goes_on_and_undoes_nothing_twice(tmp_path: Path) -> None:
    place = Place(tmp_path, undo="echo u >> undone; test -e go || sleep 3600")
    place.kill()
    moot("resume", RUN, home=tmp_path)
    undone = place.workspace / "undone"
    kill_when(undone.exists, ("answer", RUN, "--json", '{"outcome": "failed"}'), tmp_path)
    assert undone.read_text() == "u\n"
    resumed = moot("resume", RUN, "--json", home=tmp_path)
    assert resumed.returncode == WAITING
    assert undone.read_text() == "u\n"
    answered = moot("answer", RUN, "--json", '{"outcome": "done"}', "--json", home=tmp_path)
    assert json.loads(answered.stdout)["rollback"] == {"complete": True, "left": []}
    assert [file.name for file in place.workspace.iterdir()] == ["kept.txt"]
    assert (place.workspace / "kept.txt").read_text() == "kept\n"


def test_who_cancels_a_run_whose_command_was_cut_off_gets_the_workspace_back(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.kill()
    cancelled = moot("cancel", RUN, "--reason", "enough", home=tmp_path)
    assert cancelled.returncode == DONE, cancelled.stderr
    told = json.loads(moot("resume", RUN, "--json", home=tmp_path).stdout)
    assert (told["status"], told["reason"]) == ("rolled_back", "cancelled: enough")
    assert told["states_visited"][-4:] == ["RollbackActive", "StoringMemory", "Auditing", "Audited"]
    assert place.marks() == []
    assert (place.workspace / "kept.txt").read_text() == "kept\n"
