"""A fork shares what was, and never repeats what its origin has done unless somebody says so."""

import json
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.cli.process import moot as real_moot
from tests.cli.process import started
from tests.cli.ran import Moot

pytestmark = pytest.mark.slow

PURE = "weigh"
Deeds = Counter[tuple[str, ...]]


def deeds() -> Deeds:
    """What the receiver has seen so far, without what is pure."""
    log = Path("received.log")
    lines = log.read_text().splitlines() if log.exists() else []
    return Counter(deed for line in lines if (deed := tuple(json.loads(line)))[0] != PURE)


def count(table: str) -> int:
    db = sqlite3.connect("moothall.db")
    found: int = db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    db.close()
    return found


def made(moot: Moot, run: str = "origin") -> int:
    """A yard that has done everything; its latest entry."""
    for command in (
        ("run", "works.py:YARD", "lamp", "--run-id", run),
        ("answer", run, "--text", "Ada"),
        ("answer", run, "--yes"),
    ):
        ran = moot(*command, "--quiet")
    assert ran.code == 0, ran.err
    return int(moot("show", run, "--json").json["summary"]["seq"])


def watched(moot: Moot, run: str = "origin") -> int:
    """A watch with a timer, history and a deadline, to its end; its latest entry."""
    moot("run", "works.py:WATCH", "sail", "--run-id", run, "--quiet")
    moot("answer", run, "--yes", "--quiet")
    assert moot("answer", run, "--no", "--quiet").code == 0
    return int(moot("show", run, "--json").json["summary"]["seq"])


def looped(moot: Moot, run: str = "origin") -> int:
    """A loop to the end of its budget; its latest entry."""
    assert moot("run", "works.py:LOOP", "rope", "--run-id", run, "--quiet").code == 0
    return int(moot("show", run, "--json").json["summary"]["seq"])


def settle_doubts(moot: Moot, run: str, outcome: dict[str, Any]) -> None:
    """Answer all that a run asks until it is over: doubts with this, questions like before."""
    for _ in range(30):
        asked = moot("resume", run, "--json").json["questions"]
        if not asked:
            return
        one = asked[0]
        said: tuple[str, ...] = ("--yes",)
        if "outcome" in json.dumps(one["schema"]):
            said = ("--json", json.dumps(outcome))
        elif one["schema"] == {"type": "string"}:
            said = ("--text", "Ada")
        elif "Go on" in one["prompt"]:
            said = ("--no",)
        moot("answer", one["run"], one["id"], *said, "--quiet")
    pytest.fail(f"{run} does not come to its end")


def well(moot: Moot, *runs: str) -> None:
    """These runs replay as they are, and an audit finds nothing."""
    for run in runs:
        replayed, audit = moot("replay", run), moot("audit", run)
        assert (replayed.code, audit.code) == (0, 0), (replayed.out, audit.out)


@pytest.mark.parametrize("story", [made, watched, looped])
def test_a_fork_at_any_entry_repeats_nothing_unasked(moot: Moot, story: Any, figure: list[str]) -> None:
    latest = story(moot)
    before = deeds()
    children = count("runs")
    for at in range(latest):
        ran = moot("fork", "origin", "--at", str(at), "--run-id", f"f{at}", "--quiet", "--json")
        assert ran.code in (0, 1, 5, 7), ran.err
        assert (deeds() & before) == before
        assert not deeds() - before, f"repeated after entry {at}: {deeds() - before}"
        well(moot, f"f{at}")
    assert count("runs") == children + latest
    figure.append(f"{story.__name__}: {latest} forks, 0 of {before.total()} deeds repeated")


def test_what_a_person_says_was_done_is_not_done_again_to_the_very_end(moot: Moot) -> None:
    latest, before = made(moot), deeds()
    for at in range(latest):
        run = f"f{at}"
        moot("fork", "origin", "--at", str(at), "--run-id", run, "--quiet", "--json", "--budget", "calls=99")
        settle_doubts(moot, run, {"outcome": "done", "value": "well"})
        assert not deeds() - before, (at, deeds() - before)
        well(moot, run)


@pytest.mark.parametrize("at", [0, 1, 4, 8, 10])
def test_with_consent_a_fork_does_again_what_its_origin_did(moot: Moot, at: int) -> None:
    made(moot)
    before = deeds()
    after = moot("fork", "origin", "--at", str(at), "--run-id", "again", "--repeat", "--quiet", "--budget", "calls=99")
    assert after.code in (0, 5)
    settle_doubts(moot, "again", {"outcome": "failed"})
    repeated = deeds() - before
    assert repeated[("pay", "pilotage")] == 1
    assert repeated[("pay", "lamp")] == (2 if at < 3 else 1 if at < 10 else 0)
    well(moot, "again")


