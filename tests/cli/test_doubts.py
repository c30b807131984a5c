"""A call that was lost half-way: what `moot` asks a person about it, and what the answers do."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.process import moot as moot_process
from tests.cli.ran import Moot

BANK = """
import os, signal
from dataclasses import dataclass, replace
from pathlib import Path
from moothall import Final, GaveUp, Machine, On, Returned, State, call, tool

@dataclass(frozen=True)
class Order:
    to: str
    receipt: str = ""

def noted(key: str) -> int:
    with Path("paid.log").open("a") as log:
        log.write(key + "\\n")
    return len(Path("paid.log").read_text().splitlines())

async def pay(to: str, key: str) -> str:
    if noted(key) == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return f"receipt for {to}"

async def look(to: str, key: str) -> str:
    return f"the bank knows {key}"

def keep(order, returned):
    return replace(order, receipt=returned.value)

def keep_reason(order, gave_up):
    return replace(order, receipt=gave_up.reason)

def paying(name, wanted):
    return Machine(name, data=Order, result=lambda order: order.receipt,
        states=[State("paying", enter=call(wanted, "to")), Final("paid"), Final("unpaid")],
        moves=[On("paying", Returned, to="paid", do=keep), On("paying", GaveUp, to="unpaid", do=keep_reason)])

ONCE = paying("once", tool(pay, repeats="at-most-once"))
CHECKED = paying("checked", tool(pay, repeats="check-first", check=look))
OFTEN = paying("often", tool(pay))
"""


@pytest.fixture
def bank(moot: Moot, tmp_path: Path) -> Moot:
    """A folder with machines that pay; whoever pays first is killed in the middle of it."""
    (tmp_path / "bank.py").write_text(BANK)
    return moot


def killed(tmp_path: Path, machine: str) -> None:
    """A process that was killed while it paid."""
    ran = moot_process("run", f"bank.py:{machine}", "Ada", "--run-id", "mine", home=tmp_path / "home", cwd=tmp_path)
    assert ran.returncode < 0
    assert (tmp_path / "paid.log").read_text().splitlines() == ["mine.0.0"]


def paid(tmp_path: Path) -> int:
    return len((tmp_path / "paid.log").read_text().splitlines())


@pytest.fixture
def made_home(home: Path) -> None:
    """A process that is started finds its home."""
    home.mkdir(exist_ok=True)


@pytest.fixture
def doubtful(bank: Moot, made_home: None, tmp_path: Path) -> Moot:
    """A run `mine` that was killed while it paid what may be paid once."""
    killed(tmp_path, "ONCE")
    return bank


@pytest.mark.parametrize(
    ("said", "states", "result", "calls"),
    [
        ({"outcome": "done", "value": "receipt 7"}, ["paid"], "receipt 7", 1),
        ({"outcome": "failed", "reason": "no money left the account"}, ["unpaid"], "no money left the account", 1),
        ({"outcome": "again"}, ["paid"], "receipt for Ada", 2),
    ],
    ids=["done", "failed", "again"],
)
def test_after_a_kill_a_person_says_what_became_of_a_payment(
    doubtful: Moot, tmp_path: Path, said: Any, states: list[str], result: str, calls: int
) -> None:
    ran = doubtful("resume", "mine")
    assert (ran.code, ran.out) == (5, "")
    assert "pay had begun when its worker was lost; whether it was done is unknown. What became of it?" in ran.err
    assert "moot answer mine --json FILE (or - for stdin, or the JSON itself)" in ran.err
    assert paid(tmp_path) == 1
    ran = doubtful("answer", "mine", "--json", json.dumps(said), "--json")
    assert ran.code == 0
    assert (ran.json["states"], ran.json["result"]) == (states, result)
    assert (tmp_path / "paid.log").read_text().splitlines() == ["mine.0.0"] * calls


@pytest.mark.parametrize(
    "said", ['{"outcome": "perhaps"}', '{"value": 3}', "[]", '{"outcome": "done", "worth": 3}', "true"]
)
def test_a_finding_that_is_none_is_refused_and_nothing_is_paid(doubtful: Moot, tmp_path: Path, said: str) -> None:
    doubtful("resume", "mine")
    ran = doubtful("answer", "mine", "--json", said)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("moot answer: the answer")
    assert doubtful("resume", "mine").code == 5
    assert paid(tmp_path) == 1


def test_however_often_it_is_resumed_nothing_is_paid_without_an_answer(doubtful: Moot, tmp_path: Path) -> None:
    assert [doubtful("resume", "mine").code for _ in range(3)] == [5, 5, 5]
    assert paid(tmp_path) == 1


def test_a_payment_that_can_be_looked_up_is_looked_up_and_nobody_is_asked(
    bank: Moot, made_home: None, tmp_path: Path
) -> None:
    killed(tmp_path, "CHECKED")
    ran = bank("resume", "mine", "--json")
    assert (ran.code, ran.json["result"]) == (0, "the bank knows mine.0.0")
    assert paid(tmp_path) == 1


def test_a_payment_that_may_be_repeated_is_with_the_same_key(bank: Moot, made_home: None, tmp_path: Path) -> None:
    killed(tmp_path, "OFTEN")
    ran = bank("resume", "mine", "--json")
    assert (ran.code, ran.json["result"]) == (0, "receipt for Ada")
    assert (tmp_path / "paid.log").read_text().splitlines() == ["mine.0.0"] * 2


def test_moot_show_has_the_question_about_a_call_in_doubt(doubtful: Moot) -> None:
    doubtful("resume", "mine")
    summary = doubtful("show", "mine", "--json").json["summary"]
    assert summary["status"] == "waiting"
    assert [one["id"] for one in summary["questions"]] == ["0.0"]


def test_a_budget_of_steps_can_be_given_at_the_command_line(moot: Moot) -> None:
    ran = moot("run", "machines.py:ENDLESS", "Ada", "--budget", "transitions=4", "--json")
    assert ran.json["status"] == "limited"
