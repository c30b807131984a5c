"""Data are the same live and after a reload: every example does the same with a reload after every step."""

from __future__ import annotations

import runpy
import secrets
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.cli.process import EXAMPLES, moot
from tests.kills.survivors import entries, kill_when
from tests.replaying import noted, reloading

TYPED = EXAMPLES.parents[1] / "shared" / "repairs" / "typed_value.py"
SCRIPTS = ("writer_critic.py", "approval.py", "research.py", "newsroom.py", "shop.py", "haiku.py")


def journals(name: str, folder: Path, *, reload: bool) -> list[list[Any]]:
    """The journals of the runs of an example."""
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch, noted() as notes, reloading() if reload else nullcontext():
        patch.chdir(folder)
        patch.setattr(secrets, "token_hex", lambda size: "07" * size)  # the rehearsal plays by the id of the run
        patch.setenv("MOOTHALL_HOME", str(folder))
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return notes.journals()


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_example_does_the_same_with_a_reload_after_every_step(tmp_path: Path, name: str) -> None:
    live = journals(name, tmp_path / "live", reload=False)
    assert live
    assert journals(name, tmp_path / "reloaded", reload=True) == live


@pytest.fixture(scope="module")
def typed() -> str:
    if not TYPED.exists():
        pytest.skip("the shared reproductions are not beside the project")
    return str(TYPED)


@pytest.mark.slow
def test_a_tool_that_returns_a_dataclass_gives_the_same_live_and_after_a_kill(tmp_path: Path, typed: str) -> None:
    live = moot("run", typed, "7", "--run-id", "live", home=tmp_path)
    assert (live.returncode, live.stdout) == (0, "140.0\n")
    kill_when(lambda: len(entries(tmp_path, "killed")) == 2, ("run", typed, "7", "--run-id", "killed"), tmp_path)
    resumed = moot("resume", "killed", home=tmp_path)
    assert (resumed.returncode, resumed.stdout) == (0, "140.0\n")
    assert moot("replay", "live", "--machine", typed, home=tmp_path).returncode == 0