def test_a_person_may_say_that_one_thing_is_to_be_done_again(moot: Moot) -> None:
    made(moot)
    before = deeds()
    asked = moot("fork", "origin", "--at", "8", "--run-id", "fork", "--quiet", "--json").json["questions"]
    assert [one["prompt"] for one in asked] == ["run origin did the same after entry 8. What became of it?"]
    moot("answer", "fork", "--json", '{"outcome": "again"}', "--quiet")
    assert deeds() - before == Counter({("pay", "lamp"): 1})


def test_a_fork_adds_one_entry_and_copies_nothing(moot: Moot) -> None:
    Path("long.py").write_text(
        "from dataclasses import dataclass, replace\n"
        "from moothall import Append, Final, Machine, Move, On, Returned, State, call, otherwise, question, tool\n"
        "@dataclass(frozen=True)\nclass Walk:\n    what: str\n    steps: int = 0\n"
        "async def walk(steps: int, key: str) -> str:\n    return f'{steps} ' * 60\n"
        "def on(data, event):\n"
        "    return Move(replace(data, steps=data.steps + 1), appends=(Append('way', {'said': event.value}),))\n"
        "LONG = Machine('long', data=Walk, states=[State('walking', enter=call(tool(walk, repeats='pure'), 'steps')),\n"
        "    State('asking', enter=question('Well?')), Final('over')],\n"
        "    moves=[On('walking', Returned, to='walking', do=on, at_most=998), On('walking', otherwise, to='asking'),\n"
        "           On('asking', 'answered', to='over')])\n"
    )
    assert moot("run", "long.py:LONG", "far", "--run-id", "origin", "--quiet").code == 5
    assert count("entries") == 1_000
    _checkpoint()
    size, texts = Path("moothall.db").stat().st_size, count("texts")
    forked = moot("fork", "origin", "--run-id", "end", "--quiet")
    assert (forked.code, count("entries"), count("texts")) == (5, 1_001, texts)
    _checkpoint()
    assert Path("moothall.db").stat().st_size - size <= 3 * 4096
    Path("more.py").write_text(Path("long.py").read_text().replace("at_most=998", "at_most=900"))
    moot("fork", "origin", "--at", "900", "--run-id", "middle", "--machine", "more.py:LONG", "--quiet")
    assert count("entries") - 1_001 in (2, 3)
    exported = moot("export", "middle").json
    assert [one["seq"] for one in exported["entries"]] == list(range(len(exported["entries"])))
    assert exported["entries"][:901] == moot("export", "origin").json["entries"][:901]


def _checkpoint() -> None:
    db = sqlite3.connect("moothall.db")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


def test_a_question_is_answered_differently_in_a_fork_and_the_origin_stays_as_it_was(moot: Moot) -> None:
    moot("run", "works.py:YARD", "boat", "--run-id", "origin", "--quiet")
    whole = moot("export", "origin").json
    assert moot("fork", "origin", "--run-id", "fork", "--quiet").code == 5
    moot("answer", "fork", "--text", "Bob", "--quiet")
    assert moot("export", "origin").json == whole
    moot("answer", "origin", "--text", "Ada", "--quiet")
    plans = {run: moot("export", run).json["head"]["snapshot"]["data"]["plan"] for run in ("origin", "fork")}
    assert plans == {"origin": "Ada", "fork": "Bob"}
    well(moot, "origin", "fork")


def test_forks_of_forks_know_what_all_those_before_them_have_done(moot: Moot) -> None:
    made(moot)
    before = deeds()
    moot("fork", "origin", "--at", "8", "--run-id", "one", "--quiet", "--json")
    moot("fork", "one", "--run-id", "two", "--quiet", "--json", "--budget", "calls=9")
    moot("fork", "two", "--at", "8", "--run-id", "three", "--quiet", "--json", "--budget", "calls=9")
    moot("fork", "one", "--at", "5", "--run-id", "four", "--quiet", "--json", "--budget", "calls=9")
    moot("fork", "one", "--at", "5", "--run-id", "five", "--repeat", "--quiet", "--json", "--budget", "calls=9")
    repeated = deeds() - before
    assert repeated[("order", "lamp")] == repeated[("pay", "lamp")] == 1
    moot("fork", "five", "--at", "7", "--run-id", "six", "--quiet", "--json", "--budget", "calls=9")
    assert deeds() - before == repeated
    for run in ("two", "three", "four", "six"):
        settle_doubts(moot, run, {"outcome": "done", "value": "well"})
    assert deeds() - before == repeated
    well(moot, "origin", "one", "two", "three", "four", "five", "six")


