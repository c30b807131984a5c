"""What shells complete behind `moot`."""

import subprocess
from pathlib import Path

import pytest

from moothall.cli.main import COMMANDS
from tests.cli.ran import Moot


def completed(script: Path, *words: str) -> list[str]:
    """What bash offers for the last of these words."""
    asked = f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _moot; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    command = ["bash", "--norc", "-c", f"source {script}; {asked}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def test_bash_completes_commands_and_their_options(moot: Moot, tmp_path: Path) -> None:
    script = tmp_path / "moot.bash"
    script.write_text(moot("completion", "bash").out)
    assert completed(script, "moot", "re") == [name for name in COMMANDS if name.startswith("re")]
    assert completed(script, "moot", "ls", "--und") == ["--undriven"]
    (tmp_path / "letters.json").touch()
    assert completed(script, "moot", "check", f"{tmp_path}/let") == [f"{tmp_path}/letters.json"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_know_every_command(moot: Moot, shell: str) -> None:
    ran = moot("completion", shell)
    assert ran.code == 0
    assert all(name in ran.out for name in COMMANDS)
    assert "undriven" in ran.out


def test_a_shell_that_is_not_known_is_refused(moot: Moot) -> None:
    assert moot("completion", "csh").code == 2
