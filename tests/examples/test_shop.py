"""The shop's process dies in the middle of each of its tools: what may be repeated is, and nobody pays twice."""

import json
from pathlib import Path

import pytest

from tests.cli.process import EXAMPLES, moot

SHOP = str(EXAMPLES / "shop.py")
DONE, WAITING, DEAD = 0, 5, 9


def world(folder: Path) -> list[str]:
    """What the world outside has seen, deed by deed."""
    return [line.split()[0] for line in (folder / "world.txt").read_text().splitlines()]


def answered(folder: Path, finding: dict[str, str]) -> int:
    """Tell the shop what became of the payment; how the command ends."""
    return moot("answer", "order", "--json", json.dumps(finding), home=folder).returncode


@pytest.fixture
def doubt(tmp_path: Path) -> Path:
    """A shop that waits for somebody to find out what became of its payment."""
    codes = [moot("run", SHOP, "a cursed lamp", "--run-id", "order", home=tmp_path).returncode]
    codes += [moot("resume", "order", home=tmp_path).returncode for _ in range(2)]
    assert codes == [DEAD, DEAD, WAITING]
    return tmp_path


def test_the_example_has_fewer_than_sixty_lines() -> None:
    assert len(Path(SHOP).read_text().splitlines()) < 60


def test_an_order_that_nothing_happens_to_is_reserved_paid_and_sent_once(tmp_path: Path) -> None:
    ran = moot("run", SHOP, "a lamp", home=tmp_path)
    assert (ran.returncode, ran.stdout) == (DONE, "a lamp: paid\n")
    assert world(tmp_path) == ["reserved", "paid", "sent"]


def test_what_was_lost_is_reserved_again_with_the_same_key_and_not_paid_again(doubt: Path) -> None:
    assert (doubt / "world.txt").read_text().splitlines() == [
        "reserved order.0.0",
        "reserved order.0.0",
        "paid order.1.0",
    ]


def test_a_payment_in_doubt_is_a_question_and_the_run_waits(doubt: Path) -> None:
    summary = json.loads(moot("show", "order", "--json", home=doubt).stdout)["summary"]
    [asked] = summary["questions"]
    assert summary["status"] == "waiting"
    assert asked["prompt"].startswith("pay had begun when its worker was lost; whether it was done is unknown")
    assert asked["schema"]["properties"]["outcome"]["enum"] == ["done", "failed", "again"]


@pytest.mark.slow
def test_who_says_that_it_was_paid_gives_the_receipt_and_what_was_sent_is_not_sent_again(doubt: Path) -> None:
    assert answered(doubt, {"outcome": "done", "value": "receipt 4711"}) == DEAD
    ran = moot("resume", "order", home=doubt)
    assert (ran.returncode, ran.stdout) == (DONE, "receipt 4711\n")
    assert world(doubt) == ["reserved", "reserved", "paid", "sent"]


def test_who_says_that_it_failed_takes_the_row_for_that(doubt: Path) -> None:
    assert answered(doubt, {"outcome": "failed", "reason": "the card has expired"}) == DONE
    last = json.loads(moot("show", "order", "--json", home=doubt).stdout)["entries"][-1]
    assert (last["to"], last["event"]["reason"]) == (["unpaid"], "the card has expired")
    assert world(doubt) == ["reserved", "reserved", "paid"]


def test_who_says_again_has_it_paid_again_with_the_same_key(doubt: Path) -> None:
    assert answered(doubt, {"outcome": "again"}) == DEAD  # the second payment goes well, and the parcel kills it
    keys = [line.split()[1] for line in (doubt / "world.txt").read_text().splitlines() if line.startswith("paid")]
    assert keys == ["order.1.0", "order.1.0"]
    assert moot("resume", "order", home=doubt).returncode == DONE


def test_an_answer_that_is_none_leaves_the_question_open(doubt: Path) -> None:
    ran = moot("answer", "order", "--yes", home=doubt)
    assert (ran.returncode, world(doubt)) == (1, ["reserved", "reserved", "paid"])
    assert answered(doubt, {"outcome": "perhaps"}) == 1
    assert moot("resume", "order", home=doubt).returncode == WAITING