def test_a_child_is_forked_by_itself_and_nobody_is_told_its_end(moot: Moot) -> None:
    made(moot)
    before, parent = deeds(), moot("export", "origin").json
    forked = moot("fork", "origin-2-0", "--at", "1", "--run-id", "alone", "--quiet", "--json")
    assert (forked.code, [one["prompt"] for one in forked.json["questions"]]) == (5, ["Make lamp?"])
    assert moot("answer", "alone", "--no", "--quiet", "--json").code in (0, 5)
    moot("fork", "alone", "--at", "2", "--run-id", "deeper", "--quiet", "--json")
    settle_doubts(moot, "alone", {"outcome": "done", "value": "elsewhere"})
    settle_doubts(moot, "deeper", {"outcome": "done", "value": "elsewhere"})
    assert deeds() == before
    assert moot("export", "origin").json == parent
    well(moot, "alone", "deeper")


def test_a_deadline_begins_anew_in_a_fork(moot: Moot) -> None:
    Path("short.py").write_text(Path("works.py").read_text().replace("within=3600", "within=0.2"))
    moot("run", "short.py:WATCH", "sail", "--run-id", "origin", "--quiet")
    with started("worker", "--until-idle", home=Path.cwd()) as worker:
        worker.communicate(timeout=60)
    entries = moot("export", "origin").json["entries"]
    assert "expired" in [one["event"]["name"] for one in entries]
    forked = moot("fork", "origin", "--at", "1", "--run-id", "late", "--quiet", "--json")
    assert (forked.code, [one["prompt"] for one in forked.json["questions"]]) == (5, ["Go on?"])
    well(moot, "late")


def test_a_fork_spends_what_the_budget_of_its_origin_has_left(moot: Moot) -> None:
    moot("run", "works.py:YARD", "lamp", "--run-id", "origin", "--quiet")
    assert moot("export", "origin").json["head"]["spent"] == {"calls": 1}
    moot("fork", "origin", "--run-id", "one", "--quiet")
    limits = moot("export", "one").json["record"]["limits"]
    assert limits["calls"] == 49
    assert 35_000 < limits["seconds"] <= 36_000
    moot("fork", "origin", "--run-id", "two", "--quiet")
    assert moot("export", "two").json["record"]["limits"]["calls"] == 0
    assert moot("export", "two").json["record"]["limits"]["seconds"] > 35_000
    moot("cancel", "one", "--quiet")
    moot("cancel", "two", "--quiet")
    moot("fork", "origin", "--run-id", "three", "--quiet", "--budget", "calls=7")
    assert moot("export", "three").json["record"]["limits"] == {"calls": 7}
    moot("fork", "origin", "--run-id", "four", "--quiet")
    assert moot("export", "four").json["record"]["limits"]["calls"] == 42


def test_forks_of_a_fork_that_has_ended_still_count_against_the_budget(moot: Moot) -> None:
    moot("run", "works.py:YARD", "lamp", "--run-id", "origin", "--quiet")
    moot("fork", "origin", "--run-id", "one", "--quiet", "--budget", "calls=20")
    moot("fork", "one", "--run-id", "below", "--quiet")
    moot("cancel", "one", "--quiet")
    moot("fork", "origin", "--run-id", "two", "--quiet")
    assert moot("export", "two").json["record"]["limits"]["calls"] == 50 - 1 - 20


def test_what_children_may_still_spend_is_not_there_for_a_fork(moot: Moot) -> None:
    moot("run", "works.py:YARD", "lamp", "--run-id", "origin", "--quiet")
    moot("answer", "origin", "--text", "Ada", "--quiet")
    moot("fork", "origin", "--at", "1", "--run-id", "fork", "--quiet")
    assert moot("export", "fork").json["record"]["limits"]["calls"] == 50 - 1 - 9


def test_what_is_beyond_the_budget_is_denied_and_not_asked_about(moot: Moot) -> None:
    looped(moot)
    forked = moot("fork", "origin", "--at", "2", "--run-id", "poor", "--quiet", "--json", "--budget", "calls=1")
    assert forked.code == 5
    settle_doubts(moot, "poor", {"outcome": "again"})
    assert moot("export", "poor").json["status"] == "done"
    well(moot, "poor")


def test_a_run_whose_head_is_damaged_is_not_forked_before_it_is_mended(moot: Moot) -> None:
    made(moot)
    db = sqlite3.connect("moothall.db")
    db.execute("UPDATE runs SET head = x'00' WHERE run = 'origin'")
    db.commit()
    db.close()
    refused = moot("fork", "origin", "--at", "1", "--run-id", "fork", "--quiet")
    assert (refused.code, "`moot resume origin` makes it anew" in refused.err) == (1, True)
    assert moot("resume", "origin", "--quiet").code == 0
    assert moot("fork", "origin", "--at", "1", "--run-id", "fork", "--quiet").code == 5
    well(moot, "origin", "fork")


