"""A store that is behind its anchors performs nothing until a person has looked; what is gone is named."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from moothall.stores.anchors import BEGINNING, Tip
from moothall.stores.audit import behind
from tests.cli.ran import Moot

pytestmark = [pytest.mark.slow, pytest.mark.unreplayed]  # a run that was put back goes on in another way
Paid = Callable[[], int]
PAGE, HEADER, FRAME = 4096, 32, 24
"""The sizes of a page, of the header of a write-ahead log, and of the header of each page in it."""


@pytest.fixture
def paid(moot: Moot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paid:
    """How many payments were made."""
    ledger = tmp_path / "ledger"
    monkeypatch.setenv("LEDGER", str(ledger))
    shutil.copy(Path(__file__).with_name("shop.py"), tmp_path)
    return lambda: len(ledger.read_text().splitlines()) if ledger.exists() else 0


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("moothall.db*"))


def delete(folder: Path) -> None:
    for file in files(folder):
        file.unlink()


def test_a_store_that_was_deleted_is_noticed_and_its_runs_are_named(moot: Moot, paid: Paid, tmp_path: Path) -> None:
    assert moot("run", "shop.py:AT_ONCE", "tea", "--run-id", "mine").code == 0
    assert moot("audit").code == 0
    delete(tmp_path)
    audited = moot("audit")
    assert audited.code == 1
    assert "mine: broken: it is gone, although the anchors know it" in audited.out
    assert moot("audit", "mine").code == 1
    delete(tmp_path)
    looked = moot("doctor")
    assert "mine (it is gone" in looked.out
    assert looked.code != 0
    again = moot("run", "shop.py:AT_ONCE", "tea", "--run-id", "mine")
    assert again.code == 1
    assert "it is gone, although the anchors know entry" in again.err
    assert paid() == 1


def test_a_person_may_accept_that_a_run_is_gone(moot: Moot, paid: Paid, tmp_path: Path) -> None:
    moot("run", "shop.py:AT_ONCE", "tea", "--run-id", "mine")
    delete(tmp_path)
    assert moot("audit", "--accept", "mine").code == 0
    assert moot("audit").code == 0
    assert moot("run", "shop.py:AT_ONCE", "tea", "--run-id", "mine").code == 0
    assert moot("audit", "mine").code == 0


def test_a_store_that_was_moved_is_not_missed_where_it_was(moot: Moot, paid: Paid, tmp_path: Path) -> None:
    moot("run", "shop.py:AT_ONCE", "tea", "--run-id", "mine")
    shutil.move(tmp_path / "moothall.db", tmp_path / "kept.db")
    assert moot("audit", "--store", "sqlite:kept.db").code == 0
    assert moot("run", "shop.py:SHOP", "tea", "--run-id", "other", "--store", "sqlite:kept.db").code == 5
    assert moot("audit").code == 0


@pytest.fixture
def restored(moot: Moot, paid: Paid, tmp_path: Path) -> None:
    """A run that paid, in a store that was brought back from before it did."""
    assert moot("run", "shop.py:SHOP", "tea", "--run-id", "mine").code == 5
    shutil.copy(tmp_path / "moothall.db", tmp_path / "backup")
    assert moot("answer", "mine", "--yes").code == 0
    assert paid() == 1
    delete(tmp_path)
    shutil.move(tmp_path / "backup", tmp_path / "moothall.db")


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize(
    "command", [("answer", "mine", "--yes"), ("resume", "mine"), ("cancel", "mine"), ("worker", "--until-idle")]
)
def test_a_store_that_was_brought_back_from_a_backup_performs_nothing(
    moot: Moot, paid: Paid, command: tuple[str, ...]
) -> None:
    ran = moot(*command)
    assert "it ends with entry 0, although the anchors know entry" in ran.err
    assert "moot audit mine" in ran.err
    assert moot("show", "mine", "--json").json["summary"]["status"].startswith("set aside")
    assert moot("answer", "mine", "--yes").code == 1
    assert paid() == 1


@pytest.mark.usefixtures("restored")
def test_the_doctor_names_a_run_that_is_behind(moot: Moot) -> None:
    looked = moot("doctor")
    assert "mine (it ends with entry 0, although the anchors know entry" in looked.out
    assert looked.code != 0


@pytest.mark.usefixtures("restored")
def test_a_run_that_a_person_has_accepted_goes_on(moot: Moot, paid: Paid) -> None:
    assert moot("resume", "mine").code == 1
    assert moot("audit", "mine", "--accept").code == 0
    assert "a person has accepted it as it is, at entry 0" in moot("audit", "mine").out
    assert moot("resume", "mine").code == 5
    assert moot("answer", "mine", "--yes").code == 0
    assert paid() == 2
    assert moot("audit", "mine").code == 0


@pytest.mark.parametrize(
    ("tip", "latest", "seal", "word"),
    [
        (None, 3, b"a", ""),
        ((BEGINNING, b""), -1, None, ""),
        ((3, b"a"), 3, b"a", ""),
        ((3, b""), 5, None, ""),
        ((3, b"a"), 5, b"b", "entry 3, or one before it, is not the one"),
        ((3, b"a"), 2, None, "it ends with entry 2, although the anchors know entry 3"),
        ((3, b"a"), -1, None, "it is gone, although the anchors know entry 3"),
    ],
)
def test_a_run_is_behind_where_it_is_shorter_gone_or_another_than_the_anchors_know(
    tip: Tip | None, latest: int, seal: bytes | None, word: str
) -> None:
    assert behind(tip, latest, seal).startswith(word)
    assert bool(behind(tip, latest, seal)) == bool(word)


def killed(folder: Path, machine: str) -> None:
    """A run in another process, which dies the moment it has paid."""
    command = [sys.executable, "-m", "moothall", "run", machine, "tea", "--run-id", "mine"]
    ended = subprocess.run(command, cwd=folder, env={**os.environ, "DIES": "1"}, capture_output=True, check=False)
    assert ended.returncode == 9, ended.stderr


@pytest.mark.parametrize("machine", ["shop.py:AT_ONCE", "shop.py:PARENT"])
def test_a_flipped_bit_anywhere_in_the_log_never_makes_a_payment_twice(
    moot: Moot, paid: Paid, tmp_path: Path, machine: str
) -> None:
    assert moot("ls").code == 0  # so that the tables are there
    killed(tmp_path, machine)
    kept = {file: file.read_bytes() for file in files(tmp_path)}
    log = tmp_path / "moothall.db-wal"
    pages = (len(kept[log]) - HEADER) // (FRAME + PAGE)
    anchors = {file: file.read_bytes() for file in (tmp_path / "anchors").iterdir()}
    told = 0
    for page in range(pages):
        delete(tmp_path)
        for file, body in (kept | anchors).items():
            file.write_bytes(body)
        damaged = bytearray(kept[log])
        damaged[HEADER + page * (FRAME + PAGE) + FRAME + 100] ^= 1
        log.write_bytes(damaged)
        (tmp_path / "moothall.db-shm").unlink(missing_ok=True)
        ran = moot("resume", "mine")
        ran_by_worker = moot("worker", "--until-idle")
        told += "the anchors know entry" in ran.err + ran_by_worker.err
        assert paid() == 1, (page, ran.err)
    assert told
