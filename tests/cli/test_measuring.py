"""`moot metrics`, `costs` and `report`."""

import json
import sqlite3
from pathlib import Path

import pytest

from tests.cli.ran import Moot

PRICED = """
from dataclasses import dataclass
from moothall import Answered, Final, Machine, On, Replied, Reply, State, ask, question

async def clerk(prompt: str) -> Reply:
    return Reply("Dear Ada", usage={"tokens": 12, "usd": 0.25})

async def friend(prompt: str) -> Reply:
    return Reply("Hello")

OFFER = Machine("offer",
    states=[State("writing", enter=ask(clerk, "Write")), State("adding", enter=ask(friend, "Add")),
            State("approving", enter=question("Send it?")), Final("sent")],
    moves=[On("writing", Replied, to="adding"), On("adding", Replied, to="approving"),
           On("approving", Answered, to="sent")])
"""


@pytest.fixture
def offer(moot: Moot) -> Moot:
    """A run that waits for a person."""
    Path("offers.py").write_text(PRICED)
    assert moot("run", "offers.py:OFFER", "--run-id", "offer").code == 5
    return moot


def test_metrics_of_a_run_are_a_table_with_what_stands_out(offer: Moot) -> None:
    ran = offer("metrics", "offer")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0].startswith("offer  waiting  3 entries in ")
    assert "\x1b" not in ran.out
    head = lines[2].split()
    assert head == ["state", "visits", "total", "average", "shortest", "longest", "waited", "calls", "tokens", "usd"]
    assert (lines[3].split()[0], lines[3].split()[-3:]) == ("writing", ["1", "12", "0.25"])
    assert (lines[4].split()[0], lines[4].split()[-3:]) == ("adding", ["1", "unknown", "unknown"])
    assert lines[5].startswith("approving (open) ")
    assert "most tokens: writing (12)" in lines
    widths = {len(line) for line in lines[2:5]}
    assert len(widths) == 1, "the columns stand below each other"


def test_metrics_as_json_have_every_state(offer: Moot) -> None:
    found = offer("metrics", "offer", "--json").json
    assert [one["state"] for one in found["states"]] == ["writing", "adding", "approving"]
    assert [one["open"] for one in found["states"]] == [False, False, True]
    assert [one["usd"] for one in found["states"]] == [0.25, None, 0]
    assert found["transitions"][0] == {"from": "writing", "to": "adding", "times": 1}
    assert (found["hungriest"], found["commonest"]) == ("writing", ["writing", "adding"])


def test_metrics_of_all_runs_stand_machine_by_machine(offer: Moot) -> None:
    offer("run", "offers.py:OFFER", "--run-id", "second")
    offer("run", "machines.py:LETTER", "Ada", "--run-id", "third")
    lines = offer("metrics").out.splitlines()
    assert [line for line in lines if line.endswith(("run", "runs"))] == ["letter  1 run", "offer  2 runs"]
    machines = offer("metrics", "--json").json["machines"]
    assert {one["machine"]: one["runs"] for one in machines} == {"letter": 1, "offer": 2}
    assert [one["visits"] for one in machines[1]["states"]] == [2, 2, 2]


def test_costs_say_what_is_unknown(offer: Moot) -> None:
    lines = offer("costs", "offer").out.splitlines()
    assert lines[0] == "offer  usd ≥ 0.25, tokens ≥ 12, calls 2"
    assert lines[1] == "Without a price: 1 of 2 calls. Without their tokens: 1."
    assert "own functions      2    ≥ 12  ≥ 0.25" in lines
    assert "friend      1  unknown  unknown" in lines


def test_costs_as_json_leave_the_unknown_empty(offer: Moot) -> None:
    found = offer("costs", "offer", "--json").json
    assert found["by_agent"]["friend"] == {"calls": 1, "tokens": None, "usd": None, "unpriced": 1, "uncounted": 1}
    assert found["total"] == {"calls": 2, "tokens": 12, "usd": 0.25, "unpriced": 1, "uncounted": 1}


def test_costs_of_all_runs_are_one_sum(offer: Moot) -> None:
    offer("run", "offers.py:OFFER", "--run-id", "second")
    lines = offer("costs").out.splitlines()
    assert lines[0] == "all runs  usd ≥ 0.50, tokens ≥ 24, calls 4"
    assert any(line.startswith("offer.writing ") for line in lines)


def test_a_fork_pays_for_what_it_does_itself(offer: Moot) -> None:
    forked = offer("fork", "offer", "--at", "1", "--run-id", "other", "--repeat")
    assert forked.code == 5, forked.err
    assert offer("costs", "other").out.splitlines()[0] == "other  usd unknown, tokens unknown, calls 1"
    assert offer("costs").out.splitlines()[0] == "all runs  usd ≥ 0.25, tokens ≥ 12, calls 3"
    states = offer("metrics", "other", "--json").json["states"]
    assert [one["state"] for one in states] == ["adding", "approving"]
    offer("report", "other", "-o", "other.csv")
    assert len(Path("other.csv").read_text().splitlines()) == 1 + 4


