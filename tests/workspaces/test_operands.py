"""What a call names in its arguments: whatever it would read by name cannot change unseen, and nothing else matters."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from moothall.agents.approval import call_digest
from moothall.workspaces.operands import MOST, Operands

pytestmark = pytest.mark.anyio

COMMAND = "execute_terminal"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    for name in ("x.sh", "sub/y.sh", "my file.sh", "a=b:c,d.sh", "q'uote.sh", "other.txt", ".git/index"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("echo hi\n")
    (folder / "outer.sh").write_text('. "$(dirname "$0")/middle"\n')
    (folder / "middle").write_text("sh sub/inner.sh\n")
    (folder / "sub" / "inner.sh").write_text("echo inner\n")
    (folder / "near.sh").symlink_to("x.sh")
    (folder / "far.sh").symlink_to(folder / "x.sh")
    (folder / "below").symlink_to(folder / "sub")
    return folder


async def is_bound(root: Path, command: str, change: Callable[[], object], *, confined: bool = True) -> bool:
    """Whether a change makes another call of a command."""
    look, arguments = Operands(root, confined=confined), {"command": command}
    before = call_digest(COMMAND, arguments, await look(COMMAND, arguments))
    change()
    return before != call_digest(COMMAND, arguments, await look(COMMAND, arguments))


@pytest.mark.parametrize(
    ("command", "changed"),
    [
        ("sh x.sh", "x.sh"),
        ("cat x.sh|sh", "x.sh"),
        ("sh <x.sh >log", "x.sh"),
        ("sh {root}/x.sh", "x.sh"),
        ("sh $PWD/x.sh", "x.sh"),
        ('sh "$(pwd)/x.sh"', "x.sh"),
        ("f=x; sh $f.sh", "x.sh"),
        ("bash -c 'sh {{x,y}}.sh'", "x.sh"),
        ("""sh x".s"'h'""", "x.sh"),
        ("sh x\\.sh", "x.sh"),
        ("sh [^a].sh", "x.sh"),
        ("sh near.sh", "x.sh"),
        ("sh far.sh", "x.sh"),
        ("sh below/y.sh", "sub/y.sh"),
        ("cd sub && sh y.sh", "sub/y.sh"),
        ("cd sub; sh ../x.sh", "x.sh"),
        ("cd su*; sh y.sh", "sub/y.sh"),
        ("run-parts sub", "sub/y.sh"),
        ("sh 'my file.sh'", "my file.sh"),
        ("sh my\\ file.sh", "my file.sh"),
        ("""sh -c "sh 'my file.sh'" """, "my file.sh"),
        ("sh a=b:c,d.sh", "a=b:c,d.sh"),
        ("""sh "q'uote.sh" """, "q'uote.sh"),
        ("sh outer.sh", "middle"),
        ("sh outer.sh", "sub/inner.sh"),
        (": " + " ".join(f"w{number}" for number in range(MOST)) + "; sh x.sh", "x.sh"),
    ],
)
async def test_what_a_command_names_cannot_change_unseen(root: Path, command: str, changed: str) -> None:
    file = root / changed
    assert await is_bound(root, command.format(root=root), lambda: file.write_text("echo evil\n"))


@pytest.mark.parametrize("command", ["sh x.sh", "sh outer.sh", "cd sub && sh y.sh", "sh *.sh", "echo 'a b'"])
async def test_another_file_does_not_matter(root: Path, command: str) -> None:
    assert not await is_bound(root, command, lambda: (root / "other.txt").write_text("more\n"))


async def test_the_users_repository_does_not_matter_where_the_whole_workspace_does(root: Path) -> None:
    assert not await is_bound(root, "ls $PWD", lambda: (root / ".git" / "index").write_text("more\n"))


@pytest.mark.parametrize("command", ["sh x.sh", "sh new.sh", "cd sub && sh new.sh", "sh near.sh"])
async def test_what_comes_goes_or_leads_elsewhere_matters_too(root: Path, command: str) -> None:
    def change() -> None:
        (root / "x.sh").unlink()
        (root / "new.sh").write_text("echo evil\n")
        (root / "sub" / "new.sh").write_text("echo evil\n")

    assert await is_bound(root, command, change)


async def test_files_outside_matter_to_a_command_that_is_not_confined(root: Path) -> None:
    outside = root.parent / "outside.sh"
    for command in (f"sh {outside}", "sh ../outside.sh"):
        for confined in (False, True):
            outside.write_text("echo hi\n")
            seen = await is_bound(root, command, lambda: outside.write_text("echo evil\n"), confined=confined)
            assert seen is not confined


async def test_a_tool_for_files_names_its_path_and_nothing_in_what_it_writes(root: Path) -> None:
    arguments = {"path": "x.sh", "content": "sh sub/y.sh $HOME"}
    assert list(await Operands(root)("write_file", arguments)) == ["x.sh"]


async def test_a_pipe_and_a_link_in_a_circle_hold_nobody_up(root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "circle").symlink_to("circle")
    assert list(await Operands(root)(COMMAND, {"command": "cat pipe circle"})) == []
    assert list(await Operands(root)(COMMAND, {"command": "cat ."})) == ["."]
