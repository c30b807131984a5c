"""The minute with the studio that the demonstration plays."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.process import EXAMPLES, environment


@pytest.mark.covers("T68", "T69")
def test_the_demonstration_plays_the_hand_off_test_and_writes_it_down(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, str(EXAMPLES / "demo_team.py")],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    changes = [line for line in ran.stdout.splitlines() if line.startswith("Current State")]
    assert changes[:5] == [
        "Current State: [RespondToUser_State] → Pending: CreativePartner_State",
        "Current State: [CreativePartner_State] → Pending: GameDesigner_State",
        "Current State: [GameDesigner_State] → Pending: CreativePartner_State",
        "Current State: [CreativePartner_State] → Pending: GameDesigner_State",
        "Current State: [GameDesigner_State] → Pending: CEO_State",
    ]
    assert "**CFO**: Four weeks of two people fit the budget." in (tmp_path / "demo-output" / "team.md").read_text()
