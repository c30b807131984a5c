"""The statechart tests from outside: every row of the index passes, and a round trip changes none of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moothall.app.kinds.scxml import Row, Score, rows_of, run_folder, run_row, start
from moothall.errors import DefinitionError
from moothall.interop.scxml import read, write
from moothall.interop.scxml_session import session
from moothall.kernel.events import Named
from moothall.kernel.simulate import Evaluate

FOLDER = Path(__file__).parents[3] / "shared" / "conformance" / "scxml"
ROWS = list(rows_of(FOLDER)) if FOLDER.is_dir() else []
NEEDS_ENGINE = "needs a script engine"

suites = pytest.mark.skipif(not ROWS, reason="the folder with the test suites is not here")


def outcome(row: Row, evaluate: Evaluate | None) -> str | None:
    """What is wrong with a row: first without an engine, then, if it needs one, with it."""
    wrong = run_row(row)
    if wrong is None or NEEDS_ENGINE not in wrong:
        return wrong
    if evaluate is None:
        pytest.skip("it needs a script engine, and none is installed")
    return run_row(row, evaluate)


@suites
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_the_document_does_what_its_suite_says(row: Row, evaluate: Evaluate | None) -> None:
    assert outcome(row, evaluate) is None


@suites
def test_most_of_tier_a_needs_no_engine() -> None:
    score = run_folder(FOLDER, frozenset({"A"}))
    assert all(NEEDS_ENGINE in failure.reason for failure in score.failures)
    assert score.passed >= 54


@suites
@pytest.mark.parametrize("row", [row for row in ROWS if row.tier.startswith("A")], ids=lambda row: row.id)
def test_a_round_trip_changes_no_trace(row: Row, evaluate: Evaluate | None) -> None:
    first = start(row.document, evaluate)
    text = write(first.machine)
    second = session(read(text, file=row.document.name), evaluate=evaluate)
    events = json.loads(row.expected.read_text("utf-8"))["events"] if row.expected is not None else []
    for running in (first, second):
        for sent in events:
            running.advance(sent.get("after", 0) / 1000)
            running.send(Named(sent["event"]["name"]))
        running.settle()
    assert [step.microsteps for step in first.steps] == [step.microsteps for step in second.steps]
    assert write(second.machine) == text


# the runner itself

HEAD = "id\ttier\tcategory\tconformance\tsection_or_trace\tdocument\texpected\n"
DOCUMENT = """<scxml xmlns="http://www.w3.org/2005/07/scxml" version="1.0">
<state id="a"><transition event="go" target="{target}"/><onentry><send event="go" delay="1s"/></onentry></state>
<state id="b"/><final id="pass"/><final id="fail"/></scxml>"""
TRACE = {"initialConfiguration": ["a"], "events": [{"after": 500, "event": {"name": "x"}, "nextConfiguration": ["a"]}]}


def suite(folder: Path, *rows: str) -> Path:
    (folder / "index.tsv").write_text(HEAD + "\n".join(rows) + "\n")
    for target in ("pass", "fail", "b"):
        (folder / f"{target}.scxml").write_text(DOCUMENT.format(target=target))
    legacy = {**TRACE, "events": [{"after": 1000, "event": {"name": "x"}, "nextConfiguration": ["b"]}]}
    (folder / "trace.json").write_text(json.dumps({**TRACE, "legacySemantics": legacy}))
    return folder


def test_a_document_judges_itself_by_ending_in_pass(tmp_path: Path) -> None:
    rows = ("one\tA-x\tc\tm\t3.1\tpass.scxml\t", "two\tB-x\tc\tm\t3.1\tfail.scxml\t", "three\tB-x\tc\tm\t3\tb.scxml\t")
    score = run_folder(suite(tmp_path, *rows))
    assert (score.passed, score.failed) == (1, 2)
    assert [(failure.id, failure.reason) for failure in score.failures] == [
        ("two", "it ended done in fail, not in pass"),
        ("three", "it ended live in b, not in pass"),
    ]


def test_a_trace_is_compared_after_every_event_in_virtual_time(tmp_path: Path) -> None:
    rows = [f"{trace}\tA-x\tc\ts\ttrace={trace}\tb.scxml\ttrace.json" for trace in ("default", "legacySemantics(REC)")]
    assert run_folder(suite(tmp_path, *rows)) == Score(2, 0)
    wrong = run_folder(suite(tmp_path, rows[0].replace("b.scxml", "missing.scxml")))
    assert "missing.scxml" in wrong.failures[0].reason


def test_a_difference_says_when_and_what(tmp_path: Path) -> None:
    folder = suite(tmp_path, "one\tA-x\tc\ts\ttrace=default\tb.scxml\ttrace.json")
    changed = {**TRACE, "events": [{"after": 1000, "event": {"name": "x"}, "nextConfiguration": ["a"]}]}
    (folder / "trace.json").write_text(json.dumps(changed))
    assert run_folder(folder).failures[0].reason == "after event 1, x it is in b, not in a"


def test_tiers_are_chosen_by_letter_or_by_name(tmp_path: Path) -> None:
    folder = suite(tmp_path, "one\tA-x\tc\tm\t3.1\tpass.scxml\t", "two\tB-y\tc\tm\t3.1\tpass.scxml\t")
    counts = [run_folder(folder, frozenset(tiers)).passed for tiers in (["A"], ["B-y"], ["A", "B"], ["C"])]
    assert counts == [1, 1, 2, 0]


def test_a_document_reads_no_file_outside_its_folder(tmp_path: Path) -> None:
    (tmp_path / "secret.js").write_text("x = 1")
    folder = tmp_path / "suite"
    folder.mkdir()
    suite(folder, "one\tA-x\tc\tm\t3.1\tpass.scxml\t")
    text = DOCUMENT.format(target="pass").replace("<state", '<script src="../secret.js"/><state', 1)
    (folder / "pass.scxml").write_text(text)
    assert "'../secret.js' is not beside the document" in run_folder(folder).failures[0].reason


@pytest.mark.parametrize(("index", "reason"), [(None, "cannot be read"), ("id\ttier\none\tA\n", "a column is missing")])
def test_a_folder_without_a_proper_index_is_refused(tmp_path: Path, index: str | None, reason: str) -> None:
    if index is not None:
        (tmp_path / "index.tsv").write_text(index)
    with pytest.raises(DefinitionError, match=reason):
        run_folder(tmp_path)
