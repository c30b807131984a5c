"""`moot team`: a person talks with a team, at a terminal, from a script, and after a crash."""

from pathlib import Path

import pytest

from tests.cli.ran import Moot
from tests.team_scripts import HAND_OFF, typed, written


@pytest.mark.covers("T66", "T68", "T69", "T53", "T20")
def test_the_hand_off_test_of_the_document_is_told_line_by_line(moot: Moot, tmp_path: Path) -> None:
    script, model = typed(tmp_path, "A game about tides", "!exit"), written(tmp_path, HAND_OFF)
    ran = moot("team", "--script", script, "--plain", "--model", model)
    assert ran.code == 0
    changes = [line for line in ran.out.splitlines() if line.startswith("Current State")]
    assert changes == [
        "Current State: [RespondToUser_State] → Pending: CreativePartner_State",
        "Current State: [CreativePartner_State] → Pending: GameDesigner_State",
        "Current State: [GameDesigner_State] → Pending: CreativePartner_State",
        "Current State: [CreativePartner_State] → Pending: GameDesigner_State",
        "Current State: [GameDesigner_State] → Pending: CEO_State",
        "Current State: [CEO_State] → Pending: RespondToUser_State",
    ]


@pytest.mark.covers("T49", "T60")
def test_programs_get_the_transitions_with_their_layers_and_what_was_approved(moot: Moot, tmp_path: Path) -> None:
    script, model = typed(tmp_path, "A game about tides"), written(tmp_path, HAND_OFF)
    ran = moot("team", "--script", script, "--json", "--model", model)
    assert ran.code == 5
    told = ran.json
    assert set(told) >= {"run_id", "status", "states_visited", "transitions", "approvals", "rework", "facts", "usage"}
    assert told["status"] == "waiting"
    assert told["states_visited"][:-1] == [
        "creative_partner",
        "game_designer",
        "creative_partner",
        "game_designer",
        "ceo",
    ]
    ways = [(move["from"], move["to"], move["by"], move["layer"]) for move in told["transitions"]]
    assert ways[0] == ("RespondToUser", "creative_partner", "user", "user")
    assert ways[4] == ("game_designer", "ceo", "game_designer", "arbitration")
    assert [(known["by"], known["author"]) for known in told["approvals"]] == [("game_designer", "creative_partner")]
    assert told["rework"] == 1
    assert told["usage"]["calls"] == 5