def test_an_empty_store_has_no_figures(moot: Moot) -> None:
    assert moot("metrics").out == "no runs yet\n"
    assert moot("costs", "--json").json["total"]["calls"] == 0


@pytest.mark.parametrize("command", ["metrics", "costs", "report"])
def test_a_run_that_is_not_there_is_refused_in_a_sentence(moot: Moot, command: str) -> None:
    ran = moot(command, "nobody")
    assert ran.code == 1
    assert ran.err.startswith(f"moot {command}: there is no run 'nobody'")


def damage(run: str) -> None:
    db = sqlite3.connect("home/moothall.db")
    db.execute("UPDATE entries SET body = x'7b7d' WHERE run = (SELECT number FROM runs WHERE run = ?)", (run,))
    db.commit()
    db.close()


@pytest.mark.parametrize("command", ["metrics", "costs", "report"])
def test_a_damaged_run_is_an_error_that_names_the_entry(offer: Moot, command: str) -> None:
    damage("offer")
    ran = offer(command, "offer")
    assert ran.code == 1
    assert ran.err == f"moot {command}: run offer: entry 0 of its journal was changed or does not belong there\n"
    assert not Path("offer.html").exists()


@pytest.mark.parametrize("command", ["metrics", "costs"])
def test_a_sum_that_lacks_a_run_says_so_and_fails(offer: Moot, command: str) -> None:
    offer("run", "offers.py:OFFER", "--run-id", "second")
    damage("offer")
    ran = offer(command)
    assert ran.code == 1
    assert ran.err.startswith("offer is left out: run offer: entry 0 of its journal was changed")
    assert "0.25" in ran.out
    assert list(offer(command, "--json").json["unread"]) == ["offer"]


@pytest.mark.parametrize(
    ("format", "begins"), [("html", "<!doctype html>"), ("md", "# offer: "), ("csv", "entry,time,"), ("json", "{")]
)
def test_a_report_is_written_in_the_format_that_is_asked_for(offer: Moot, format: str, begins: str) -> None:
    assert offer("report", "offer", "--format", format).out.startswith(begins)
    assert offer("report", "offer", "--format", format, "--output", "-").out.startswith(begins)
    assert offer("report", "offer", "--format", format, "--output", f"told.{format}").out == f"told.{format}\n"
    assert Path(f"told.{format}").read_text().startswith(begins)


def test_the_name_of_the_file_says_the_format_where_nothing_else_does(offer: Moot) -> None:
    offer("report", "offer", "-o", "told.json")
    assert json.loads(Path("told.json").read_text())["summary"]["run"] == "offer"
    offer("report", "offer", "-o", "told.txt")
    assert Path("told.txt").read_text().startswith("<!doctype html>")
    offer("report", "offer", "-o", "told.md", "--format", "csv")
    assert Path("told.md").read_text().startswith("entry,")


def test_a_format_that_nobody_knows_is_wrong_usage(offer: Moot) -> None:
    ran = offer("report", "offer", "--format", "pdf")
    assert ran.code == 2
    assert "invalid choice: 'pdf'" in ran.err


MIXED = """
from dataclasses import dataclass
from moothall import Final, Machine, On, Replied, State, ask

@dataclass(frozen=True)
class Verdict:
    good: bool

MIXED = Machine("mixed",
    states=[State("writing", enter=ask("writer", "Write.")),
            State("judging", enter=ask("judge", "Judge.", reply=Verdict, level="smart")), Final("judged")],
    moves=[On("writing", Replied, to="judging"), On("judging", Replied, to="judged")])
"""


def test_costs_are_told_of_each_model_that_was_asked_also_for_replies_that_were_of_no_use(
    moot: Moot, tmp_path: Path
) -> None:
    (tmp_path / "mixed.py").write_text(MIXED)
    replies = {
        "base": {"writer": [{"text": "Tides.", "usage": {"tokens": 3}}]},
        "smart": {"judge": [{"value": {"god": True}, "usage": {"tokens": 5}}]},
    }
    for level, said in replies.items():
        (tmp_path / f"{level}.json").write_text(json.dumps(said))
    (tmp_path / "home").mkdir()
    levels = "".join(f'{level} = "scripted:{tmp_path / level}.json"\n' for level in replies)
    (tmp_path / "home" / "settings.toml").write_text(f"[levels]\n{levels}")
    assert moot("run", "mixed.py:MIXED", "--run-id", "mine").code == 1
    found = moot("costs", "mine", "--json").json["by_model"]
    spent = {model: (bill["calls"], bill["tokens"]) for model, bill in found.items()}
    assert spent == {f"scripted:{tmp_path}/smart.json": (2, 10), f"scripted:{tmp_path}/base.json": (1, 3)}
    assert f"scripted:{tmp_path}/smart.json" in moot("costs", "mine").out
