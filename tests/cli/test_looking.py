"""`moot ls`, `show` and `report`."""

from pathlib import Path

import pytest

from tests.cli.ran import Moot

SUMMARY = {"run", "machine", "status", "states", "seq", "began", "reason", "model", "spent", "questions"}
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
    assert lines[0].endswith("2 entries  approving")


def test_ls_as_json_has_a_summary_of_each_run(two_runs: Moot) -> None:
    summaries = two_runs("ls", "--json").json
    assert [set(summary) for summary in summaries] == [SUMMARY, SUMMARY]
    assert summaries[0]["questions"][0]["id"] == "1.0"
    assert (summaries[1]["status"], summaries[1]["seq"]) == ("done", 1)


def test_show_tells_the_journal_line_by_line(two_runs: Moot) -> None:
    lines = two_runs("show", "second").out.splitlines()
    assert lines[0] == "second  waiting  approving"
    assert [line.split()[0] for line in lines[1:3]] == ["0", "1"]
    assert "writing → approving  replied clerk DEAR ADA" in lines[2]
    assert lines[3].startswith("question 1.0")
    assert lines[4] == "answer with:  moot answer second --yes | --no"


def test_show_says_why_a_run_failed(moot: Moot) -> None:
    moot("run", "machines.py:STOLEN", "Ada", "--run-id", "mine")
    said = moot("show", "mine").out
    assert "OSError: the ink is dry (" in said
    assert "machines.py:" in said


def test_show_as_json_has_the_summary_and_entries_without_gaps(two_runs: Moot) -> None:
    shown = two_runs("show", "second", "--json").json
    assert set(shown) == {"summary", "entries"}
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


@pytest.mark.parametrize("place", ["no/such/folder/page.html", "."])
def test_a_page_that_cannot_be_written_is_refused_in_a_sentence(two_runs: Moot, place: str) -> None:
    ran = two_runs("report", "first", "-o", place)
    assert ran.code == 1
    assert ran.err.startswith(f"moot report: {place} cannot be written: ")


def test_looking_moves_nothing(two_runs: Moot) -> None:
    before = two_runs("show", "second", "--json").out
    two_runs("ls")
    two_runs("report", "second")
    assert two_runs("show", "second", "--json").out == before
