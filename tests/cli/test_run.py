"""`moot run` and `moot resume`: results on stdout, notices on stderr, and the exit code says how it ended."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.ran import Moot

OUTCOME = {"fault", "run", "machine", "status", "states", "result", "reason", "questions", "spent", "data"}


def test_a_run_that_is_done_prints_its_result_alone_on_stdout(moot: Moot) -> None:
    ran = moot("run", "machines.py:LETTER", "Ada")
    assert (ran.code, ran.out) == (0, "DEAR ADA\n")
    assert "writing → written  replied clerk DEAR ADA  done" in ran.err
    assert re.search(r"is done \(in written, step 1, \d\.\d s; spent: calls 1\)\n", ran.err)


def test_quiet_says_nothing_when_all_is_well(moot: Moot) -> None:
    ran = moot("run", "machines.py:LETTER", "Ada", "--quiet")
    assert (ran.code, ran.out, ran.err) == (0, "DEAR ADA\n", "")


def test_json_prints_the_whole_outcome(moot: Moot) -> None:
    ran = moot("run", "machines.py:LETTER", "Ada", "--json", "--run-id", "mine")
    assert ran.code == 0
    assert set(ran.json) == OUTCOME
    assert ran.json["run"] == "mine"
    assert ran.json["status"] == "done"
    assert ran.json["states"] == ["written"]
    assert ran.json["result"] == "DEAR ADA"
    assert ran.json["data"] == {"to": "Ada", "text": "DEAR ADA"}
    assert ran.json["spent"] == {"calls": 1}


@pytest.mark.parametrize("given", ['{"to": "Ada"}', ' {"to":"Ada","text":"x"}'])
def test_the_input_may_be_a_json_object(moot: Moot, given: str) -> None:
    assert moot("run", "machines.py:LETTER", given, "-q").out == "DEAR ADA\n"


def test_the_input_may_be_a_json_file(moot: Moot, tmp_path: Path) -> None:
    (tmp_path / "input.json").write_text('{"to": "Ada"}')
    assert moot("run", "machines.py:LETTER", "--input-json", "input.json", "-q").out == "DEAR ADA\n"


def test_a_result_that_is_no_text_is_printed_as_json(moot: Moot) -> None:
    moot("run", "machines.py:PAINTED", "Ada", "--run-id", "mine", "-q")
    (Path("red.json")).write_text('{"colour": "red"}')
    ran = moot("answer", "mine", "--json", "red.json", "-q")
    assert (ran.code, json.loads(ran.out)) == (0, {"to": "Ada", "text": "red"})


def test_a_failed_run_exits_with_1_and_names_the_reason(moot: Moot) -> None:
    ran = moot("run", "machines.py:STOLEN", "Ada")
    assert (ran.code, ran.out) == (1, "")
    assert "is failed: thief: OSError: the ink is dry (" in ran.err


FORGIVING = """
from pathlib import Path
from moothall import EffectFailed, Final, GaveUp, Machine, On, Replied, State, ask

async def thief(prompt: str) -> str:
    raise EffectFailed("the ink is dry, the paper is wet, the pen is lost, and nobody is there to help", final=True)

FORGIVING = Machine("forgiving",
    states=[State("writing", enter=ask(thief, "Write")), Final("written"), Final("forgiven")],
    moves=[On("writing", Replied, to="written"), On("writing", GaveUp, to="forgiven")])
