"""`moot retry` does nothing again that was done behind an anchor, and finds a machine whose file has moved."""

import shutil
from pathlib import Path

import pytest

from tests.cli.ran import Moot

CODE = """
from dataclasses import dataclass, replace
from pathlib import Path
from moothall import *


@dataclass(frozen=True)
class Order:
    what: str = "tea"
    paid: str = ""


async def pay(what: str) -> str:
    with Path(LEDGER).open("a") as ledger:
        ledger.write(what + "\\n")
    return "paid"


async def clerk(prompt: str) -> str:
    return "fine"


def keep(order, event):
    if not Path(MENDED).exists():
        raise KeyError("paid")
    return replace(order, paid=str(event.value))


def check(order, event):
    if not Path(MENDED).exists():
        raise KeyError("checked")
    return order


SHOP = Machine(
    "shop",
    data=Order,
    states=[
        State("checking", enter=ask(clerk, "Is {what} fine?")),
        State("paying", enter=call(pay, "what")),
        Final("over"),
    ],
    moves=[On("checking", Replied, to="paying", do=check), On("paying", Returned, to="over", do=keep)],
)
"""


@pytest.fixture
def failed(moot: Moot, tmp_path: Path) -> Path:
    """A run that failed before it paid; `mended` is the file that mends it."""
    ledger, mended = tmp_path / "ledger", tmp_path / "mended"
    (tmp_path / "shop.py").write_text(f"LEDGER, MENDED = {str(ledger)!r}, {str(mended)!r}\n{CODE}")
    assert moot("run", "shop.py:SHOP", "tea", "--run-id", "mine").code == 1
    return tmp_path


def test_a_failed_run_that_is_behind_its_anchors_is_not_retried_before_a_person_looks(moot: Moot, failed: Path) -> None:
    shutil.copy(failed / "moothall.db", failed / "backup")
    (failed / "mended").touch()
    assert moot("retry", "mine").code == 0
    for file in failed.glob("moothall.db*"):
        file.unlink()
    shutil.copy(failed / "backup", failed / "moothall.db")
    ran = moot("retry", "mine")
    assert ran.code == 1
    assert "run mine is behind its anchors" in ran.err
    assert (failed / "ledger").read_text() == "tea\n"
    assert moot("audit", "--accept", "mine").code == 0
    assert moot("retry", "mine").code == 0
    assert (failed / "ledger").read_text() == "tea\ntea\n"


def test_a_retry_shows_its_result_where_the_machine_has_moved(moot: Moot, failed: Path) -> None:
    (failed / "mended").touch()
    shutil.move(failed / "shop.py", failed / "moved.py")
    assert moot("retry", "mine").code == 4
    ran = moot("retry", "mine", "--machine", "moved.py:SHOP", "--json")
    assert (ran.code, ran.json["status"]) == (0, "done"), ran.err