def test_an_id_that_is_taken_is_refused_and_raises_no_alarm(moot: Moot) -> None:
    made(moot)
    refused = moot("fork", "origin", "--at", "4", "--run-id", "origin", "--quiet")
    assert (refused.code, "exists already" in refused.err) == (1, True)
    assert moot("audit").code == 0


@pytest.mark.parametrize("at", ["13", "99"])
def test_an_entry_that_is_not_there_or_the_end_is_refused(moot: Moot, at: str) -> None:
    made(moot)
    refused = moot("fork", "origin", "--at", at, "--quiet")
    assert (refused.code, "run origin has no entry" in refused.err) == (1, True)
    over = moot("fork", "origin", "--quiet")
    assert (over.code, "is over after entry 12; fork it at an earlier one" in over.err) == (1, True)


def test_prune_keeps_an_origin_as_long_as_a_fork_needs_it(moot: Moot) -> None:
    made(moot)
    moot("fork", "origin", "--at", "8", "--run-id", "one", "--quiet")
    moot("fork", "one", "--run-id", "two", "--quiet", "--budget", "calls=9")
    moot("cancel", "one", "--quiet")
    moot("prune", "--days", "0", "--yes")
    assert {one["run"] for one in moot("ls", "--json").json} == {"origin", "one", "two"}
    well(moot, "two")
    moot("cancel", "two", "--quiet")
    moot("prune", "--days", "0", "--yes")
    assert moot("ls", "--json").json == []
    assert moot("audit").code == 0


def test_a_live_run_that_another_process_drives_is_forked_and_both_go_on(moot: Moot) -> None:
    Path("hold").touch()
    home = Path.cwd()
    with started("run", "works.py:LOOP", "rope", "--run-id", "origin", home=home) as process:
        while ("pay", "rope") not in deeds():
            assert process.poll() is None
        forked = moot("fork", "origin", "--run-id", "fork", "--quiet", "--json")
        assert (forked.code, len(forked.json["questions"])) == (5, 1)
        assert deeds()[("pay", "rope")] == 1
        process.kill()
        process.communicate()
    lost = moot("fork", "origin", "--run-id", "after", "--quiet", "--json", "--budget", "calls=3")
    assert (lost.code, deeds()[("pay", "rope")]) == (5, 1)
    Path("hold").unlink()
    assert moot("resume", "origin", "--quiet").code == 0
    well(moot, "origin", "fork", "after")


def test_a_fork_that_is_killed_is_resumed_and_well(moot: Moot) -> None:
    made(moot)
    home = Path.cwd()
    Path("hold").touch()
    before = deeds()
    fork = ("fork", "origin", "--at", "8", "--run-id", "fork", "--repeat", "--quiet")
    with started(*fork, home=home) as process:
        while deeds() == before:
            assert process.poll() is None
        process.kill()
        process.communicate()
    Path("hold").unlink()
    asked = real_moot("resume", "fork", "--json", home=home)
    assert asked.returncode == 5, asked.stderr
    assert moot("audit", "fork").code in (0, 6)
    settle_doubts(moot, "fork", {"outcome": "done", "value": "paid"})
    assert deeds()[("pay", "lamp")] == 3
    well(moot, "fork")


def test_agents_of_a_fork_hear_what_was_said_before(moot: Moot) -> None:
    moot("run", "works.py:YARD", "boat", "--run-id", "origin", "--quiet")
    moot("fork", "origin", "--run-id", "fork", "--quiet")
    threads = {run: moot("export", run).json["head"]["snapshot"]["threads"] for run in ("origin", "fork")}
    assert threads["origin"] == threads["fork"] != {}
    said = [one for entry in moot("export", "fork").json["entries"] for one in entry.get("appends", ())]
    assert [one["thread"] for one in said] == ["talk"]


def test_a_fork_may_go_on_under_another_definition_that_agrees_so_far(moot: Moot) -> None:
    made(moot)
    text = Path("works.py").read_text()
    Path("later.py").write_text(
        text.replace('On("ordering", Returned, to="paying", do=add)', 'On("ordering", Returned, to="made")')
    )
    refused = moot("fork", "origin", "--at", "9", "--run-id", "fork", "--machine", "later.py:YARD", "--quiet")
    assert (refused.code, "cannot be forked at 9 under this definition: entry 8 differs" in refused.err) == (4, True)
    forked = moot("fork", "origin", "--at", "7", "--run-id", "fork", "--machine", "later.py:YARD", "--quiet")
    assert forked.code == 5
    settle_doubts(moot, "fork", {"outcome": "done", "value": "ordered"})
    assert moot("export", "fork").json["head"]["snapshot"]["active"] == ["made"]
    well(moot, "fork", "origin")