"""


def test_a_failure_that_a_row_takes_is_told_to_its_end_with_file_and_line(moot: Moot) -> None:
    Path("forgiving.py").write_text(FORGIVING)
    ran = moot("run", "forgiving.py", "--run-id", "mine")
    [line] = [line for line in ran.err.splitlines() if "error.effect" in line]
    assert "and nobody is there to help" in line
    assert line.endswith("forgiving.py:6)  done")
    assert line in moot("show", "mine").out.splitlines()


def test_a_run_at_its_limit_exits_with_7_and_still_prints_the_best_result_so_far(moot: Moot) -> None:
    ran = moot("run", "machines.py:ENDLESS", "Ada", "--budget", "calls=3")
    assert (ran.code, ran.out) == (7, "DEAR ADA\n")
    assert "is limited: limit of 3 calls reached in mending (in mending, step 4, " in ran.err
    assert "; spent: calls 3 of 3)" in ran.err


def test_the_last_line_tells_what_was_spent_of_each_limit(moot: Moot) -> None:
    Path("script.json").write_text('{"poet": [{"text": "roses", "usage": {"usd": 0.021, "tokens": 1140}}]}')
    budget = "usd=0.5,calls=20,seconds=60"
    ran = moot("run", "machines.py:NAMED", "Ada", "--model", "scripted:script.json", "--budget", budget)
    told = r"\(in written, step 1; spent: usd 0\.021 of 0\.50, calls 1 of 20, tokens 1140, seconds \d(\.\d)? of 60\)"
    assert re.search(told, ran.err)


def test_a_run_that_waits_exits_with_5_and_says_how_to_answer(moot: Moot) -> None:
    ran = moot("run", "machines.py:SENT", "Ada", "--run-id", "mine")
    assert (ran.code, ran.out) == (5, "")
    assert "question 1.0: Send DEAR ADA?" in ran.err
    assert "answer with:  moot answer mine --yes | --no" in ran.err


def test_quiet_still_says_what_a_waiting_run_waits_for(moot: Moot) -> None:
    assert "question 1.0: Send DEAR ADA?" in moot("run", "machines.py:SENT", "Ada", "-q").err


def test_the_command_that_is_shown_names_the_store_and_can_be_copied(moot: Moot) -> None:
    ran = moot("run", "machines.py:SENT", "Ada", "--run-id", "mine", "--store", "sqlite:my runs.db")
    assert "answer with:  moot answer mine --store 'sqlite:my runs.db' --yes | --no" in ran.err


def test_without_a_model_the_rehearsal_is_announced_on_stderr(moot: Moot) -> None:
    ran = moot("run", "machines.py:NAMED", "Ada")
    assert ran.out.startswith("[rehearsal] poet")
    assert "no model is set: rehearsal stands in for poet; its replies mean nothing" in ran.err


def test_a_scripted_model_plays_the_agents(moot: Moot) -> None:
    Path("script.json").write_text('{"poet": ["roses are red"]}')
    assert moot("run", "machines.py:NAMED", "Ada", "--model", "scripted:script.json", "-q").out == "roses are red\n"


def test_resuming_a_run_that_is_done_repeats_its_outcome_and_nothing_else(moot: Moot) -> None:
    moot("run", "machines.py:LETTER", "Ada", "--run-id", "mine")
    ran = moot("resume", "mine")
    assert (ran.code, ran.out) == (0, "DEAR ADA\n")
    assert "run mine is over" in ran.err
    assert len(moot("show", "mine", "--json").json["entries"]) == 2


def test_resuming_a_run_that_waits_exits_with_5(moot: Moot) -> None:
    moot("run", "machines.py:SENT", "Ada", "--run-id", "mine")
    assert moot("resume", "mine", "--json").json["status"] == "waiting"
    assert moot("resume", "mine").code == 5


def test_a_store_of_one_s_own_is_used_and_the_default_left_alone(moot: Moot, tmp_path: Path) -> None:
    assert moot("run", "machines.py:LETTER", "Ada", "--store", "sqlite:mine.db").code == 0
    assert (tmp_path / "mine.db").is_file()
    assert not (tmp_path / "home" / "moothall.db").exists()


def test_the_input_may_stand_behind_the_options(moot: Moot) -> None:
    ran = moot("run", "machines.py:LETTER", "--quiet", "Ada", "--json")
    assert (ran.code, ran.json["data"]["to"]) == (0, "Ada")


UNDONE = """
import subprocess, sys
from moothall import Final, Machine, On, Replied, State, ask

async def clerk(prompt: str) -> str:
    subprocess.run([sys.executable, "-m", "moothall", "cancel", "mine"], check=True, capture_output=True)
    return "late"

UNDONE = Machine("undone", states=[State("writing", enter=ask(clerk, "Write")), Final("written")],
    moves=[On("writing", Replied, to="written")])
"""


def test_an_entry_that_another_process_wrote_is_told_of_in_its_place(moot: Moot) -> None:
    Path("undone.py").write_text(UNDONE)
    ran = moot("run", "undone.py", "--run-id", "mine")
    lines = [line.strip() for line in ran.err.splitlines()]
    cancelled = moot("show", "mine", "--json").json["entries"][-2]
    assert cancelled["event"]["name"] == "run.cancelled"
    place = lines.index(f"{cancelled['seq']}  written by another process; `moot show mine` tells")
    assert lines[place - 1].startswith(f"{cancelled['seq'] - 1}  writing")
    assert lines[place + 1].startswith(f"{cancelled['seq'] + 1}  writing  replied clerk late  ignored: its effect")
    assert lines[place + 1].endswith("the run was already cancelled")
