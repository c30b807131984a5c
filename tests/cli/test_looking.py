"""`moot ls`, `show` and `report`."""

import sqlite3
from pathlib import Path

import pytest

from tests.cli.ran import Moot

SUMMARY = {"run", "machine", "status", "states", "seq", "began", "reason", "model", "spent", "questions", "limits"}
SUMMARY |= {"project", "holder", "ending"}
ENTRY = {"seq", "at", "cause", "event", "from", "to", "taken", "effects"}


@pytest.fixture
def two_runs(moot: Moot) -> Moot:
    """Two runs: `first` is done, `second` waits."""
    assert moot("run", "machines.py:LETTER", "Ada", "--run-id", "first").code == 0
    assert moot("run", "machines.py:SENT", "Ada", "--run-id", "second").code == 5
    return moot


def test_an_empty_store_says_so(moot: Moot) -> None:
    assert moot("ls").out == "no runs yet\n"
    assert moot("ls", "--json").json == []


def test_ls_lists_the_newest_run_first_in_one_line_each(two_runs: Moot) -> None:
    lines = two_runs("ls").out.splitlines()
    assert [line.split()[:2] for line in lines] == [["second", "waiting"], ["first", "done"]]
    assert lines[0].endswith("2 entries  calls 1  approving")


def test_a_run_of_one_entry_has_no_result_and_nothing_is_printed_in_its_place(moot: Moot, tmp_path: Path) -> None:
    (tmp_path / "brief.py").write_text(
        "from moothall import Final, Machine, On, State, always\n"
        "BRIEF = Machine('brief', result=lambda _: None, states=[State('asked'), Final('over')],\n"
        "    moves=[On('asked', always, to='over')])\n"
    )
    ran = moot("run", "brief.py", "--run-id", "brief-1")
    assert (ran.code, ran.out) == (0, "")
    assert "  1 entry    over" in moot("ls").out
    assert moot("metrics", "brief-1").out.startswith("brief-1  done  1 entry in ")


def test_ls_keeps_its_columns_where_a_status_is_long(two_runs: Moot) -> None:
    two_runs("cancel", "second")
    cancelled, done = two_runs("ls").out.splitlines()
    assert cancelled.index(" 20") == done.index(" 20")


def test_ls_leaves_out_what_runs_spent_where_the_lines_would_be_longer_than_100(moot: Moot) -> None:
    long = "x" * 30
    moot("run", "machines.py:LETTER", "Ada", "--run-id", long)
    [line] = moot("ls").out.splitlines()
    assert line.endswith("2 entries  calls 1  written")
    assert len(line) <= 100
    moot("run", "machines.py:SENT", "Ada", "--run-id", long + "y")
    assert [line.split()[-3:] for line in moot("ls").out.splitlines()] == [
        ["2", "entries", "approving"],
        ["2", "entries", "written"],
    ]


def test_ls_as_json_has_a_summary_of_each_run(two_runs: Moot) -> None:
    summaries = two_runs("ls", "--json").json
    assert [set(summary) for summary in summaries] == [SUMMARY, SUMMARY]
    assert summaries[0]["questions"][0]["id"] == "1.0"
    assert (summaries[1]["status"], summaries[1]["seq"]) == ("done", 1)


def test_show_tells_the_journal_line_by_line(two_runs: Moot) -> None:
    lines = two_runs("show", "second").out.splitlines()
    assert lines[0] == "second  waiting  approving"
    assert lines[1] == "spent: calls 1"
    assert [line.split()[0] for line in lines[2:4]] == ["0", "1"]
    assert "writing → approving  replied clerk DEAR ADA" in lines[3]
    assert lines[4].startswith("question 1.0")
    assert lines[5] == "answer with:  moot answer second --yes | --no"


def test_show_says_what_is_left_of_the_budget(moot: Moot) -> None:
    moot("run", "machines.py:SENT", "Ada", "--run-id", "mine", "--budget", "usd=0.5,calls=20")
    assert moot("show", "mine").out.splitlines()[1:3] == [
        "spent: usd unknown of 0.50, calls 1 of 20",
        "left: usd unknown, calls 19",
    ]
    shown = moot("show", "mine", "--json").json
    assert shown["left"] == {"usd": None, "calls": 19}
    assert shown["summary"]["limits"] == {"usd": 0.5, "calls": 20}


def test_show_of_a_question_in_a_store_of_one_s_own_has_a_command_that_can_be_copied(moot: Moot) -> None:
    moot("run", "machines.py:SENT", "Ada", "--run-id", "mine", "--store", "sqlite:my runs.db")
    said = moot("show", "mine", "--store", "sqlite:my runs.db").out
    assert "answer with:  moot answer mine --store 'sqlite:my runs.db' --yes | --no" in said


def test_a_report_has_the_budget(moot: Moot) -> None:
    moot("run", "machines.py:LETTER", "Ada", "--run-id", "mine", "--budget", "usd=0.5,calls=20,seconds=60")
    moot("report", "mine")
    page = Path("mine.html").read_text()
    assert "<b>1 of 20</b>calls spent" in page
    assert "<b>unknown of 0.50</b>usd spent" in page
    assert "of 60</b>seconds" in page
    assert "seconds spent" not in page


def test_one_damaged_record_leaves_the_list_of_the_other_runs_alone(two_runs: Moot) -> None:
    db = sqlite3.connect("home/moothall.db")
    db.execute("UPDATE runs SET record = x'7b' WHERE run = 'first'")
    db.commit()
    db.close()
    assert "second" in two_runs("ls").out


def test_show_says_why_a_run_failed(moot: Moot) -> None:
    moot("run", "machines.py:STOLEN", "Ada", "--run-id", "mine")
    said = moot("show", "mine").out
    assert "OSError: the ink is dry (" in said
    assert "machines.py:" in said


def test_show_as_json_has_the_summary_and_entries_without_gaps(two_runs: Moot) -> None:
    shown = two_runs("show", "second", "--json").json
    assert set(shown) == {"summary", "left", "entries", "unpriced"}
    assert set(shown["summary"]) == SUMMARY
    assert all(set(entry) >= ENTRY for entry in shown["entries"])
    assert [entry["seq"] for entry in shown["entries"]] == [0, 1]


def test_report_writes_one_page_named_after_the_run(two_runs: Moot) -> None:
    ran = two_runs("report", "first")
    assert (ran.code, ran.out) == (0, "first.html\n")
    assert Path("first.html").read_text().startswith("<!doctype html>")


def test_report_writes_where_it_is_told(two_runs: Moot) -> None:
    assert two_runs("report", "first", "-o", "page.html", "--json").json == {"file": "page.html"}
    assert "DEAR ADA" in Path("page.html").read_text()


def test_looking_moves_nothing(two_runs: Moot) -> None:
    before = two_runs("show", "second", "--json").out
    two_runs("ls")
    two_runs("report", "second")
    assert two_runs("show", "second", "--json").out == before
