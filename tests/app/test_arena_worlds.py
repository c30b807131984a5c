"""The benchmark of the arena's ratings: what it says of a world, and that the whole machine plays the same games."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "elo.py"


def world(games: int) -> dict[str, Any]:
    """A small world of five roles with three candidates each, one of whom always vetoes."""

    def candidate(role: str, number: int) -> dict[str, Any]:
        habit = "always-veto" if (role, number) == ("security", 0) else "honest"
        skill = {"code": number - 0.5, "data": 1.5 - number}
        return {"name": f"{role}-{number}", "skill": skill, "habit": habit, "from_game": 0}

    roles = ("analyst", "solution", "critic", "security", "optimizer")
    return {
        "id": "small",
        "regime": "kinds",
        "games": games,
        "checkpoints": [games],
        "outcome_noise": 0.2,
        "review": 0.5,
        "review_noise": 0.05,
        "kinds": {"code": 0.7, "data": 0.3},
        "difficulty": {"mean": -0.3, "sd": 0.5},
        "confidence_concentration": 10,
        "roles": {role: [candidate(role, number) for number in range(3)] for role in roles},
    }


@pytest.mark.slow
@pytest.mark.covers("A13", "A14")
def test_the_machine_decides_and_rates_as_the_benchmark_does(tmp_path: Path) -> None:
    file = tmp_path / "world.json"
    file.write_text(json.dumps([world(60)]))
    ran = subprocess.run(
        [sys.executable, str(BENCHMARK), str(file), "--seeds", "2", "--json"],
        env={**os.environ, "MOOTHALL_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    told = json.loads(ran.stdout)
    [small] = told["worlds"]
    assert small["machine_equal"] is True
    assert (small["consensus"]["gain"]["n"], set(small["rho_kind"]["critic"])) == (2, {"code", "data"})
    assert [row["habit"] for row in small["special"]] == ["always-veto"]
