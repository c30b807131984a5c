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
