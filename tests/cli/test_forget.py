"""`moot forget`, `import` and what other commands say of a run whose texts are gone."""

from pathlib import Path

import pytest

from tests.cli.process import EXAMPLES, moot


@pytest.mark.slow
def test_commands_look_at_a_forgotten_run_and_say_so(tmp_path: Path) -> None:
    moot("debate", "tea or coffee", "--model", "rehearsal", "--run-id", "talk", "--quiet", home=tmp_path)
    planned = moot("forget", "talk", home=tmp_path)
    assert "would be forgotten; say --yes" in planned.stderr
    assert "tea or coffee" in moot("export", "talk", home=tmp_path).stdout
    assert moot("forget", "talk", "--yes", "--as", "olga", home=tmp_path).returncode == 0
    assert "tea or coffee" not in moot("export", "talk", home=tmp_path).stdout
    assert "by olga" in moot("audit", "talk", home=tmp_path).stdout
    assert "[forgotten]" in moot("show", "talk", home=tmp_path).stdout
    replayed = moot("replay", "talk", home=tmp_path)
    assert (replayed.returncode, "cannot be decided again from entry 0 on" in replayed.stdout) == (6, True)
    for command in ("metrics", "costs"):
        assert moot(command, "talk", home=tmp_path).returncode == 0


def test_a_run_or_a_person_has_to_be_named(tmp_path: Path) -> None:
    moot("run", str(EXAMPLES / "writer_critic.py"), "tides", "--run-id", "tides", "--quiet", home=tmp_path)
    for arguments in ((), ("tides", "--person", "ada")):
        refused = moot("forget", *arguments, home=tmp_path)
        assert refused.returncode == 2
        assert "name one of both: a run, or a person with --person NAME" in refused.stderr
